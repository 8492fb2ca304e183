// Command reverseproxy is a reverse proxy that applies retries and rate limits of effective policies: an example of a
// data plane with a mirror.
//
//	entail serve --manifests examples/proxy/world.yaml
//	python3 -m http.server 9000 --bind 127.0.0.1       # any HTTP server can be the backend
//	cd clients/go && go run ./examples/reverseproxy -gateway shop/web -listener http \
//	  -rule '/cart=HTTPRoute/shop/cart/rules/look@http://127.0.0.1:9000' \
//	  -rule '/cart/pay=HTTPRoute/shop/cart/rules/pay@http://127.0.0.1:9000' \
//	  -rule '/search=HTTPRoute/shop/search/rules/#0@http://127.0.0.1:9000'
//	curl -i http://127.0.0.1:8080/cart/pay
//
// Read policy.go first: it compiles an answer of entail to the settings of the proxy, once. Then proxy.go: it handles a
// request, and fails closed if policies are not known. limit.go and retry.go apply the settings; rules.go is the routing
// table that a controller would configure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	entail "entail.dev/clients/go"
)

func main() {
	if err := run(); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

func run() error {
	var routes table
	server := flag.String("server", "127.0.0.1:50051", "`address` of entail: host:port, https://host:port or unix:PATH")
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to listen on; port 0 for any free port")
	gateway := flag.String("gateway", "", "Gateway that this proxy implements, as `namespace/name`")
	listener := flag.String("listener", "", "`name` of the listener of the Gateway")
	flag.Var(&routes, "rule", "`PREFIX=HTTPRoute/NAMESPACE/NAME/rules/RULE@URL`: requests whose path begins with PREFIX match "+
		"this rule and are forwarded to the server at URL. May be repeated; the longest prefix wins")
	flag.Parse()
	if *gateway == "" || *listener == "" || len(routes) == 0 {
		return errors.New("-gateway, -listener and -rule are required")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := entail.Dial(*server)
	if err != nil {
		return err
	}
	defer client.Close()
	proxy, err := newProxy(ctx, client, "gateways/"+*gateway+"/listeners/"+*listener, routes)
	if err != nil {
		return err
	}
	defer proxy.mirror.Close()
	go logStatus(ctx, proxy.mirror)

	socket, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", socket.Addr())
	// The proxy does not wait for entail: until the first update, requests fail with 503, and health checks of the
	// process succeed.
	httpServer := &http.Server{Handler: proxy, ReadHeaderTimeout: 30 * time.Second}
	served := make(chan error, 1)
	go func() { served <- httpServer.Serve(socket) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return httpServer.Shutdown(drain)
}

// logStatus logs when the mirror connects and disconnects. Requests are served from the last copy meanwhile, and their
// responses have a header with its state.
func logStatus(ctx context.Context, mirror *entail.Mirror[compiled]) {
	connected, reported := false, error(nil)
	for {
		changed := mirror.Changed()
		status := mirror.Status()
		switch {
		case status.Connected && !connected:
			slog.Info("connected to entail", "incomplete", status.Kinds)
		case !status.Connected && status.Err != nil && (connected || reported == nil):
			age, _ := mirror.Age()
			slog.Warn("disconnected from entail", "age", age, "error", status.Err)
		}
		connected, reported = status.Connected, status.Err
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
