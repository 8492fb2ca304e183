package entail

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	entailv1 "entail.dev/clients/go/entail/v1"
)

func delegatingPath(first, second, last string) string {
	return fmt.Sprintf("gateways/a/gw/listeners/l/routes/HTTPRoute/a/rules/rules/%s"+
		"/routes/HTTPRoute/a/r/rules/%s/routes/HTTPRoute/a/s/rules/%s", first, second, last)
}

func TestPathsAreFoundByTheIndexesOfAnyOfTheirNamedRules(t *testing.T) {
	index := newPathIndex(&selector{}, []pathEntry{
		{name: "gateways/a/gw"},
		{delegatingPath("one", "#1", "two"), []uint32{3, 0}},
		{delegatingPath("one", "#1", "three"), []uint32{3, 1}},
	}, nil)
	for path, want := range map[string]int{
		delegatingPath("one", "#1", "two"):                          1,
		delegatingPath("#3", "#1", "two"):                           1,
		delegatingPath("one", "#1", "#0"):                           1,
		delegatingPath("#3", "#1", "#0"):                            1,
		delegatingPath("#3", "#1", "#1"):                            2,
		delegatingPath("#0", "#1", "two"):                           -1,
		delegatingPath("one", "#0", "two"):                          -1,
		delegatingPath("one", "#1", "#3"):                           -1,
		delegatingPath("two", "#1", "one"):                          -1,
		delegatingPath("#3", "#1", "#0") + "/backends/Service/a/s":  -1,
		"gateways/rules/#0":                                         -1,
		"gateways/a/gw/listeners/l/routes/HTTPRoute/a/s/rules/#0":   -1,
		"gateways/a/gw/listeners/l/routes/HTTPRoute/a/s/rules/#nan": -1,
	} {
		equal(t, path, index.position(path), want)
	}
}

// etagDecoder returns a decoder whose answers are their etags, and the number of answers that it compiled.
func etagDecoder() (*decoder[string], *int) {
	count := 0
	return newDecoder(&selector{}, func(policies *EffectivePolicies) string {
		count++
		return policies.ETag
	}), &count
}

func body(number uint32, etag string) *entailv1.NumberedBody {
	return &entailv1.NumberedBody{Number: number, Etag: etag}
}

func watched(path string, number uint32) *entailv1.WatchedPath {
	return &entailv1.WatchedPath{Path: path, Body: number}
}

func TestUpdatesAreAppliedAsAWhole(t *testing.T) {
	decoder, compiled := etagDecoder()
	decode := func(message *entailv1.WatchEffectivePoliciesResponse) (*Snapshot[string], bool) {
		t.Helper()
		snapshot, isChanged, err := decoder.decode(message)
		if err != nil {
			t.Fatal(err)
		}
		return snapshot, isChanged
	}
	expect := func(snapshot *Snapshot[string], want map[string]string) {
		t.Helper()
		equal(t, "length", snapshot.Len(), len(want))
		for path, etag := range want {
			got, err := snapshot.LookUp(path)
			if err != nil || got != etag {
				t.Errorf("%s: %q, %v; want %q", path, got, err, etag)
			}
		}
	}
	if snapshot, _ := decode(&entailv1.WatchEffectivePoliciesResponse{
		Reset_: true, Bodies: []*entailv1.NumberedBody{body(1, "x")}, Paths: []*entailv1.WatchedPath{watched("namespaces/a", 1)},
	}); snapshot != nil {
		t.Error("a part of an update was published")
	}
	first, isChanged := decode(&entailv1.WatchEffectivePoliciesResponse{
		Bodies: []*entailv1.NumberedBody{body(2, "y")},
		Paths:  []*entailv1.WatchedPath{watched("namespaces/b", 2), watched("namespaces/c", 1)}, Complete: true,
	})
	equal(t, "changed", isChanged, true)
	expect(first, map[string]string{"namespaces/a": "x", "namespaces/b": "y", "namespaces/c": "x"})

	heartbeat, isChanged := decode(&entailv1.WatchEffectivePoliciesResponse{Complete: true})
	equal(t, "changed", isChanged, false)
	equal(t, "index", heartbeat.index, first.index)

	second, _ := decode(&entailv1.WatchEffectivePoliciesResponse{
		Bodies:       []*entailv1.NumberedBody{body(3, "z")},
		Paths:        []*entailv1.WatchedPath{watched("namespaces/b", 3), watched("namespaces/d", 1)},
		RemovedPaths: []string{"namespaces/a", "namespaces/unknown"}, RemovedBodies: []uint32{2, 99}, Complete: true,
	})
	expect(second, map[string]string{"namespaces/b": "z", "namespaces/c": "x", "namespaces/d": "x"})
	expect(first, map[string]string{"namespaces/a": "x", "namespaces/b": "y", "namespaces/c": "x"})

	// A stream that breaks leaves an update that is discarded; the next one has numbers of its own.
	decode(&entailv1.WatchEffectivePoliciesResponse{RemovedPaths: []string{"namespaces/b"}})
	decoder.startStream()
	third, _ := decode(&entailv1.WatchEffectivePoliciesResponse{
		Bodies: []*entailv1.NumberedBody{body(1, "z")}, Paths: []*entailv1.WatchedPath{watched("namespaces/c", 1)}, Complete: true,
	})
	expect(third, map[string]string{"namespaces/b": "z", "namespaces/c": "z", "namespaces/d": "x"})
	equal(t, "compiled", *compiled, 3)

	// A reset discards what the update had before it.
	decode(&entailv1.WatchEffectivePoliciesResponse{Paths: []*entailv1.WatchedPath{watched("namespaces/e", 1)}})
	fourth, isChanged := decode(&entailv1.WatchEffectivePoliciesResponse{
		Reset_: true, Bodies: []*entailv1.NumberedBody{body(7, "x")}, Paths: []*entailv1.WatchedPath{watched("namespaces/f", 7)},
		Complete: true,
	})
	equal(t, "changed", isChanged, true)
	expect(fourth, map[string]string{"namespaces/f": "x"})
	equal(t, "compiled", *compiled, 3)

	// An answer that the stream has removed, or has not sent.
	for _, number := range []uint32{0, 3, math.MaxUint32} {
		_, _, err := decoder.decode(&entailv1.WatchEffectivePoliciesResponse{
			Paths: []*entailv1.WatchedPath{watched("namespaces/f", number)}, Complete: true,
		})
		expectError(t, err, codes.Internal, "")
	}
	equal(t, "snapshot after errors", decoder.snapshot, fourth)
}

func TestAnswersThatAreNotInUseAreFreed(t *testing.T) {
	decoder, _ := etagDecoder()
	for number := range uint32(10_000) {
		message := &entailv1.WatchEffectivePoliciesResponse{
			Bodies:   []*entailv1.NumberedBody{body(number+1, fmt.Sprint(number))},
			Paths:    []*entailv1.WatchedPath{watched("namespaces/a", number+1)},
			Complete: true,
		}
		if number > 0 {
			message.RemovedBodies = []uint32{number}
		}
		if _, _, err := decoder.decode(message); err != nil {
			t.Fatal(err)
		}
		if number%1000 == 0 {
			runtime.GC() // frees the answers, which etags refer to weakly
		}
	}
	equal(t, "numbered answers", len(decoder.numbered), 1)
	if len(decoder.byETag) > 5000 {
		t.Errorf("%d etags are left", len(decoder.byETag))
	}
}

// FuzzDecode checks that no message makes a decoder or a look-up panic.
func FuzzDecode(f *testing.F) {
	for _, message := range []*entailv1.WatchEffectivePoliciesResponse{
		{},
		{
			Reset_: true, Complete: true, Bodies: []*entailv1.NumberedBody{body(1, "x"), {}},
			Paths: []*entailv1.WatchedPath{
				{Path: delegatingPath("one", "#1", "two"), Body: 1, RuleIndexes: []uint32{3}}, watched("mesh/*/", 1), watched("", 1),
			},
			RemovedPaths: []string{"mesh/*/"}, RemovedBodies: []uint32{1}, ClientRoots: &entailv1.ClientRoots{Roots: []string{"mesh/"}},
		},
	} {
		data, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "mesh/x/services/a/b/rules/#0")
		f.Add(data, "gateways/rules/#0")
	}
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		decoder, _ := etagDecoder()
		message := &entailv1.WatchEffectivePoliciesResponse{}
		if err := proto.Unmarshal(data, message); err != nil {
			return
		}
		for range 2 {
			if _, _, err := decoder.decode(message); err != nil {
				decoder.startStream()
			}
			for _, name := range append(message.GetRemovedPaths(), path, "mesh/x/"+path) {
				_, _ = decoder.snapshot.LookUp(name)
			}
			for name := range decoder.snapshot.All() {
				if _, ok := decoder.snapshot.Get(name); !ok {
					t.Errorf("%q is not found", name)
				}
				_, _ = decoder.snapshot.LookUp(name + path)
			}
		}
	})
}
