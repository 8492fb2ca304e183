// Command policy-machinery answers for Kuadrant: which policies are in effect on which path.
//
// It reads requests from standard input, one JSON object a line, and writes one reply a line to standard output. The
// topology, the attachment of policies, the paths and the order of policies on one target are those of the Go module
// github.com/kuadrant/policy-machinery. The policy kinds, their merge strategies, and the steps from an effective
// policy to the configuration of a gateway are not in that module; the files of this package express them as the
// Kuadrant operator has them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

const (
	// maxLine bounds the length of one request, in bytes.
	maxLine = 64 << 20
	// module is the module that judges.
	module = "github.com/kuadrant/policy-machinery"
)

// request is a line of the input.
type request struct {
	// Op is `controller` or `judge`.
	Op string `json:"op"`
	// Objects are the objects of a world.
	Objects []json.RawMessage `json:"objects"`
}

// failure is the reply to a request that failed.
type failure struct {
	Error string `json:"error"`
}

// controllerName names the module and its version.
type controllerName struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// verdict is what Kuadrant makes of one world.
type verdict struct {
	Paths     []pathAnswer     `json:"paths"`
	Listeners []listenerAnswer `json:"listeners"`
	Policies  []policyStatus   `json:"policies"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "policy-machinery:", err)
		os.Exit(1)
	}
}

// serve answers requests until the input ends.
func serve(input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(make([]byte, 0, 1<<20), maxLine)
	encoder := json.NewEncoder(output)
	for lines.Scan() {
		if err := encoder.Encode(reply(lines.Bytes())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// reply answers one request. A panic of the library is an error of that request alone.
func reply(line []byte) (answer any) {
	defer func() {
		if cause := recover(); cause != nil {
			answer = failure{fmt.Sprintf("panic: %v", cause)}
		}
	}()
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return failure{err.Error()}
	}
	switch asked.Op {
	case "controller":
		return controllerName{"Kuadrant policy-machinery", moduleVersion()}
	case "judge":
		found, err := judge(asked.Objects)
		if err != nil {
			return failure{err.Error()}
		}
		return found
	default:
		return failure{fmt.Sprintf("unknown op %q", asked.Op)}
	}
}

// moduleVersion is the version of the module that this program was built with.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version
			}
		}
	}
	return "unknown"
}

// judge builds the topology of a world and reads every answer from it.
func judge(documents []json.RawMessage) (*verdict, error) {
	objects, err := readObjects(documents)
	if err != nil {
		return nil, err
	}
	topology, err := objects.topology()
	if err != nil {
		return nil, err
	}
	inherited := effectivePolicies(topology)
	return &verdict{
		Paths:     inherited.answers(),
		Listeners: directAnswers(topology, objects),
		Policies:  statuses(topology, objects, inherited),
	}, nil
}
