package entail

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"entail.dev/clients/go/internal/servertest"
)

//go:embed testdata/world.yaml
var world string

const (
	timeoutKind = "TimeoutPolicy.example.com"
	rulesPath   = "gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/"
	searchPath  = "gateways/shop/web/listeners/http/routes/HTTPRoute/shop/search/rules/#0"
)

// edited returns a text with a part replaced, which must exist.
func edited(t testing.TB, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%q not found", from)
	}
	return strings.ReplaceAll(text, from, to)
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

func dial(t testing.TB, address string, options ...Option) *Client {
	t.Helper()
	client, err := Dial(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// connected starts a server with the manifests of the tests, and returns it with a client.
func connected(t testing.TB) (*servertest.Server, *Client) {
	t.Helper()
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	client := dial(t, server.Address())
	waitForSnapshot(t, client)
	return server, client
}

// waitForSnapshot waits until the server answers look-ups.
func waitForSnapshot(t testing.TB, client *Client) {
	t.Helper()
	var last error
	servertest.Until(t, "the first snapshot", func() bool {
		_, last = client.Get(testContext(t), Request{Path: "gateways/shop/web"})
		return last == nil || !IsRetryable(last)
	})
	if last != nil {
		t.Fatal(last)
	}
}

// followed returns a mirror that has its first copy.
func followed(t testing.TB, client *Client, selection Selection, options ...MirrorOption) *Mirror[*EffectivePolicies] {
	t.Helper()
	mirror, err := NewMirror(context.Background(), client, selection, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mirror.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := mirror.WaitReady(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return mirror
}

// spec returns the spec of the only policy of an answer.
func spec(t testing.TB, policies *EffectivePolicies) string {
	t.Helper()
	if len(policies.Policies) != 1 || policies.Policy(timeoutKind) == nil {
		t.Fatalf("%d policies; want one of %s", len(policies.Policies), timeoutKind)
	}
	return policies.Policy(timeoutKind).GetSpecJson()
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
