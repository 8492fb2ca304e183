package servertest

import (
	"io"
	"net"
	"path/filepath"
	"sync"
)

// Relay forwards connections to a Unix socket, and can cut them or let them fall silent.
type Relay struct {
	// Socket is the path of the Unix socket of the relay.
	Socket string

	t        T
	target   string
	listener net.Listener
	wait     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	silent bool
	closed bool
	// Bytes from the target.
	received int
}

// StartRelay starts a relay to a Unix socket. It stops at the end of the test.
func StartRelay(t T, target string) *Relay {
	t.Helper()
	return StartRelayAt(t, filepath.Join(Folder(t), "relay.sock"), target)
}

// StartRelayAt starts a relay that listens on a Unix socket.
func StartRelayAt(t T, socket, target string) *Relay {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	relay := &Relay{Socket: socket, t: t, target: target, listener: listener, conns: map[net.Conn]bool{}}
	relay.wait.Go(relay.accept)
	t.Cleanup(func() {
		relay.mu.Lock()
		relay.closed = true
		relay.mu.Unlock()
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		relay.Cut()
		relay.wait.Wait()
	})
	return relay
}

// Address returns the address of the relay.
func (r *Relay) Address() string { return "unix:" + r.Socket }

// Cut closes all connections. New ones are accepted.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.conns {
		// The other side may have closed it.
		_ = conn.Close()
	}
	r.conns = map[net.Conn]bool{}
}

// SetSilent discards what the target sends, without closing connections, until it is called with false.
func (r *Relay) SetSilent(silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = silent
}

// Received returns the number of bytes from the target.
func (r *Relay) Received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		target, err := net.Dial("unix", r.target)
		if err != nil {
			_ = conn.Close() // as if nothing listened
			continue
		}
		r.mu.Lock()
		r.conns[conn], r.conns[target] = true, true
		if r.closed {
			_, _ = conn.Close(), target.Close()
		}
		r.mu.Unlock()
		r.wait.Go(func() { forward(target, conn) })
		r.wait.Go(func() { forward(counted{conn, r}, target) })
	}
}

// forward copies until either side is closed, and closes both.
func forward(to io.WriteCloser, from io.ReadCloser) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// counted is a connection that counts what is written to it, and discards it while the relay is silent.
type counted struct {
	net.Conn
	relay *Relay
}

func (c counted) Write(data []byte) (int, error) {
	c.relay.mu.Lock()
	c.relay.received += len(data)
	silent := c.relay.silent
	c.relay.mu.Unlock()
	if silent {
		return len(data), nil
	}
	return c.Conn.Write(data)
}
