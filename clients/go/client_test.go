package entail

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	entailv1 "entail.dev/clients/go/entail/v1"
	"entail.dev/clients/go/internal/servertest"
)

func TestGet(t *testing.T) {
	_, client := connected(t)
	ctx := testContext(t)
	if err := client.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	pay, err := client.Get(ctx, Request{Path: rulesPath + "pay"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "spec", spec(t, &pay.EffectivePolicies), `{"idle":"1m","request":"30s"}`)
	equal(t, "known", pay.IsKnown(timeoutKind), true)
	if pay.Version.Epoch == "" || pay.Version.Generation == 0 || pay.SyncedAt.IsZero() || pay.ETag == "" {
		t.Errorf("incomplete: %+v", pay)
	}

	byIndex, err := client.Get(ctx, Request{Path: rulesPath + "#1"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "etag by index", byIndex.ETag, pay.ETag)
	byParts, err := client.Get(ctx, Request{Ref: &entailv1.PathRef{
		Gateway: "shop/web", Listener: "http", Route: "HTTPRoute/shop/cart", Rule: "pay",
	}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "etag by parts", byParts.ETag, pay.ETag)

	same, err := client.Get(ctx, Request{Path: rulesPath + "pay", IfNoneMatch: pay.ETag})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "not modified", same.NotModified, true)
	equal(t, "policies", len(same.Policies), 0)
	equal(t, "etag", same.ETag, pay.ETag)

	other, err := client.Get(ctx, Request{Path: rulesPath + "pay"}, "Nothing.example.com")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "policies of another kind", len(other.Policies), 0)
	equal(t, "state of a kind without a profile", other.State("Nothing.example.com"), entailv1.KindState_STATE_UNKNOWN)
	equal(t, "known", other.IsKnown("Nothing.example.com"), false)
	equal(t, "entry of a kind with a longer name", pay.Policy("x"+timeoutKind), nil)
}

func TestBatchGet(t *testing.T) {
	_, client := connected(t)
	ctx := testContext(t)
	look, err := client.Get(ctx, Request{Path: rulesPath + "look"}, timeoutKind)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := client.BatchGet(ctx, []Request{
		{Path: rulesPath + "look"},
		{Path: rulesPath + "nope"},
		{Path: rulesPath + "pay"},
		{Path: rulesPath + "look", IfNoneMatch: look.ETag},
		{Path: "gateways//web"},
		{Path: searchPath},
	}, timeoutKind)
	if err != nil {
		t.Fatal(err)
	}
	results := batch.Results
	equal(t, "results", len(results), 6)
	// The first body has the index 0.
	equal(t, "look", spec(t, &results[0].EffectivePolicies), `{"idle":"1m","request":"10s"}`)
	equal(t, "etag", results[0].ETag, look.ETag)
	equal(t, "pay", spec(t, &results[2].EffectivePolicies), `{"idle":"1m","request":"30s"}`)
	equal(t, "not modified", results[3].NotModified, true)
	equal(t, "shared", results[5].Policies[0], results[0].Policies[0])
	expectError(t, results[1].Err, codes.NotFound, ReasonRuleNotFound)
	expectError(t, results[4].Err, codes.InvalidArgument, ReasonNotAPath)
	equal(t, "version", batch.Version, look.Version)

	if _, err := client.BatchGet(ctx, nil); err != nil {
		t.Errorf("empty batch: %v", err)
	}
	tooMany := make([]Request, MaxBatch+1)
	for i := range tooMany {
		tooMany[i].Path = "gateways/shop/web"
	}
	_, err = client.BatchGet(ctx, tooMany)
	expectError(t, err, codes.InvalidArgument, ReasonTooManyPaths)
	most, err := client.BatchGet(ctx, tooMany[1:])
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "results", len(most.Results), MaxBatch)
}

func TestErrors(t *testing.T) {
	server, client := connected(t)
	ctx := testContext(t)
	get := func(path string) error {
		_, err := client.Get(ctx, Request{Path: path})
		return err
	}
	missing := expectError(t, get(rulesPath+"nope"), codes.NotFound, ReasonRuleNotFound)
	equal(t, "nearest", missing.Nearest, strings.TrimSuffix(rulesPath, "/rules/"))
	equal(t, "retryable", missing.Retryable(), false)
	equal(t, "code of the status", grpcstatus.Code(missing), codes.NotFound)
	malformed := expectError(t, get("gateways//web"), codes.InvalidArgument, ReasonNotAPath)
	if !strings.Contains(malformed.Error(), "InvalidArgument (NotAPath)") || !strings.Contains(malformed.Message, "9") {
		t.Errorf("message: %v", malformed)
	}
	expectError(t, get("gateways/shop/nope"), codes.NotFound, ReasonGatewayNotFound)
	// The errors of generated clients are the same.
	_, err := client.Insight().ListPaths(ctx, &entailv1.ListPathsRequest{PageSize: -1})
	expectError(t, err, codes.InvalidArgument, ReasonPageSize)
	stream, err := client.Policies().WatchEffectivePolicies(ctx, &entailv1.WatchEffectivePoliciesRequest{
		Levels: []string{"Attic"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	expectError(t, err, codes.InvalidArgument, ReasonNotALevel)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = client.Get(ended, Request{Path: searchPath})
	expectError(t, err, codes.Canceled, "")
	equal(t, "is context.Canceled", errors.Is(err, context.Canceled), true)
	late, cancel := context.WithDeadline(ctx, time.Now())
	defer cancel()
	_, err = client.Get(late, Request{Path: searchPath})
	equal(t, "is context.DeadlineExceeded", errors.Is(err, context.DeadlineExceeded), true)

	server.Kill()
	gone := expectError(t, get(searchPath), codes.Unavailable, "")
	equal(t, "retryable", gone.Retryable() && IsRetryable(fmt.Errorf("wrapped: %w", gone)), true)
	err = client.Connect(ctx)
	if err == nil || !strings.Contains(err.Error(), "is `entail serve` running there?") {
		t.Errorf("connect: %v", err)
	}
	server.Run()
	servertest.Until(t, "the client reconnects", func() bool { return get(searchPath) == nil })
}

func TestBusyServer(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world}, "--max-concurrency-per-client", "1")
	client := dial(t, server.Address())
	waitForSnapshot(t, client)
	ctx := testContext(t)
	errs := make(chan error, 64)
	requests := make([]Request, 200)
	for i := range requests {
		requests[i].Path = searchPath
	}
	for range cap(errs) {
		go func() {
			_, err := client.BatchGet(ctx, requests)
			errs <- err
		}()
	}
	rejected := 0
	for range cap(errs) {
		if err := <-errs; err != nil {
			failure := expectError(t, err, codes.ResourceExhausted, "")
			equal(t, "pushback", failure.RetryAfter, 100*time.Millisecond)
			equal(t, "retryable", failure.Retryable(), true)
			rejected++
		}
	}
	if rejected == 0 {
		t.Error("no request was rejected")
	}
}

func TestPushback(t *testing.T) {
	exhausted := grpcstatus.Error(codes.ResourceExhausted, "busy")
	for text, want := range map[string]struct {
		after     time.Duration
		retryable bool
	}{
		"100": {100 * time.Millisecond, true},
		"0":   {1, true},
		"-1":  {-1, false},
		"x":   {-1, false},
	} {
		err := newError(context.Background(), exhausted, metadata.Pairs(pushbackTrailer, text))
		failure := expectError(t, err, codes.ResourceExhausted, "")
		equal(t, text, failure.RetryAfter, want.after)
		equal(t, text, failure.Retryable(), want.retryable)
	}
	equal(t, "without a trailer", IsRetryable(newError(context.Background(), exhausted, nil)), false)
	equal(t, "another error", IsRetryable(errors.New("another")), false)
}

func TestAddresses(t *testing.T) {
	for _, valid := range []string{
		"127.0.0.1:1", "localhost:1", "[::1]:1", "http://h:1", "https://h:1", "unix:/x", "unix:///x", "unix:x", "https://h:1/",
	} {
		client, err := Dial(valid)
		if err != nil {
			t.Errorf("%s: %v", valid, err)
			continue
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, invalid := range []string{
		"", "localhost", "https://h", "a b:1", "http://", "1", "unix:", ":1", "h:0", "h:70000", "h:x", "u@h:1", "h:1/path",
		"dns:///h:1",
	} {
		if _, err := Dial(invalid); err == nil || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("%q: %v", invalid, err)
		}
	}
	if _, err := Dial("h:1", WithTLS(TLS{})); err == nil {
		t.Error("certificates without https:// were accepted")
	}
}

func TestProtocolErrors(t *testing.T) {
	equal(t, "no error", pathError(nil), nil)
	expectError(t, pathError(&entailv1.PathError{Code: 5, Reason: "RouteNotFound"}), codes.NotFound, ReasonRouteNotFound)
	expectError(t, pathError(&entailv1.PathError{Code: 99}), codes.Unknown, "")
	expectError(t, pathError(&entailv1.PathError{Code: -1}), codes.Unknown, "")
}

// expectError checks that an error is an [Error] with a code and a reason.
func expectError(t testing.TB, err error, code codes.Code, reason Reason) *Error {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("%T: %v; want an Error", err, err)
	}
	if failure.Code != code || failure.Reason != reason {
		t.Errorf("got %v; want %v (%s)", err, code, reason)
	}
	return failure
}
