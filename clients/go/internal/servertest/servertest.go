// Package servertest runs the server binary for tests: the one that the environment variable ENTAIL names.
package servertest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Timeout of everything that tests wait for.
const Timeout = 20 * time.Second

// T is what the package needs of a test.
type T interface {
	Helper()
	Error(values ...any)
	Errorf(format string, values ...any)
	Fatal(values ...any)
	Fatalf(format string, values ...any)
	Logf(format string, values ...any)
	Failed() bool
	Cleanup(function func())
}

// Server is a server that follows the manifests in a folder.
type Server struct {
	// Socket is the path of its Unix socket.
	Socket string

	t         T
	folder    string
	manifests string
	arguments []string
	process   *exec.Cmd
	log       *log
}

// Start writes manifests and starts a server that follows them, on a Unix socket. More arguments are passed to it. It
// stops at the end of the test.
func Start(t T, manifests map[string]string, arguments ...string) *Server {
	t.Helper()
	server := New(t, manifests, arguments...)
	server.Run()
	return server
}

// New writes manifests, and does not start the server.
func New(t T, manifests map[string]string, arguments ...string) *Server {
	t.Helper()
	folder := Folder(t)
	server := &Server{
		Socket:    filepath.Join(folder, "entail.sock"),
		t:         t,
		folder:    folder,
		manifests: filepath.Join(folder, "manifests"),
		arguments: arguments,
	}
	if err := os.Mkdir(server.manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range manifests {
		server.Write(name, text)
	}
	t.Cleanup(func() {
		server.Kill()
		if t.Failed() {
			t.Logf("log of the server:\n%s", server.log)
		}
	})
	return server
}

// Folder creates a temporary folder whose name is short enough for sockets.
func Folder(t T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "entail")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// Address returns the address of the Unix socket.
func (s *Server) Address() string { return "unix:" + s.Socket }

// Write creates or replaces a manifest. The server never reads a part of it.
func (s *Server) Write(name, text string) {
	s.t.Helper()
	temporary := filepath.Join(s.folder, name+".new")
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(s.manifests, name)); err != nil {
		s.t.Fatal(err)
	}
}

// Remove deletes a manifest.
func (s *Server) Remove(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.manifests, name)); err != nil {
		s.t.Fatal(err)
	}
}

// Run starts the server, and waits until it accepts connections.
func (s *Server) Run() {
	s.t.Helper()
	s.RunWith()
}

// RunWith starts the server with more arguments, which come after those of [New].
func (s *Server) RunWith(more ...string) {
	s.t.Helper()
	binary := os.Getenv("ENTAIL")
	if binary == "" {
		s.t.Fatal("the environment variable ENTAIL does not name the server binary")
	}
	arguments := []string{"serve", "--manifests", s.manifests, "--listen", "unix:" + s.Socket, "--drain-timeout", "1"}
	s.process = exec.Command(binary, slices.Concat(arguments, s.arguments, more)...)
	s.log = &log{}
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.Until("the server accepts connections", func() bool {
		conn, err := net.Dial("unix", s.Socket)
		return err == nil && conn.Close() == nil
	})
}

// Kill ends the server without notice.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop asks the server to shut down, and waits until it has.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

func (s *Server) end(signal syscall.Signal) {
	s.t.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Error(err)
	}
	// The error is the signal, or the status of a server that failed, which its log explains.
	if err := s.process.Wait(); err != nil && signal == syscall.SIGTERM {
		s.t.Errorf("the server did not end well: %v", err)
	}
	s.process = nil
}

// Until waits until a condition is true.
func (s *Server) Until(what string, isTrue func() bool) {
	s.t.Helper()
	Until(s.t, what, isTrue)
}

// Until waits until a condition is true.
func Until(t T, what string, isTrue func() bool) {
	t.Helper()
	for end := time.Now().Add(Timeout); !isTrue(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// log is the output of a process.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *log) String() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
