package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	entail "entail.dev/clients/go"
	"entail.dev/clients/go/internal/servertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if leak := servertest.LeakedGoroutine(); leak != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "a goroutine is left after all tests:\n%s\n", leak)
		code = 1
	}
	os.Exit(code)
}

// scene is a proxy between a client and a backend, with a server whose policies change.
type scene struct {
	t      *testing.T
	server *servertest.Server
	proxy  *httptest.Server

	mu     sync.Mutex
	fails  int // number of requests that the backend fails
	status int // with this status
	bodies []string
}

// manifests returns the manifests of the example. Limits are per year, so that no bucket is refilled during a test.
func manifests(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../examples/proxy/world.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return edited(t, string(text), "unit: Minute", "unit: Year")
}

func edited(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("%q not found", from)
	}
	return strings.ReplaceAll(text, from, to)
}

func newScene(t *testing.T, manifests string) *scene {
	s := &scene{t: t, server: servertest.New(t, map[string]string{"world.yaml": manifests})}
	backend := httptest.NewServer(s)
	t.Cleanup(backend.Close)
	unreachable := httptest.NewServer(nil)
	unreachable.Close()
	client, err := entail.Dial(s.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	var routes table
	for _, rule := range []string{
		"/cart=HTTPRoute/shop/cart/rules/look@" + backend.URL,
		"/cart/pay=HTTPRoute/shop/cart/rules/pay@" + backend.URL,
		"/till=HTTPRoute/shop/cart/rules/pay@" + backend.URL,
		"/search=HTTPRoute/shop/search/rules/#0@" + backend.URL,
		"/unreachable=HTTPRoute/shop/cart/rules/look@" + unreachable.URL,
	} {
		if err := routes.Set(rule); err != nil {
			t.Fatal(err)
		}
	}
	proxy, err := newProxy(context.Background(), client, "gateways/shop/web/listeners/http", routes)
	if err != nil {
		t.Fatal(err)
	}
	s.proxy = httptest.NewServer(proxy)
	t.Cleanup(func() {
		s.proxy.Close()
		if err := proxy.mirror.Close(); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func startedScene(t *testing.T, manifests string) *scene {
	s := newScene(t, manifests)
	s.start()
	return s
}

func (s *scene) start() {
	s.t.Helper()
	s.server.Run()
	s.until("the proxy is live", func() bool { return s.get("/search").header.Get(policiesHeader) == "live" })
}

func (s *scene) until(what string, isTrue func() bool) {
	s.t.Helper()
	servertest.Until(s.t, what, isTrue)
}

// ServeHTTP is the backend.
func (s *scene) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(body))
	if s.fails > 0 {
		s.fails--
		if s.status == 0 {
			s.mu.Unlock()
			<-request.Context().Done() // it does not respond
			s.mu.Lock()
			return
		}
		response.WriteHeader(s.status)
	}
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (s *scene) get(path string) reply { return s.send(http.MethodGet, path, "", nil) }

func (s *scene) send(method, path, body string, header http.Header) reply {
	s.t.Helper()
	request, err := http.NewRequest(method, s.proxy.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// expect lets the backend fail some requests, sends one, and checks its status, retries, and attempts at the backend.
func (s *scene) expect(fails, failure int, send func() reply, status, retries, attempts int) {
	s.t.Helper()
	if got := s.try(fails, failure, send); got != [3]int{status, retries, attempts} {
		s.t.Errorf("got %v, want %v", got, []int{status, retries, attempts})
	}
}

func (s *scene) try(fails, failure int, send func() reply) [3]int {
	s.t.Helper()
	s.mu.Lock()
	s.fails, s.status, s.bodies = fails, failure, nil
	s.mu.Unlock()
	got := send()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = 0
	retries, err := strconv.Atoi(got.header.Get(retriesHeader))
	if err != nil {
		s.t.Errorf("%+v: %v", got, err)
	}
	return [3]int{got.status, retries, len(s.bodies)}
}

// spend sends requests until the bucket is empty, which takes some tokens.
func (s *scene) spend(path string, tokens int) {
	s.t.Helper()
	for range tokens {
		if got := s.get(path); got.status != 200 {
			s.t.Fatalf("%+v", got)
		}
	}
	got := s.get(path)
	if seconds, err := strconv.Atoi(got.header.Get("Retry-After")); got.status != 429 || err != nil || seconds < 1 {
		s.t.Errorf("%+v; want 429", got)
	}
}

func TestEachRuleHasItsRetries(t *testing.T) {
	s := startedScene(t, manifests(t))
	get := func(path string) func() reply { return func() reply { return s.get(path) } }
	// The policy of the Gateway: two retries, on two statuses.
	s.expect(0, 503, get("/cart"), 200, 0, 1)
	s.expect(2, 503, get("/cart"), 200, 2, 3)
	s.expect(3, 502, get("/cart"), 502, 2, 3)
	s.expect(1, 500, get("/cart"), 500, 0, 1)
	// It also applies if the backend is unreachable.
	s.expect(0, 503, get("/unreachable"), 502, 2, 0)
	// Merged with the policy of the rule: one retry, with the triggers of the Gateway.
	s.expect(1, 503, get("/cart/pay"), 200, 1, 2)
	s.expect(2, 503, get("/cart/pay"), 503, 1, 2)
	// Replaced by the policy of the route: four retries, on any failure.
	s.expect(4, 500, get("/search?q=1"), 200, 4, 5)
}

func TestATimeoutIsRetried(t *testing.T) {
	world := edited(t, manifests(t), "timeout: 10s", "timeout: 100ms")
	s := startedScene(t, edited(t, world, "[connect-failure,", "[reset,"))
	s.expect(100, 0, func() reply { return s.get("/cart") }, 504, 2, 3)
}

func TestOnlyRepeatableRequestsAreRetried(t *testing.T) {
	s := startedScene(t, manifests(t))
	s.expect(1, 503, func() reply { return s.send("POST", "/cart", "one loaf", nil) }, 503, 0, 1)
	key := http.Header{"Idempotency-Key": {"7"}}
	s.expect(1, 503, func() reply { return s.send("POST", "/cart", "one loaf", key) }, 200, 1, 2)
	if want := []string{"one loaf", "one loaf"}; !slices.Equal(s.bodies, want) {
		t.Errorf("got %v, want %v", s.bodies, want)
	}
	small := strings.Repeat("x", maxBuffered)
	s.expect(1, 503, func() reply { return s.send("PUT", "/cart", small, nil) }, 200, 1, 2)
	// One byte more than is buffered: it is forwarded completely, without retries.
	s.expect(1, 503, func() reply { return s.send("PUT", "/cart", small+"x", nil) }, 503, 0, 1)
	if want := []string{small + "x"}; !slices.Equal(s.bodies, want) {
		t.Errorf("got %d bodies", len(s.bodies))
	}
	// Ambiguous targets are rejected.
	s.bodies = nil
	for _, path := range []string{"/search/../cart/pay", "/search/%2E%2e/cart/pay", "//cart/pay"} {
		if got := s.get(path); got.status != 400 {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if got := s.get("/carts"); got.status != 404 {
		t.Errorf("%+v", got)
	}
	if len(s.bodies) > 0 {
		t.Error("the backend received requests")
	}
}

func TestEachRuleHasItsOwnLimit(t *testing.T) {
	// With the policy on the whole route, both rules have the same answer.
	s := startedScene(t, edited(t, manifests(t), ", sectionName: pay", ""))
	s.spend("/cart/pay", 5)
	if got := s.get("/till"); got.status != 429 {
		t.Errorf("the same rule: %+v", got)
	}
	s.spend("/cart", 5)
	if got := s.get("/search"); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

func TestAnEditChangesLimitsAndRetries(t *testing.T) {
	s := startedScene(t, manifests(t))
	s.spend("/cart/pay", 5)
	// A changed limit starts with a full bucket.
	world := edited(t, manifests(t), "requests: 5,", "requests: 3,")
	world = edited(t, world, "numRetries: 1}", "numRetries: 3}")
	s.server.Write("world.yaml", world)
	s.until("the new limit", func() bool { return s.get("/cart/pay").status == 200 })
	s.expect(3, 503, func() reply { return s.get("/cart/pay") }, 200, 3, 4)
	s.spend("/cart/pay", 1)
	// Changed retries do not refill the bucket. A rule with tokens shows that they are applied.
	s.server.Write("world.yaml", edited(t, world, "[502, 503]", "[418]"))
	s.until("the new retries", func() bool {
		return s.try(1, 418, func() reply { return s.get("/cart") }) == [3]int{200, 1, 2}
	})
	if got := s.get("/cart/pay"); got.status != 429 {
		t.Errorf("%+v", got)
	}
}

func TestTheProxyContinuesWithoutTheServer(t *testing.T) {
	s := newScene(t, manifests(t))
	// Before the first update no request passes.
	if got := s.get("/cart"); got.status != 503 || got.header.Get("Retry-After") != "1" {
		t.Errorf("%+v", got)
	}
	s.start()
	s.spend("/cart/pay", 5)
	s.server.Kill()
	s.until("it is stale", func() bool { return s.get("/search").header.Get(policiesHeader) == "stale" })
	s.expect(2, 503, func() reply { return s.get("/cart") }, 200, 2, 3)
	// An update with the same answers does not refill the buckets.
	s.start()
	if got := s.get("/cart/pay"); got.status != 429 {
		t.Errorf("%+v", got)
	}
}

func TestRequestsWithoutAKnownPolicyAreRejected(t *testing.T) {
	s := startedScene(t, manifests(t))
	answers := func(path string, status int, text string) {
		t.Helper()
		s.until(text, func() bool {
			got := s.get(path)
			return got.status == status && strings.Contains(got.body, text)
		})
	}
	// A profile that contradicts itself.
	s.server.Write("profile.yaml", `
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: backendtrafficpolicies.gateway.envoyproxy.io}
spec:
  policy: {group: gateway.envoyproxy.io, kind: BackendTrafficPolicy}
  class: Direct
  strategies: [PatchDefaults, PatchOverrides]
`)
	answers("/cart", 503, "the policies of "+kind+" are not known")
	s.server.Remove("profile.yaml")
	answers("/cart", 200, "")
	// A limit that this proxy does not support affects only its rule.
	s.server.Write("world.yaml", edited(t, manifests(t),
		"      - limit: {requests: 5,", "      - cost: {}\n        limit: {requests: 5,"))
	answers("/cart/pay", 503, "cannot be applied")
	answers("/cart", 200, "")
	// A deleted rule.
	s.server.Write("world.yaml", edited(t, manifests(t), "name: pay\n", "name: order\n"))
	answers("/cart/pay", 503, "path not found")
	answers("/cart", 200, "")
}

func TestFlags(t *testing.T) {
	for _, invalid := range []string{
		"", "/=x", "cart=HTTPRoute/a/b/rules/c@http://h", "/=HTTPRoute/a/b@http://h", "/=HTTPRoute//b/rules/c@http://h",
		"/=HTTPRoute/a/b/rules/c@https://h", "/=HTTPRoute/a/b/rules/c@h",
	} {
		if err := new(table).Set(invalid); err == nil {
			t.Errorf("%q was accepted", invalid)
		}
	}
}
