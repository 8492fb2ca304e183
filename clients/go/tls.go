package entail

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLS has the files of certificates for addresses that begin with https://.
//
// The files are read again for each connection, so renewed certificates are used without a restart. A server closes
// connections after an hour; if it no longer trusts the certificate of an open one, calls fail with UNAUTHENTICATED, and
// the client connects again if the files have changed. If the files cannot be used, for example because a renewal has
// replaced one of them only, the last usable ones stay in use.
type TLS struct {
	// CAFile is a PEM file with the CA certificates that signed the server certificate. The certificates of the system
	// are used if it is empty.
	CAFile string
	// CertFile and KeyFile are PEM files with the client certificate chain and its private key. Both or none are set.
	CertFile, KeyFile string
	// ServerName is the name that the server certificate must have, if it differs from the host of the address.
	ServerName string
}

// certificates are what the files contain.
type certificates struct {
	config *tls.Config
	// Hash of the contents of the files.
	hash [sha256.Size]byte
}

// load reads the files.
func (t TLS) load() (*certificates, error) {
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	hash := sha256.New()
	read := func(file string) ([]byte, error) {
		data, err := os.ReadFile(file)
		if err == nil {
			fmt.Fprintf(hash, "%d:%s", len(data), data) // a hash never fails
		}
		return data, err
	}
	if t.CAFile != "" {
		pem, err := read(t.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in PEM", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("a client certificate needs both CertFile and KeyFile")
	}
	if t.CertFile != "" {
		chain, err := read(t.CertFile)
		if err != nil {
			return nil, err
		}
		key, err := read(t.KeyFile)
		if err != nil {
			return nil, err
		}
		certificate, err := tls.X509KeyPair(chain, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", t.CertFile, t.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	loaded := &certificates{config: config}
	hash.Sum(loaded.hash[:0])
	return loaded, nil
}

// reloadingCredentials are TLS credentials that read their files for each handshake.
type reloadingCredentials struct {
	credentials.TransportCredentials // of the first certificates, for Info
	state                            *tlsState
}

// tlsState is what clones of credentials share.
type tlsState struct {
	files TLS

	mu sync.Mutex
	// The last certificates that were loaded without error.
	last *certificates
	// The open connections.
	conns map[*tlsConn]bool
}

func newReloadingCredentials(files TLS) (*reloadingCredentials, error) {
	loaded, err := files.load()
	if err != nil {
		return nil, fmt.Errorf("entail: failed to load the certificates: %w", err)
	}
	state := &tlsState{files: files, last: loaded, conns: map[*tlsConn]bool{}}
	return &reloadingCredentials{credentials.NewTLS(loaded.config), state}, nil
}

// reload returns the certificates, or the last usable ones and the error of the present ones.
func (s *tlsState) reload() (*certificates, error) {
	loaded, err := s.files.load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last = loaded
	}
	return s.last, err
}

// renew closes the connections that use other certificates than those in the files. Call it when a server no longer
// trusts the certificate of an open connection: gRPC keeps a connection whatever its calls return.
func (s *tlsState) renew() {
	loaded, err := s.reload()
	if err != nil {
		return // there is nothing to renew with
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		if conn.hash != loaded.hash {
			delete(s.conns, conn)
			_ = conn.Conn.Close() // gRPC notices that the connection ends, for whatever reason
		}
	}
}

func (c *reloadingCredentials) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	loaded, loadErr := c.state.reload()
	conn, info, err := credentials.NewTLS(loaded.config).ClientHandshake(ctx, authority, raw)
	if err != nil && loadErr != nil {
		err = fmt.Errorf("%w (with earlier certificates, because the present ones cannot be loaded: %w)", err, loadErr)
	}
	if err != nil {
		return nil, nil, err
	}
	open := &tlsConn{Conn: conn, state: c.state, hash: loaded.hash, ended: make(chan struct{})}
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	c.state.conns[open] = true
	return open, info, nil
}

func (c *reloadingCredentials) Clone() credentials.TransportCredentials {
	return &reloadingCredentials{c.TransportCredentials.Clone(), c.state}
}

// alertWait is the time for which a write that failed waits for the alert that explains it.
const alertWait = 200 * time.Millisecond

// tlsConn is an open TLS connection. Its writes fail with the alert of the server, if it sent one before it closed the
// connection. Since TLS 1.3, a server rejects the certificate of a client after the handshake of the client: a write can
// fail before the alert is read, with an error that tells nothing.
type tlsConn struct {
	net.Conn
	state *tlsState
	hash  [sha256.Size]byte // of the certificates
	once  sync.Once
	// Closed when a read has failed, with its error.
	ended chan struct{}
	err   error
}

func (c *tlsConn) Close() error {
	c.state.mu.Lock()
	delete(c.state.conns, c)
	c.state.mu.Unlock()
	return c.Conn.Close()
}

func (c *tlsConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if err != nil {
		c.once.Do(func() {
			c.err = err
			close(c.ended)
		})
	}
	return n, err
}

func (c *tlsConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err == nil {
		return n, nil
	}
	// gRPC reads at the same time.
	select {
	case <-c.ended:
		var remote *net.OpError
		if errors.As(c.err, &remote) && remote.Op == "remote error" {
			err = c.err
		}
	case <-time.After(alertWait):
	}
	return n, err
}
