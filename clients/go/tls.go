package entail

import (
	"context"
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
// connections after an hour. If the files cannot be used, for example because a renewal has replaced one of them only,
// the last usable ones stay in use.
type TLS struct {
	// CAFile is a PEM file with the CA certificates that signed the server certificate. The certificates of the system
	// are used if it is empty.
	CAFile string
	// CertFile and KeyFile are PEM files with the client certificate chain and its private key. Both or none are set.
	CertFile, KeyFile string
	// ServerName is the name that the server certificate must have, if it differs from the host of the address.
	ServerName string
}

// load reads the files.
func (t TLS) load() (*tls.Config, error) {
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
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
		certificate, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", t.CertFile, t.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

// reloadingCredentials are TLS credentials that read their files for each handshake.
type reloadingCredentials struct {
	credentials.TransportCredentials // of the first configuration, for Info
	files                            TLS

	mu   sync.Mutex
	last *tls.Config // the last configuration that was loaded without error
}

func newReloadingCredentials(files TLS) (*reloadingCredentials, error) {
	config, err := files.load()
	if err != nil {
		return nil, fmt.Errorf("entail: failed to load the certificates: %w", err)
	}
	return &reloadingCredentials{TransportCredentials: credentials.NewTLS(config), files: files, last: config}, nil
}

func (c *reloadingCredentials) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	config, loadErr := c.files.load()
	c.mu.Lock()
	if loadErr != nil {
		config = c.last
	} else {
		c.last = config
	}
	c.mu.Unlock()
	conn, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
	if err != nil && loadErr != nil {
		err = fmt.Errorf("%w (with earlier certificates, because the present ones cannot be loaded: %w)", err, loadErr)
	}
	if err != nil {
		return nil, nil, err
	}
	return &alertConn{Conn: conn, ended: make(chan struct{})}, info, nil
}

func (c *reloadingCredentials) Clone() credentials.TransportCredentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &reloadingCredentials{TransportCredentials: c.TransportCredentials.Clone(), files: c.files, last: c.last}
}

// alertWait is the time for which a write that failed waits for the alert that explains it.
const alertWait = 200 * time.Millisecond

// alertConn is a TLS connection whose writes fail with the alert of the server, if it sent one before it closed the
// connection. Since TLS 1.3, a server rejects the certificate of a client after the handshake of the client: a write can
// fail before the alert is read, with an error that tells nothing.
type alertConn struct {
	net.Conn
	once sync.Once
	// Closed when a read has failed, with its error.
	ended chan struct{}
	err   error
}

func (c *alertConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if err != nil {
		c.once.Do(func() {
			c.err = err
			close(c.ended)
		})
	}
	return n, err
}

func (c *alertConn) Write(data []byte) (int, error) {
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
