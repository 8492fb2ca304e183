package entail

import (
	"errors"
	"iter"
	"slices"
	"sort"
)

// Errors of look-ups in a [Mirror].
var (
	// ErrNotReady means that no complete update has been received since the start.
	ErrNotReady = errors.New("entail: no update has been received yet")
	// ErrNotSelected means that the path is outside the prefixes or levels of the mirror.
	ErrNotSelected = errors.New("entail: the path is outside the prefixes or levels of the mirror")
	// ErrPathNotFound means that the path does not exist: it was deleted, or is newer than the copy.
	ErrPathNotFound = errors.New("entail: path not found")
)

// Snapshot is the copy of a [Mirror] after one update. It does not change: all of its answers are from one snapshot of
// the server.
type Snapshot[T any] struct {
	info    SnapshotInfo
	ready   bool
	index   *pathIndex
	answers answers[T]
}

// Get returns the answer of a path, and whether there is one. It does not allocate.
func (s *Snapshot[T]) Get(path string) (T, bool) {
	if at := s.index.position(path); at >= 0 {
		return s.answers.at(at).value, true
	}
	var none T
	return none, false
}

// LookUp returns the answer of a path, or [ErrNotReady], [ErrNotSelected] or [ErrPathNotFound].
func (s *Snapshot[T]) LookUp(path string) (T, error) {
	if value, ok := s.Get(path); ok {
		return value, nil
	}
	var none T
	switch {
	case !s.ready:
		return none, ErrNotReady
	case s.index.selects(path):
		return none, ErrPathNotFound
	default:
		return none, ErrNotSelected
	}
}

// Info returns the version and the states of kinds that apply to all answers of the snapshot.
func (s *Snapshot[T]) Info() SnapshotInfo { return s.info }

// IsKnown reports whether the policies of a kind are known; see [SnapshotInfo.IsKnown]. It does not allocate.
func (s *Snapshot[T]) IsKnown(kind string) bool { return s.info.IsKnown(kind) }

// Ready reports whether the snapshot is an update of the server. If not, it is empty.
func (s *Snapshot[T]) Ready() bool { return s.ready }

// Len returns the number of paths.
func (s *Snapshot[T]) Len() int { return len(s.index.entries) }

// All returns the names and answers of all paths, in no particular order. Rules that have a name appear by their name.
func (s *Snapshot[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for at := range s.index.entries {
			if !yield(s.index.entries[at].name, s.answers.at(at).value) {
				return
			}
		}
	}
}

// answer is a distinct answer, which several paths share.
type answer[T any] struct {
	value T
	etag  string
}

// pathChange is a path that is new or has another answer.
type pathChange[T any] struct {
	ruleIndexes []uint32
	answer      *answer[T]
}

// delta are the changes of an update.
type delta[T any] struct {
	changed map[string]pathChange[T]
	removed map[string]bool
	// Nil if the mesh roots did not change.
	clientRoots map[string]bool
}

func (d *delta[T]) isEmpty() bool {
	return len(d.changed) == 0 && len(d.removed) == 0 && d.clientRoots == nil
}

// with returns the snapshot after an update. If only answers change, the paths are shared.
func (s *Snapshot[T]) with(changes delta[T]) *Snapshot[T] {
	if changes.isEmpty() {
		return &Snapshot[T]{index: s.index, answers: s.answers}
	}
	positions := make(map[int]*answer[T], len(changes.changed))
	samePaths := len(changes.removed) == 0 && changes.clientRoots == nil
	for name, change := range changes.changed {
		at, ok := s.index.all.byName[name]
		samePaths = samePaths && ok && slices.Equal(s.index.entries[at].ruleIndexes, change.ruleIndexes)
		positions[at] = change.answer
	}
	if samePaths {
		return &Snapshot[T]{index: s.index, answers: s.answers.with(positions)}
	}
	return s.rebuilt(changes)
}

// rebuilt returns the snapshot after an update that adds, removes or renames paths.
func (s *Snapshot[T]) rebuilt(changes delta[T]) *Snapshot[T] {
	entries := make([]pathEntry, 0, len(s.index.entries)+len(changes.changed))
	values := make([]*answer[T], 0, cap(entries))
	kept := make(map[string]bool, len(changes.changed))
	for at, entry := range s.index.entries {
		if changes.removed[entry.name] {
			continue
		}
		value := s.answers.at(at)
		if change, ok := changes.changed[entry.name]; ok {
			entry.ruleIndexes, value = change.ruleIndexes, change.answer
			kept[entry.name] = true
		}
		entries, values = append(entries, entry), append(values, value)
	}
	added := make([]string, 0, len(changes.changed)-len(kept))
	for name := range changes.changed {
		if !kept[name] {
			added = append(added, name)
		}
	}
	sort.Strings(added)
	for _, name := range added {
		change := changes.changed[name]
		entries = append(entries, pathEntry{name, change.ruleIndexes})
		values = append(values, change.answer)
	}
	clientRoots := changes.clientRoots
	if clientRoots == nil {
		clientRoots = s.index.clientRoots
	}
	return &Snapshot[T]{
		index:   newPathIndex(s.index.selector, entries, clientRoots),
		answers: newAnswers(values),
	}
}

// answers is an immutable list of answers in chunks: an update copies only the chunks that it changes.
type answers[T any] struct{ chunks [][]*answer[T] }

const chunkLength = 256

func newAnswers[T any](values []*answer[T]) answers[T] {
	return answers[T]{slices.Collect(slices.Chunk(values, chunkLength))}
}

func (a answers[T]) at(at int) *answer[T] { return a.chunks[at/chunkLength][at%chunkLength] }

// with returns the list with other answers at some positions.
func (a answers[T]) with(changed map[int]*answer[T]) answers[T] {
	chunks := slices.Clone(a.chunks)
	own := make(map[int]bool)
	for at, value := range changed {
		number := at / chunkLength
		if !own[number] {
			own[number] = true
			chunks[number] = slices.Clone(chunks[number])
		}
		chunks[number][at%chunkLength] = value
	}
	return answers[T]{chunks}
}
