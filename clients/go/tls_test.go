package entail

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"entail.dev/clients/go/internal/servertest"
)

func TestTLS(t *testing.T) {
	folder := servertest.Folder(t)
	file := func(name string) string { return filepath.Join(folder, name) }
	authority := newAuthority(t)
	other := newAuthority(t)
	write(t, file("ca.crt"), authority.pem)
	write(t, file("other-ca.crt"), other.pem)
	authority.issue(t, "server", file("server.crt"), file("server.key"))
	authority.issue(t, "client", file("client.crt"), file("client.key"))
	other.issue(t, "client", file("other.crt"), file("other.key"))

	server := servertest.Start(t, map[string]string{"world.yaml": world}, "--listen", "127.0.0.1:0",
		"--port-file", file("port"), "--tls-cert", file("server.crt"), "--tls-key", file("server.key"),
		"--tls-client-ca", file("ca.crt"))
	waitForSnapshot(t, dial(t, server.Address()))
	port, err := os.ReadFile(file("port"))
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimSpace(string(port))
	address := "https://" + host

	mutual := TLS{CAFile: file("ca.crt"), CertFile: file("client.crt"), KeyFile: file("client.key")}
	connect := func(address string, options ...Option) error {
		t.Helper()
		return dial(t, address, options...).Connect(testContext(t))
	}
	if err := connect(address, WithTLS(mutual)); err != nil {
		t.Fatal(err)
	}
	named := mutual
	named.ServerName = "localhost"
	if err := connect(address, WithTLS(named)); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		files TLS
		want  TLSFailure
	}{
		"no client certificate":    {TLS{CAFile: file("ca.crt")}, ClientCertificateMissing},
		"other client certificate": {TLS{file("ca.crt"), file("other.crt"), file("other.key"), ""}, ClientCertificateRejected},
		"unknown CA":               {TLS{file("other-ca.crt"), file("client.crt"), file("client.key"), ""}, UnknownServerCA},
		"CAs of the system":        {TLS{"", file("client.crt"), file("client.key"), ""}, UnknownServerCA},
		"other name":               {TLS{file("ca.crt"), file("client.crt"), file("client.key"), "elsewhere"}, InvalidServerCertificate},
	} {
		failure := expectError(t, connect(address, WithTLS(c.files)), codes.Unavailable, "")
		if failure.TLS != c.want || failure.Retryable() || !strings.Contains(failure.Error(), c.want.String()) {
			t.Errorf("%s: %v: %v; want %v", name, failure.TLS, failure, c.want)
		}
	}
	expectError(t, connect(host), codes.Unavailable, "")
	plain := servertest.Start(t, map[string]string{"world.yaml": world}, "--listen", "127.0.0.1:0", "--port-file", file("plain"))
	waitForSnapshot(t, dial(t, plain.Address()))
	if port, err = os.ReadFile(file("plain")); err != nil {
		t.Fatal(err)
	}
	if err := connect("http://" + strings.TrimSpace(string(port))); err != nil {
		t.Error(err)
	}
	failure := expectError(t, connect("https://"+strings.TrimSpace(string(port)), WithTLS(mutual)), codes.Unavailable, "")
	equal(t, "TLS to a server without", failure.TLS, NotTLS)

	for _, files := range []TLS{
		{CAFile: file("missing")}, {CAFile: file("client.key")}, {CertFile: file("client.crt")},
		{CertFile: file("client.crt"), KeyFile: file("other.key")},
	} {
		if _, err := Dial(address, WithTLS(files)); err == nil {
			t.Errorf("%+v was accepted", files)
		}
	}
}

// TestTLSReload renews the certificates of a mirror while it runs, also with files that do not fit together in between.
func TestTLSReload(t *testing.T) {
	folder := servertest.Folder(t)
	file := func(name string) string { return filepath.Join(folder, name) }
	authority := newAuthority(t)
	write(t, file("ca.crt"), authority.pem)
	authority.issue(t, "server", file("server.crt"), file("server.key"))
	authority.issue(t, "client", file("client.crt"), file("client.key"))
	server := servertest.Start(t, map[string]string{"world.yaml": world}, "--listen", "127.0.0.1:0",
		"--port-file", file("port"), "--tls-cert", file("server.crt"), "--tls-key", file("server.key"),
		"--tls-client-ca", file("ca.crt"))
	waitForSnapshot(t, dial(t, server.Address()))
	port, err := os.ReadFile(file("port"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--listen", strings.TrimSpace(string(port))}
	files := TLS{CAFile: file("ca.crt"), CertFile: file("client.crt"), KeyFile: file("client.key")}
	client := dial(t, "https://"+strings.TrimSpace(string(port)), WithTLS(files))
	mirror := followed(t, client, rules())

	// Half of a renewal: the earlier pair stays in use.
	renewed := newAuthority(t)
	renewed.issue(t, "client", file("client.crt"), file("unused.key"))
	restart := func() {
		server.Kill()
		waitFor(t, mirror, func(status Status) bool { return !status.Connected })
		server.RunWith(arguments...)
	}
	restart()
	waitFor(t, mirror, func(status Status) bool { return status.Connected })

	// The rest of it, with another CA: the client uses the new files without being created again.
	renewed.issue(t, "client", file("client.crt"), file("client.key"))
	renewed.issue(t, "server", file("server.crt"), file("server.key"))
	write(t, file("ca.crt"), renewed.pem)
	restart()
	waitFor(t, mirror, func(status Status) bool { return status.Connected })
	if _, err := client.Get(testContext(t), Request{Path: searchPath}); err != nil {
		t.Error(err)
	}

	// A third CA replaces the second one while the connection is open: the server no longer trusts the certificate of the
	// connection, and the client connects again.
	write(t, file("earlier-ca.crt"), renewed.pem)
	renewed.issue(t, "client", file("earlier.crt"), file("earlier.key"))
	earlier := dial(t, "https://"+strings.TrimSpace(string(port)), WithTLS(TLS{
		CAFile: file("earlier-ca.crt"), CertFile: file("earlier.crt"), KeyFile: file("earlier.key"),
	}))
	get := func(client *Client) error {
		_, err := client.Get(testContext(t), Request{Path: searchPath})
		return err
	}
	if err := get(earlier); err != nil {
		t.Fatal(err)
	}
	third := newAuthority(t)
	third.issue(t, "client", file("client.crt"), file("client.key"))
	third.issue(t, "server", file("server.crt"), file("server.key"))
	write(t, file("ca.crt"), third.pem)
	servertest.Until(t, "the server reads the files", func() bool {
		var failure *Error
		return errors.As(get(earlier), &failure) && failure.Code == codes.Unauthenticated
	})
	servertest.Until(t, "the client connects again", func() bool { return get(client) == nil })
	waitFor(t, mirror, func(status Status) bool { return status.Connected && time.Since(status.UpdatedAt) < time.Second })
	expectError(t, get(earlier), codes.Unauthenticated, "")
}

func TestTLSFailures(t *testing.T) {
	for message, want := range map[string]TLSFailure{
		`connection error: desc = "error reading server preface: remote error: tls: certificate required"`: ClientCertificateMissing,
		"remote error: tls: unknown certificate authority":                                                 ClientCertificateRejected,
		"remote error: tls: expired certificate":                                                           ClientCertificateRejected,
		"remote error: tls: handshake failure":                                                             OtherTLSAlert,
		"tls: failed to verify certificate: x509: certificate signed by unknown authority":                 UnknownServerCA,
		"tls: failed to verify certificate: x509: certificate has expired or is not yet valid":             InvalidServerCertificate,
		"tls: first record does not look like a TLS handshake":                                             NotTLS,
		"connection refused": 0,
	} {
		equal(t, message, tlsFailure(message), want)
	}
}

// authority is a CA.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := template("CA")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue writes a certificate for the local host, and its key.
func (a *authority) issue(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := template(name)
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
