package entail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	entailv1 "entail.dev/clients/go/entail/v1"
	"entail.dev/clients/go/internal/pathname"
	"entail.dev/clients/go/internal/servertest"
)

// TestMirrorEqualsServer changes manifests at random while mirrors follow, and compares each mirror with the server after
// each step. At times the connection of the mirrors is cut, or the server is replaced. ENTAIL_SEED sets the seed of the
// first world, and ENTAIL_STEPS the number of steps.
func TestMirrorEqualsServer(t *testing.T) {
	seed, steps := setting(t, "ENTAIL_SEED", 1), setting(t, "ENTAIL_STEPS", 40)
	for n := range uint64(3) {
		t.Run(fmt.Sprintf("seed %d", seed+n), func(t *testing.T) {
			t.Parallel()
			newProperty(t, seed+n).run(int(steps))
		})
	}
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

type property struct {
	t        *testing.T
	random   *rand.Rand
	world    *randomWorld
	server   *servertest.Server
	relay    *servertest.Relay
	client   *Client
	recorder *recorder
	mirrors  []*Mirror[*EffectivePolicies]
	// Names of paths of earlier steps, which may be gone.
	earlier map[string]bool
	// What the test has met, so that it is known not to be empty.
	found, missing, resumed, unknown, ofClients int
}

func newProperty(t *testing.T, seed uint64) *property {
	world := newRandomWorld(seed)
	server := servertest.Start(t, map[string]string{"world.yaml": world.manifests()})
	p := &property{
		t:        t,
		random:   rand.New(rand.NewPCG(seed, 1)),
		world:    world,
		server:   server,
		relay:    servertest.StartRelay(t, server.Socket),
		client:   dial(t, server.Address()),
		recorder: &recorder{},
		earlier:  map[string]bool{},
	}
	client := dial(t, p.relay.Address(), WithDialOptions(grpc.WithChainStreamInterceptor(p.recorder.intercept)))
	for _, selection := range []Selection{
		{},
		{
			Prefixes: []string{"gateways/a/gw0/listeners/http", "gateways/b/gw1", "mesh/*/services/a/s0"},
			Levels:   []string{"RouteRule", "Backend"},
			Kinds:    []string{"RetryPolicy.example.com"},
		},
	} {
		p.mirrors = append(p.mirrors, followed(t, client, selection))
	}
	return p
}

func (p *property) run(steps int) {
	for range steps {
		what := p.world.change()
		switch p.random.IntN(12) {
		case 0:
			p.relay.Cut()
			p.server.Write("world.yaml", p.world.manifests())
			what += ", cut"
		case 1:
			// The server changes while it is not seen.
			p.server.Kill()
			p.server.Write("world.yaml", p.world.manifests())
			p.server.Run()
			what += ", restart"
		default:
			p.server.Write("world.yaml", p.world.manifests())
		}
		p.compare()
		if p.t.Failed() {
			p.t.Fatalf("after step %d: %s\n%s", p.world.step, what, p.world.manifests())
		}
	}
	p.recorder.mu.Lock()
	for _, record := range p.recorder.records {
		if !record.reset {
			p.resumed++
		}
	}
	p.recorder.mu.Unlock()
	p.t.Logf("%d streams, %d of them resumed; %d look-ups found, %d not found; %d mesh clients; %d updates with unknown kinds",
		len(p.recorder.records), p.resumed, p.found, p.missing, p.ofClients, p.unknown)
	if p.found == 0 || p.missing == 0 {
		p.t.Error("no path was found, or all were")
	}
}

// compare waits until server and mirrors have the world of the step, and compares them.
func (p *property) compare() {
	p.t.Helper()
	ctx := testContext(p.t)
	p.server.Until("the server reads the manifests", func() bool {
		_, err := p.client.Get(ctx, Request{Path: p.world.marker()})
		return err == nil
	})
	paths, version := p.paths(ctx)
	for i, mirror := range p.mirrors {
		waitFor(p.t, mirror, func(status Status) bool {
			return status.Version.Epoch == version.Epoch && status.Version.Generation >= version.Generation
		})
		snapshot := mirror.Snapshot()
		// Paths that the mirror has, paths that it may have had, and other names of both.
		names := map[string]bool{}
		for name := range p.earlier {
			names[name] = true
		}
		for _, entry := range snapshot.index.entries {
			names[entry.name] = true
			p.earlier[entry.name] = true
			names[withIndexes(entry)] = true
			if below, ok := strings.CutPrefix(entry.name, anyClient); ok {
				names["mesh/b/"+below], names["mesh/c/"+below] = true, true
				names["mesh/elsewhere/"+withIndexes(entry)[len(anyClient):]] = true
			}
		}
		for _, path := range paths {
			names[path] = true
		}
		p.compareNames(ctx, mirror, snapshot, names)
		if i == 0 {
			p.compareList(snapshot, paths)
		}
	}
}

// compareNames compares look-ups with a batch.
func (p *property) compareNames(
	ctx context.Context, mirror *Mirror[*EffectivePolicies], snapshot *Snapshot[*EffectivePolicies], names map[string]bool,
) {
	p.t.Helper()
	var requests []Request
	for name := range names {
		requests = append(requests, Request{Path: name})
	}
	batch, err := p.client.BatchGet(ctx, requests, mirror.selection.Kinds...)
	if err != nil {
		p.t.Fatal(err)
	}
	info := snapshot.Info()
	equal(p.t, "version", info.Version, batch.Version)
	if !equalKinds(info.Kinds, batch.Kinds) {
		p.t.Errorf("kinds: got %v, want %v", info.Kinds, batch.Kinds)
	}
	p.unknown += min(len(info.Kinds), 1)
	for i, result := range batch.Results {
		name := requests[i].Path
		got, err := snapshot.LookUp(name)
		if !p.selects(snapshot, name) {
			equal(p.t, name, err, ErrNotSelected)
			continue
		}
		var failure *Error
		switch {
		case errors.As(result.Err, &failure):
			if failure.Code != codes.NotFound || !errors.Is(err, ErrPathNotFound) {
				p.t.Errorf("%s: mirror: %v, server: %v", name, err, result.Err)
			}
			p.missing++
		case err != nil:
			p.t.Errorf("%s: mirror: %v, server: found", name, err)
		default:
			equal(p.t, "etag of "+name, got.ETag, result.ETag)
			if !slices.EqualFunc(got.Policies, result.Policies, equalPolicies) {
				p.t.Errorf("%s: got %v, want %v", name, got.Policies, result.Policies)
			}
			p.found++
		}
	}
	p.ofClients += len(snapshot.index.clientRoots)
}

// selects reports whether a mirror has to have a path, by the letter of the documentation and in another way than the
// mirror itself.
func (p *property) selects(snapshot *Snapshot[*EffectivePolicies], name string) bool {
	selector := snapshot.index.selector
	if len(selector.levels) == 0 && len(selector.prefixes) == 0 {
		return true
	}
	candidates := []string{name}
	if parts := strings.Split(name, "/"); parts[0] == "mesh" && !snapshot.index.clientRoots[strings.Join(parts[:5], "/")] {
		parts[1] = "*"
		candidates = append(candidates, strings.Join(parts, "/"))
	}
	return slices.ContainsFunc(candidates, func(name string) bool {
		parsed, err := pathname.Parse(name)
		return err == nil && selector.levels[parsed.Level] && slices.ContainsFunc(selector.prefixes, func(prefix string) bool {
			return strings.HasPrefix(name+"/", prefix+"/")
		})
	})
}

// compareList compares the paths of the mirror of everything with the list of the server.
func (p *property) compareList(snapshot *Snapshot[*EffectivePolicies], paths []string) {
	p.t.Helper()
	var names []string
	for name := range snapshot.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, paths) {
		p.t.Errorf("paths of the mirror:\n%s\npaths of the server:\n%s", strings.Join(names, "\n"), strings.Join(paths, "\n"))
	}
	equal(p.t, "length", snapshot.Len(), len(paths))
}

// paths lists the paths of the server, sorted, and their version.
func (p *property) paths(ctx context.Context) ([]string, Version) {
	p.t.Helper()
	var paths []string
	request := &entailv1.ListPathsRequest{PageSize: 20}
	for {
		reply, err := p.client.Insight().ListPaths(ctx, request)
		if err != nil {
			p.t.Fatal(err)
		}
		paths = append(paths, reply.GetPaths()...)
		request.PageToken = reply.GetNextPageToken()
		if request.PageToken == "" {
			slices.Sort(paths)
			return paths, newSnapshotInfo(reply).Version
		}
	}
}

func equalPolicies(a, b *entailv1.EffectivePolicy) bool { return proto.Equal(a, b) }

// withIndexes returns the name of a path with the index of each named rule instead of its name.
func withIndexes(entry pathEntry) string {
	name, err := pathname.Parse(entry.name)
	if err != nil {
		return entry.name
	}
	text, indexes, at := "", entry.ruleIndexes, 0
	for _, rule := range name.Rules() {
		if rule.Index >= 0 || len(indexes) == 0 {
			continue
		}
		text += entry.name[at:rule.Start] + "#" + strconv.FormatUint(uint64(indexes[0]), 10)
		indexes, at = indexes[1:], rule.End
	}
	return text + entry.name[at:]
}
