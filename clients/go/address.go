package entail

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// address is the parsed address of a server.
type address struct {
	text string
	// Path of a Unix socket; empty for TCP.
	socket string
	// `host:port`; empty for a Unix socket.
	host string
	// Whether the address begins with `https://`.
	secure bool
}

func parseAddress(text string) (address, error) {
	invalid := func(why string) (address, error) {
		return address{}, fmt.Errorf("entail: %q is not a server address: %s; "+
			"use `host:port`, `https://host:port` or `unix:PATH`", text, why)
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" {
			return invalid("the path is missing")
		}
		return address{text: text, socket: path}, nil
	}
	host, secure := strings.CutPrefix(text, "https://")
	if !secure {
		host = strings.TrimPrefix(text, "http://")
	}
	parsed, err := url.Parse("http://" + host)
	switch {
	case err != nil || parsed.Hostname() == "":
		return invalid("the host is missing or malformed")
	case parsed.User != nil || strings.TrimSuffix(host, "/") != parsed.Host:
		return invalid("it has more than a host and a port")
	case parsed.Port() == "":
		return invalid("the port is missing")
	}
	if port, err := strconv.ParseUint(parsed.Port(), 10, 16); err != nil || port == 0 {
		return invalid("the port is not a number from 1 to 65535")
	}
	return address{text: text, host: parsed.Host, secure: secure}, nil
}
