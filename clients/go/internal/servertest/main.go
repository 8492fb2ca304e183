package servertest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Main is the part of a TestMain that starts servers for all tests. Call Close at the end.
type Main struct {
	cleanups []func()
	failed   bool
}

// Helper does nothing.
func (m *Main) Helper() {}

// Error prints values.
func (m *Main) Error(values ...any) {
	m.failed = true
	fmt.Fprintln(os.Stderr, values...)
}

// Errorf prints a message.
func (m *Main) Errorf(format string, values ...any) { m.Error(fmt.Sprintf(format, values...)) }

// Fatal prints values and ends the process.
func (m *Main) Fatal(values ...any) {
	m.Error(values...)
	m.Close()
	os.Exit(1)
}

// Fatalf prints a message and ends the process.
func (m *Main) Fatalf(format string, values ...any) { m.Fatal(fmt.Sprintf(format, values...)) }

// Logf prints a message.
func (m *Main) Logf(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }

// Failed reports whether there was an error.
func (m *Main) Failed() bool { return m.failed }

// Cleanup adds a function that Close calls.
func (m *Main) Cleanup(function func()) { m.cleanups = append(m.cleanups, function) }

// Close calls the cleanup functions, the last one first.
func (m *Main) Close() {
	for len(m.cleanups) > 0 {
		last := len(m.cleanups) - 1
		function := m.cleanups[last]
		m.cleanups = m.cleanups[:last]
		function()
	}
}

// LeakedGoroutine returns the stack of a goroutine of this module or of gRPC that does not end after the tests; empty if
// there is none.
func LeakedGoroutine() string {
	leak := ""
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		leak = ""
		// The first one is that of the caller.
		for _, stack := range strings.Split(string(stacks), "\n\n")[1:] {
			if strings.Contains(stack, "google.golang.org/grpc") || strings.Contains(stack, "entail.dev/") {
				leak = stack
			}
		}
		if leak == "" {
			return ""
		}
	}
	return leak
}
