// The judge of Envoy Gateway: its translator behind a protocol of one JSON object per line.
//
// This program is built inside a copy of the module of Envoy Gateway, because the translator is in
// an internal package. Requests:
//
//	{"op": "controller"}                      the name and the version of the controller
//	{"op": "golden"}                          the names of the module's own test inputs
//	{"op": "world", "objects": [...]}         sets the world, and returns its objects
//	{"op": "world", "golden": "..."}          sets the world of a test input
//	{"op": "xds"}                             the configuration of the Envoy of each Gateway
//	{"op": "translate"}                       translates the world
//	{"op": "translate", "policies": [...]}    translates it with other policies; rules without a
//	                                          name get one, judge-rule-INDEX, so that policies can name them
//	{"op": "proxy", "address": "127.0.0.1", "port": 10000}
//	                                          makes an Envoy's configuration of the world, with listeners at
//	                                          the address from the port on
//
// The reply to a request that fails is {"error": "..."}. A crash of the translator is such a reply.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// version is the version of the module; the build sets it.
var version = "unknown"

// request is one line of input.
type request struct {
	Op      string            `json:"op"`
	Objects []json.RawMessage `json:"objects"`
	Golden  string            `json:"golden"`
	// Policies replace those of the world if they are set.
	Policies *[]json.RawMessage `json:"policies"`
	// Extra are added to the objects of the world.
	Extra []json.RawMessage `json:"extra"`
	// Controller is the controllerName that the world's Envoy Gateway has, if not the usual one.
	Controller string `json:"controller"`
	// Address and Port are where a proxy listens.
	Address string `json:"address"`
	Port    uint32 `json:"port"`
	// Validate makes the world refuse objects that the API server would refuse.
	Validate bool `json:"validate"`
}

type failure struct {
	Error string `json:"error"`
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	judge := &judge{}
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			reply := answer(judge, line)
			text, err := json.Marshal(reply)
			if err != nil {
				text, _ = json.Marshal(failure{Error: "unwritable reply: " + err.Error()})
			}
			output.Write(text)
			output.WriteByte('\n')
			output.Flush()
		}
		if err != nil {
			return
		}
	}
}

// answer returns the reply to one request. A panic becomes a failure.
func answer(judge *judge, line []byte) (reply any) {
	defer func() {
		if cause := recover(); cause != nil {
			reply = failure{Error: fmt.Sprintf("panic: %v at %s", cause, origin(debug.Stack()))}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return failure{Error: "unreadable request: " + err.Error()}
	}
	reply, err := judge.serve(&asked)
	if err != nil {
		return failure{Error: err.Error()}
	}
	return reply
}

// origin returns the first line of the translator in a stack.
func origin(stack []byte) string {
	for _, line := range strings.Split(string(stack), "\n") {
		if at := strings.Index(line, "internal/gatewayapi/"); at >= 0 && strings.Contains(line, ".go:") {
			return strings.Fields(line[at:])[0]
		}
	}
	return "an unknown place"
}
