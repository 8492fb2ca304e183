package entail

import (
	"maps"
	"weak"

	entailv1 "entail.dev/clients/go/entail/v1"
)

// decoder decodes the messages of a watch stream into snapshots. It does no I/O. The snapshot outlives the stream.
type decoder[T any] struct {
	compile  func(*EffectivePolicies) T
	snapshot *Snapshot[T]
	// The answers of the stream, by number.
	numbered map[uint32]*answer[T]
	// The answers in use, by etag: an answer that a later stream sends again is not compiled again.
	byETag map[string]weak.Pointer[answer[T]]
	// Length of byETag at which answers that are no longer in use are removed from it.
	pruneAt int
	// Changes since the last complete update.
	delta delta[T]
	// Whether the update in progress replaces the snapshot.
	reset bool
}

func newDecoder[T any](selector *selector, compile func(*EffectivePolicies) T) *decoder[T] {
	d := &decoder[T]{
		compile:  compile,
		snapshot: &Snapshot[T]{index: newPathIndex(selector, nil, nil)},
		byETag:   map[string]weak.Pointer[answer[T]]{},
	}
	d.startStream()
	return d
}

// startStream prepares for a new stream, which either resumes from the snapshot or resets it.
func (d *decoder[T]) startStream() {
	d.numbered = map[uint32]*answer[T]{}
	d.startUpdate()
	d.reset = false
}

func (d *decoder[T]) startUpdate() {
	d.delta = delta[T]{changed: map[string]pathChange[T]{}, removed: map[string]bool{}}
}

// decode decodes a message. If the message completes an update, it returns the new snapshot, and whether that differs
// from the previous one in its paths or answers. After an error, a new stream must be opened without a resume token.
func (d *decoder[T]) decode(message *entailv1.WatchEffectivePoliciesResponse) (*Snapshot[T], bool, error) {
	if message.GetReset_() {
		d.startStream()
		d.reset = true
	}
	for _, body := range message.GetBodies() {
		d.numbered[body.GetNumber()] = d.compileOnce(body)
	}
	for _, path := range message.GetPaths() {
		answer, ok := d.numbered[path.GetBody()]
		if !ok {
			return nil, false, protocolError("the server refers to unknown answer %d", path.GetBody())
		}
		d.delta.changed[path.GetPath()] = pathChange[T]{path.GetRuleIndexes(), answer}
	}
	for _, path := range message.GetRemovedPaths() {
		d.delta.removed[path] = true
	}
	if !message.GetComplete() {
		return nil, false, nil
	}
	previous := d.snapshot
	if d.reset {
		previous = &Snapshot[T]{index: newPathIndex(d.snapshot.index.selector, nil, nil)}
	}
	if roots := message.GetClientRoots(); roots != nil {
		clientRoots := make(map[string]bool, len(roots.GetRoots()))
		for _, root := range roots.GetRoots() {
			clientRoots[root] = true
		}
		// A stream that resumes sends the same roots again.
		if !maps.Equal(clientRoots, previous.index.clientRoots) {
			d.delta.clientRoots = clientRoots
		}
	}
	isChanged := d.reset || !d.delta.isEmpty()
	snapshot := previous.with(d.delta)
	snapshot.ready = true
	snapshot.info = newSnapshotInfo(message)
	d.snapshot = snapshot
	d.startUpdate()
	d.reset = false
	for _, number := range message.GetRemovedBodies() {
		delete(d.numbered, number)
	}
	d.prune()
	return snapshot, isChanged, nil
}

// compileOnce compiles an answer unless one with the same etag is in use.
func (d *decoder[T]) compileOnce(body *entailv1.NumberedBody) *answer[T] {
	etag := body.GetEtag()
	if known := d.byETag[etag].Value(); known != nil {
		return known
	}
	compiled := &answer[T]{d.compile(&EffectivePolicies{Policies: body.GetPolicies(), ETag: etag}), etag}
	d.byETag[etag] = weak.Make(compiled)
	return compiled
}

// prune removes answers that are no longer in use. Its cost is spread over the answers that were added.
func (d *decoder[T]) prune() {
	if len(d.byETag) < d.pruneAt {
		return
	}
	for etag, known := range d.byETag {
		if known.Value() == nil {
			delete(d.byETag, etag)
		}
	}
	d.pruneAt = 2*len(d.byETag) + 64
}
