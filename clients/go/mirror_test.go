package entail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	entailv1 "entail.dev/clients/go/entail/v1"
	"entail.dev/clients/go/internal/servertest"
)

func rules() Selection {
	return Selection{
		Prefixes: []string{"gateways/shop/web"},
		Levels:   []string{"RouteRule"},
		Kinds:    []string{timeoutKind},
	}
}

func TestMirror(t *testing.T) {
	_, client := connected(t)
	mirror := followed(t, client, rules())
	equal(t, "paths", mirror.Snapshot().Len(), 3)
	for path, want := range map[string]string{
		rulesPath + "look": `{"idle":"1m","request":"10s"}`,
		rulesPath + "#0":   `{"idle":"1m","request":"10s"}`,
		rulesPath + "pay":  `{"idle":"1m","request":"30s"}`,
		rulesPath + "#1":   `{"idle":"1m","request":"30s"}`,
		searchPath:         `{"idle":"1m","request":"10s"}`,
	} {
		policies, ok := mirror.Get(path)
		if !ok {
			t.Errorf("%s: not found", path)
			continue
		}
		equal(t, path, spec(t, policies), want)
	}
	for path, want := range map[string]error{
		rulesPath + "nope":                   ErrPathNotFound,
		rulesPath + "#2":                     ErrPathNotFound,
		"gateways/shop/web":                  ErrNotSelected,
		"gateways/shop/web2/listeners/http":  ErrNotSelected,
		rulesPath + "look/backends/x":        ErrNotSelected,
		"no path":                            ErrNotSelected,
		"":                                   ErrNotSelected,
		"mesh/":                              ErrNotSelected,
		"mesh/shop/services/shop/cart":       ErrNotSelected,
		"mesh/shop/services/shop/cart/ports": ErrNotSelected,
	} {
		_, err := mirror.LookUp(path)
		equal(t, "error of "+path, err, want)
		if _, ok := mirror.Get(path); ok {
			t.Errorf("%s: found", path)
		}
	}
	names := maps.Collect(mirror.Snapshot().All())
	equal(t, "names", len(names), 3)
	if _, ok := names[rulesPath+"pay"]; !ok {
		t.Errorf("names: %v", names)
	}
	for range mirror.Snapshot().All() {
		break // an iteration that ends early
	}
	status := mirror.Status()
	if !status.Connected || !status.Ready || status.Err != nil || status.UpdatedAt.IsZero() || status.SyncedAt.IsZero() {
		t.Errorf("status: %+v", status)
	}
	equal(t, "connected", mirror.Connected(), true)
	if age, ok := mirror.Age(); !ok || age < 0 || age > servertest.Timeout {
		t.Errorf("age: %v, %v", age, ok)
	}
	equal(t, "kinds", len(mirror.Kinds()), 0)
	equal(t, "known", mirror.Snapshot().IsKnown(timeoutKind), true)
}

func TestMirrorFollowsChanges(t *testing.T) {
	server, client := connected(t)
	mirror := followed(t, client, rules())
	before := mirror.Snapshot()
	changed := mirror.Changed()
	server.Write("world.yaml", edited(t, world, "request: 10s", "request: 20s"))
	select {
	case <-changed:
	case <-testContext(t).Done():
		t.Fatal("no notification")
	}
	after := mirror.Snapshot()
	look := func(snapshot *Snapshot[*EffectivePolicies]) string {
		policies, err := snapshot.LookUp(rulesPath + "look")
		if err != nil {
			t.Fatal(err)
		}
		return spec(t, policies)
	}
	equal(t, "before", look(before), `{"idle":"1m","request":"10s"}`)
	equal(t, "after", look(after), `{"idle":"1m","request":"20s"}`)
	// Only answers changed: the paths are shared.
	equal(t, "index", after.index, before.index)
	if after.Info().Version.Generation <= before.Info().Version.Generation {
		t.Errorf("versions: %v, %v", before.Info().Version, after.Info().Version)
	}

	// A rule gets another name, one is added, and a route is deleted.
	changedWorld := edited(t, world, "- name: pay\n", "- name: buy\n")
	changedWorld = edited(t, changedWorld, "metadata: {name: search, namespace: shop}", "metadata: {name: find, namespace: shop}")
	server.Write("world.yaml", changedWorld)
	waitFor(t, mirror, func(Status) bool {
		_, ok := mirror.Get(rulesPath + "buy")
		return ok
	})
	_, err := mirror.LookUp(searchPath)
	equal(t, "deleted route", err, ErrPathNotFound)
	_, err = mirror.LookUp(rulesPath + "pay")
	equal(t, "renamed rule", err, ErrPathNotFound)
	if _, ok := before.Get(searchPath); !ok {
		t.Error("an earlier snapshot changed")
	}
	if _, ok := mirror.Get(rulesPath + "#1"); !ok {
		t.Error("the renamed rule is not found by its index")
	}
}

func TestMirrorReportsUnknownKinds(t *testing.T) {
	server, client := connected(t)
	mirror := followed(t, client, rules())
	changed := mirror.Changed()
	// A profile that contradicts itself.
	server.Write("world.yaml", edited(t, world, "class: Inherited", "class: Direct"))
	select {
	case <-changed:
	case <-testContext(t).Done():
		t.Fatal("no notification")
	}
	waitFor(t, mirror, func(status Status) bool { return !status.IsKnown(timeoutKind) })
	equal(t, "state", mirror.Kinds()[0].GetState(), entailv1.KindState_STATE_UNKNOWN)
	policies, err := mirror.LookUp(rulesPath + "look")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "spec", policies.Policy(timeoutKind).GetSpecJson(), "")
	server.Write("world.yaml", world)
	waitFor(t, mirror, func(status Status) bool { return status.IsKnown(timeoutKind) })
}

func TestMirrorBeforeTheServer(t *testing.T) {
	server, _ := connected(t)
	socket := filepath.Join(servertest.Folder(t), "later.sock")
	client := dial(t, "unix:"+socket)
	// It does not wait for its first delay, 36 s, once the connection is there.
	mirror, err := NewMirror(context.Background(), client, rules(), WithMaxBackoff(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	waitFor(t, mirror, func(status Status) bool { return status.Err != nil })
	_, err = mirror.LookUp(searchPath)
	equal(t, "error", err, ErrNotReady)
	if _, ok := mirror.Age(); ok || mirror.Snapshot().Ready() || mirror.Connected() {
		t.Error("the mirror is ready without a server")
	}
	select {
	case <-mirror.Ready():
		t.Error("the mirror is ready without a server")
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err = mirror.WaitReady(ctx)
	var failure *Error
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &failure) || failure.Code != codes.Unavailable {
		t.Errorf("wait: %v", err)
	}
	servertest.StartRelayAt(t, socket, server.Socket)
	if err := mirror.WaitReady(testContext(t)); err != nil {
		t.Fatal(err)
	}
	<-mirror.Ready()
	if _, ok := mirror.Get(searchPath); !ok {
		t.Error("not found")
	}
}

func TestMirrorSurvivesARestart(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	recorder := &recorder{}
	client := dial(t, server.Address(), WithDialOptions(grpc.WithChainStreamInterceptor(recorder.intercept)))
	var compiled atomic.Int32
	mirror, err := NewCompiledMirror(context.Background(), client, rules(), func(policies *EffectivePolicies) string {
		compiled.Add(1)
		return policies.ETag
	})
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	if err := mirror.WaitReady(testContext(t)); err != nil {
		t.Fatal(err)
	}
	first := mirror.Snapshot()
	equal(t, "distinct answers", compiled.Load(), 2)

	server.Stop()
	status := waitFor(t, mirror, func(status Status) bool { return !status.Connected })
	var failure *Error
	if !errors.As(status.Err, &failure) || failure.Code != codes.Unavailable {
		t.Errorf("error: %v", status.Err)
	}
	if _, ok := mirror.Get(searchPath); !ok {
		t.Error("the copy is gone")
	}
	server.Run()
	epoch := first.Info().Version.Epoch
	waitFor(t, mirror, func(status Status) bool { return status.Connected && status.Version.Epoch != epoch })
	// Paths and answers are the same: the token is valid for the new server, and nothing is sent again.
	last := recorder.last()
	equal(t, "reset", last.reset, false)
	equal(t, "paths", last.paths, 0)
	equal(t, "index", mirror.Snapshot().index, first.index)
	equal(t, "compiled", compiled.Load(), 2)

	// While the server is gone, one answer changes: the new server does not know what was sent, and resets.
	server.Kill()
	waitFor(t, mirror, func(status Status) bool { return !status.Connected })
	server.Write("world.yaml", edited(t, world, "request: 30s", "request: 40s"))
	server.Run()
	waitFor(t, mirror, func(status Status) bool { return status.Connected })
	last = recorder.last()
	equal(t, "reset", last.reset, true)
	equal(t, "paths", last.paths, 3)
	equal(t, "compiled", compiled.Load(), 3)
	changed, ok := mirror.Get(rulesPath + "pay")
	unchanged, _ := mirror.Get(rulesPath + "look")
	before, _ := first.Get(rulesPath + "pay")
	same, _ := first.Get(rulesPath + "look")
	equal(t, "found", ok, true)
	equal(t, "changed", changed == before, false)
	equal(t, "unchanged", unchanged, same)
}

func TestMirrorResumesAfterALostConnection(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	relay := servertest.StartRelay(t, server.Socket)
	recorder := &recorder{}
	client := dial(t, relay.Address(), WithDialOptions(grpc.WithChainStreamInterceptor(recorder.intercept)))
	mirror := followed(t, client, rules())
	direct := followed(t, dial(t, server.Address()), rules())
	streams := func() int { return recorder.streams() }

	relay.Cut()
	servertest.Until(t, "the mirror reconnects", func() bool { return streams() > 1 && mirror.Connected() })
	last := recorder.last()
	equal(t, "reset", last.reset, false)
	equal(t, "paths", last.paths, 0)

	// A change that the mirror misses: it gets the difference, because the server remembers what it sent.
	mirror.Close()
	waitingClient := dial(t, relay.Address(), WithDialOptions(grpc.WithChainStreamInterceptor(recorder.intercept)))
	waiting := followed(t, waitingClient, rules(), WithMaxBackoff(50*time.Second))
	before := streams()
	relay.Cut()
	waitFor(t, waiting, func(status Status) bool { return !status.Connected })
	server.Write("world.yaml", edited(t, world, "request: 30s", "request: 40s"))
	waitFor(t, direct, func(Status) bool {
		pay, ok := direct.Get(rulesPath + "pay")
		return ok && strings.Contains(spec(t, pay), "40s")
	})
	waitFor(t, waiting, func(status Status) bool { return status.Connected })
	equal(t, "streams", streams(), before+1)
	last = recorder.last()
	pay, ok := waiting.Get(rulesPath + "pay")
	equal(t, "found", ok, true)
	equal(t, "spec", spec(t, pay), `{"idle":"1m","request":"40s"}`)
	equal(t, "reset", last.reset, false)
	if last.paths > 1 {
		t.Errorf("%d paths were sent; want the difference", last.paths)
	}
}

func TestMirrorNoticesASilentServer(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	relay := servertest.StartRelay(t, server.Socket)
	mirror := followed(t, dial(t, relay.Address()), rules(), WithMessageTimeout(300*time.Millisecond))
	relay.SetSilent(true)
	status := waitFor(t, mirror, func(status Status) bool { return !status.Connected })
	if status.Err == nil || !strings.Contains(status.Err.Error(), "no message from the server within 300ms") {
		t.Errorf("error: %v", status.Err)
	}
	relay.SetSilent(false)
	relay.Cut()
	waitFor(t, mirror, func(status Status) bool { return status.Connected })
}

func TestMirrorKeepsAStreamWithMessages(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	recorder := &recorder{}
	client := dial(t, server.Address(), WithDialOptions(grpc.WithChainStreamInterceptor(recorder.intercept)))
	const timeout = 2 * time.Second
	mirror := followed(t, client, rules(), WithMessageTimeout(timeout))
	for n, end := 0, time.Now().Add(timeout*3/2); time.Now().Before(end); n++ {
		request := fmt.Sprintf("request: %ds", 100+n)
		server.Write("world.yaml", edited(t, world, "request: 10s", request))
		waitFor(t, mirror, func(Status) bool {
			look, ok := mirror.Get(rulesPath + "look")
			return ok && strings.Contains(spec(t, look), fmt.Sprintf(`"%ds"`, 100+n))
		})
	}
	equal(t, "streams", recorder.streams(), 1)
}

// TestMirrorAfterAProtocolError makes a message inconsistent on its way: the mirror keeps its copy, and starts again.
func TestMirrorAfterAProtocolError(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	recorder := &recorder{}
	client := dial(t, server.Address(), WithDialOptions(grpc.WithChainStreamInterceptor(recorder.intercept)))
	mirror := followed(t, client, rules(), WithMaxBackoff(50*time.Second))
	recorder.mu.Lock()
	recorder.corrupt = true
	recorder.mu.Unlock()
	server.Write("world.yaml", edited(t, world, "request: 30s", "request: 40s"))
	status := waitFor(t, mirror, func(status Status) bool { return !status.Connected })
	failure := expectError(t, status.Err, codes.Internal, "")
	if !strings.Contains(failure.Message, "unknown answer") {
		t.Errorf("error: %v", failure)
	}
	pay, ok := mirror.Get(rulesPath + "pay")
	if !ok || spec(t, pay) != `{"idle":"1m","request":"30s"}` {
		t.Errorf("the copy changed: %v", pay)
	}
	waitFor(t, mirror, func(status Status) bool { return status.Connected })
	equal(t, "reset", recorder.last().reset, true)
	pay, ok = mirror.Get(rulesPath + "pay")
	equal(t, "found", ok, true)
	equal(t, "spec", spec(t, pay), `{"idle":"1m","request":"40s"}`)
}

func TestMirrorIsRejected(t *testing.T) {
	_, client := connected(t)
	for _, selection := range []Selection{
		{Prefixes: []string{"gateways/shop"}}, {Prefixes: []string{""}}, {Levels: []string{"Attic"}},
	} {
		if mirror, err := NewMirror(context.Background(), client, selection); err == nil {
			mirror.Close()
			t.Errorf("%v was accepted", selection)
		}
	}
	// What only the server knows.
	mirror, err := NewMirror(context.Background(), client, Selection{Kinds: make([]string, 101)})
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	status := waitFor(t, mirror, func(status Status) bool { return status.Err != nil })
	expectError(t, status.Err, codes.InvalidArgument, ReasonTooMany)
}

func TestMirrorEnds(t *testing.T) {
	server := servertest.Start(t, map[string]string{"world.yaml": world})
	follow := func(end func(client *Client, cancel context.CancelFunc, mirror *Mirror[*EffectivePolicies])) {
		t.Helper()
		before := runtime.NumGoroutine()
		client, err := Dial(server.Address())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		mirror, err := NewMirror(ctx, client, rules())
		if err != nil {
			t.Fatal(err)
		}
		if err := mirror.WaitReady(testContext(t)); err != nil {
			t.Fatal(err)
		}
		end(client, cancel, mirror)
		status, err := mirror.WaitFor(testContext(t), func(status Status) bool { return false })
		equal(t, "error", err, ErrMirrorClosed)
		equal(t, "error of the status", status.Err, ErrMirrorClosed)
		equal(t, "connected", mirror.Connected(), false)
		if err := mirror.Close(); err != nil {
			t.Error(err)
		}
		if _, ok := mirror.Get(searchPath); !ok {
			t.Error("the last copy is gone")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		servertest.Until(t, "its goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	}
	follow(func(_ *Client, _ context.CancelFunc, mirror *Mirror[*EffectivePolicies]) { mirror.Close() })
	follow(func(_ *Client, cancel context.CancelFunc, _ *Mirror[*EffectivePolicies]) { cancel() })
	follow(func(client *Client, _ context.CancelFunc, _ *Mirror[*EffectivePolicies]) { client.Close() })
	// Also while it waits for a server.
	server.Kill()
	client := dial(t, server.Address())
	mirror, err := NewMirror(context.Background(), client, rules(), WithMaxBackoff(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, mirror, func(status Status) bool { return status.Err != nil })
	mirror.Close()
}

func TestMirrorLookUpsDoNotAllocate(t *testing.T) {
	server, client := connected(t)
	server.Write("mesh.yaml", meshRoute)
	mirror := followed(t, client, Selection{})
	const mesh = "mesh/*/services/shop/cart/routes/HTTPRoute/shop/inner/rules/all"
	waitFor(t, mirror, func(Status) bool {
		_, ok := mirror.Get(mesh)
		return ok
	})
	for _, path := range []string{
		rulesPath + "pay", rulesPath + "#1", rulesPath + "nope", rulesPath + "#7", "no path",
		mesh, strings.Replace(mesh, "*", "other", 1), strings.Replace(mesh, "*", "other", 1) + "/backends/Service/shop/cart",
		"mesh/other/services/shop/cart/routes/HTTPRoute/shop/inner/rules/#0",
	} {
		allocations := testing.AllocsPerRun(100, func() {
			snapshot := mirror.Snapshot()
			_, _ = snapshot.LookUp(path)
			_ = snapshot.IsKnown(timeoutKind)
			_ = mirror.Connected()
			_, _ = mirror.Age()
		})
		equal(t, "allocations of "+path, allocations, 0)
	}
	_, err := mirror.LookUp("mesh/other/services/shop/cart/routes/HTTPRoute/shop/inner/rules/#0")
	equal(t, "mesh by index", err, nil)
}

const meshRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: inner, namespace: shop}
spec:
  parentRefs: [{group: "", kind: Service, name: cart}]
  rules:
  - name: all
    backendRefs: [{name: cart, port: 8080}]
`

// TestMirrorConcurrency reads a mirror while it changes; the race detector checks it.
func TestMirrorConcurrency(t *testing.T) {
	server, client := connected(t)
	mirror := followed(t, client, rules())
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// Both values are of one update.
				snapshot := mirror.Snapshot()
				look, _ := snapshot.Get(rulesPath + "look")
				search, _ := snapshot.Get(searchPath)
				if look == nil || look != search {
					t.Error("answers of several updates")
					return
				}
				_ = mirror.Status()
				runtime.Gosched()
			}
		})
	}
	for _, request := range []string{"11s", "12s", "13s"} {
		server.Write("world.yaml", edited(t, world, "request: 10s", "request: "+request))
		waitFor(t, mirror, func(Status) bool {
			look, ok := mirror.Get(rulesPath + "look")
			return ok && strings.Contains(spec(t, look), request)
		})
	}
	close(stop)
	readers.Wait()
}

// waitFor waits until a mirror has a status.
func waitFor[T any](t testing.TB, mirror *Mirror[T], isEnough func(Status) bool) Status {
	t.Helper()
	status, err := mirror.WaitFor(testContext(t), isEnough)
	if err != nil {
		t.Fatalf("%v; status: %+v", err, mirror.Status())
	}
	return status
}

// recorder records the updates of watch streams.
type recorder struct {
	mu      sync.Mutex
	records []*record
	// Whether the next answer of a path gets a number that the server has not sent.
	corrupt bool
}

// record is what a stream sent until its first complete update.
type record struct {
	reset    bool
	paths    int
	complete bool
}

func (r *recorder) intercept(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, conn, method, options...)
	if err != nil {
		return nil, err
	}
	return &recordedStream{ClientStream: stream, recorder: r, record: &record{}}, nil
}

// last returns the record of the last stream that completed an update.
func (r *recorder) last() record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *r.records[len(r.records)-1]
}

// streams returns the number of streams that completed an update.
func (r *recorder) streams() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.records)
}

type recordedStream struct {
	grpc.ClientStream
	recorder *recorder
	record   *record
}

func (s *recordedStream) RecvMsg(message any) error {
	if err := s.ClientStream.RecvMsg(message); err != nil {
		return err
	}
	update := message.(*entailv1.WatchEffectivePoliciesResponse)
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	if s.recorder.corrupt && len(update.GetPaths()) > 0 {
		s.recorder.corrupt = false
		update.Paths[0].Body = 1 << 30
	}
	if s.record.complete {
		return nil
	}
	s.record.reset = s.record.reset || update.GetReset_()
	s.record.paths += len(update.GetPaths())
	if update.GetComplete() {
		s.record.complete = true
		s.recorder.records = append(s.recorder.records, s.record)
	}
	return nil
}
