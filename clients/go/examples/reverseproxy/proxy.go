package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	entail "entail.dev/clients/go"
	entailv1 "entail.dev/clients/go/entail/v1"
)

// maxBuffered is the maximum size in bytes of a request body that is buffered for retries.
const maxBuffered = 64 * 1024

const (
	// retriesHeader is the response header with the number of retries.
	retriesHeader = "X-Retries"
	// policiesHeader is the response header with the state of the applied policies: live, or stale for the last known.
	policiesHeader = "X-Policies"
)

// proxy handles requests: it finds the rule, looks up its policy, and forwards the request.
type proxy struct {
	mirror  *entail.Mirror[compiled]
	routes  table
	reverse *httputil.ReverseProxy
}

// newProxy creates a proxy for a listener, whose mirror ends with the context.
func newProxy(ctx context.Context, client *entail.Client, listener string, routes table) (*proxy, error) {
	// Only the paths of this proxy, at the effective level of the policy kind.
	mirror, err := entail.NewCompiledMirror(ctx, client, entail.Selection{
		Prefixes: []string{listener},
		Levels:   []string{"RouteRule"},
		Kinds:    []string{kind},
	}, compile)
	if err != nil {
		return nil, err
	}
	routes.prepare(listener)
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	return &proxy{
		mirror: mirror,
		routes: routes,
		reverse: &httputil.ReverseProxy{
			Transport:    retrier{transport},
			ErrorHandler: backendFailed,
			Rewrite: func(request *httputil.ProxyRequest) {
				rule, _ := request.In.Context().Value(ruleKey{}).(*rule)
				request.Out.URL.Scheme, request.Out.URL.Host = rule.backend.Scheme, rule.backend.Host
			},
		},
	}, nil
}

// ruleKey is the key of the rule in the context of a request.
type ruleKey struct{}

func (p *proxy) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	path := request.URL.EscapedPath()
	if request.Method == http.MethodConnect || !isUnambiguous(path) {
		http.Error(response, "ambiguous target", http.StatusBadRequest)
		return
	}
	rule := p.routes.find(path)
	if rule == nil {
		http.Error(response, "no matching route", http.StatusNotFound)
		return
	}
	policy, state, err := p.policy(rule)
	if err != nil {
		response.Header().Set("Retry-After", "1")
		http.Error(response, err.Error(), http.StatusServiceUnavailable)
		return
	}
	// The limit counts requests, not attempts: retries are invisible to the client.
	if wait := rule.bucket.take(policy.limit); wait > 0 {
		// The header has whole seconds: round up.
		response.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		http.Error(response, "too many requests", http.StatusTooManyRequests)
		return
	}
	if err := buffer(request, &policy.retry); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	response.Header().Set(policiesHeader, state)
	ctx := context.WithValue(request.Context(), ruleKey{}, rule)
	ctx = context.WithValue(ctx, retryKey{}, &policy.retry)
	p.reverse.ServeHTTP(response, request.WithContext(ctx))
}

// policy looks up the policy of a rule in the mirror, and its state for the response header. If the policy is not known,
// no request passes, because there might be a limit.
func (p *proxy) policy(rule *rule) (*policy, string, error) {
	state := "live"
	if !p.mirror.Connected() {
		state = "stale"
	}
	// The answer and the states of kinds are those of one update.
	snapshot := p.mirror.Snapshot()
	// Every error becomes 503. ErrNotReady is temporary. ErrPathNotFound: the rule is in the routing table, so it was
	// deleted or is newer than the copy, which is temporary, too; 404 could be cached.
	answer, err := snapshot.LookUp(rule.path)
	if err != nil {
		return nil, "", err
	}
	info := snapshot.Info()
	for _, incomplete := range info.Kinds {
		if !isRelevant(incomplete.GetKind()) {
			continue
		}
		if incomplete.GetState() != entailv1.KindState_STATE_STALE {
			return nil, "", fmt.Errorf("the policies of %s are not known", incomplete.GetKind())
		}
		// The last known policies still apply, here without a time limit. To limit their age, compare SyncedAt with the
		// current time, if the server reads a cluster.
		state = "stale"
	}
	if answer.err != nil {
		return nil, "", errors.New("the policy of this route cannot be applied")
	}
	return answer.policy, state, nil
}

// isRelevant reports whether the answers of this proxy depend on a kind: its policy kind, and the kinds that paths
// consist of, which are those of the Gateway API and of Kubernetes. A server also reports the states of other kinds.
func isRelevant(name string) bool {
	return name == kind || strings.HasSuffix(name, ".gateway.networking.k8s.io") || !strings.Contains(name, ".")
}

// backendFailed answers a request whose last attempt has no response.
func backendFailed(response http.ResponseWriter, request *http.Request, err error) {
	slog.Warn("the backend does not respond", "path", request.URL.Path, "error", err)
	var failure *attemptsError
	if errors.As(err, &failure) {
		response.Header().Set(retriesHeader, strconv.FormatUint(uint64(failure.retries), 10))
	}
	status := http.StatusBadGateway
	if errors.Is(err, errAttemptTimeout) {
		status = http.StatusGatewayTimeout
	}
	http.Error(response, "the backend does not respond", status)
}
