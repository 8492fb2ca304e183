package entail

import (
	"hash/maphash"
	"strings"

	"entail.dev/clients/go/internal/pathname"
)

// selector is a parsed [Selection] without its kinds.
type selector struct {
	prefixes []string
	levels   map[string]bool
}

// matches reports whether a path is in the prefixes and levels.
func (s *selector) matches(path string) bool {
	if len(s.levels) > 0 {
		name, err := pathname.Parse(path)
		if err != nil || !s.levels[name.Level] {
			return false
		}
	}
	covered := len(s.prefixes) == 0
	for _, prefix := range s.prefixes {
		covered = covered || pathname.Covers(prefix, path)
	}
	return covered
}

// pathEntry is a path of a snapshot.
type pathEntry struct {
	name string
	// Index of each rule whose name the path name contains, from the root down.
	ruleIndexes []uint32
}

// anyClient is the beginning of the mesh paths of all client namespaces that have no paths of their own.
const anyClient = "mesh/*/"

// pathIndex finds the positions of paths. Successive snapshots share it if only answers change.
type pathIndex struct {
	selector *selector
	entries  []pathEntry
	// All paths, and those of any mesh client by their names without `mesh/*/`.
	all, mesh positions
	// Mesh roots of client namespaces that have paths of their own.
	clientRoots map[string]bool
}

// positions are the positions of paths by their names, without the first bytes of each.
type positions struct {
	skip   int
	byName map[string]int
	// Paths with named rules, which are also found by the indexes of the rules: by the hash of their names without
	// rules.
	byHash map[uint64][]namedPath
}

// namedPath is the position of a path with named rules, and the index of its last rule: the paths of all rules of a
// route have the same hash.
type namedPath struct {
	at       int
	lastRule int64
}

var hashSeed = maphash.MakeSeed()

func newPathIndex(selector *selector, entries []pathEntry, clientRoots map[string]bool) *pathIndex {
	index := &pathIndex{
		selector:    selector,
		entries:     entries,
		all:         positions{byName: make(map[string]int, len(entries)), byHash: map[uint64][]namedPath{}},
		mesh:        positions{skip: len(anyClient), byName: map[string]int{}, byHash: map[uint64][]namedPath{}},
		clientRoots: clientRoots,
	}
	for at := range entries {
		index.all.add(&entries[at], at)
		if strings.HasPrefix(entries[at].name, anyClient) {
			index.mesh.add(&entries[at], at)
		}
	}
	return index
}

func (p *positions) add(entry *pathEntry, at int) {
	name := entry.name[p.skip:]
	p.byName[name] = at
	if len(entry.ruleIndexes) == 0 {
		return
	}
	parsed, err := pathname.Parse(entry.name)
	if err != nil || len(parsed.Rules()) == 0 {
		return
	}
	lastRule := parsed.Rules()[len(parsed.Rules())-1].Index
	if lastRule < 0 {
		lastRule = int64(entry.ruleIndexes[len(entry.ruleIndexes)-1])
	}
	hash := hashWithoutRules(name)
	p.byHash[hash] = append(p.byHash[hash], namedPath{at, lastRule})
}

// find returns the position of a path; -1 if there is none. The first bytes of the path are not compared.
func (p *positions) find(entries []pathEntry, path string, skip int) int {
	if at, ok := p.byName[path[skip:]]; ok {
		return at
	}
	if len(p.byHash) == 0 || !strings.Contains(path, "/rules/#") {
		return -1
	}
	parsed, err := pathname.Parse(path)
	if err != nil || len(parsed.Rules()) == 0 {
		return -1
	}
	rules := parsed.Rules()
	lastRule := rules[len(rules)-1].Index
	for _, named := range p.byHash[hashWithoutRules(path[skip:])] {
		// The last rule may be named while another one is not.
		if lastRule >= 0 && lastRule != named.lastRule {
			continue
		}
		if isNamed(&entries[named.at], p.skip, path, skip, rules) {
			return named.at
		}
	}
	return -1
}

// position returns the position of a path, whose rules may be named by their indexes; -1 if there is none. It does not
// allocate.
func (x *pathIndex) position(path string) int {
	if at := x.all.find(x.entries, path, 0); at >= 0 {
		return at
	}
	if below := x.belowAnyClient(path); below > 0 {
		return x.mesh.find(x.entries, path, below)
	}
	return -1
}

// belowAnyClient returns the offset of the part of a mesh path that follows its client, if the client namespace has no
// paths of its own from the same root, so that the paths of any client apply (specification 1.3); otherwise 0.
func (x *pathIndex) belowAnyClient(path string) int {
	rest, ok := strings.CutPrefix(path, "mesh/")
	if !ok {
		return 0
	}
	client := strings.IndexByte(rest, '/')
	if client < 0 {
		return 0
	}
	below := len("mesh/") + client + 1
	// The root ends after three more parts: `services`, namespace and name.
	end := below
	for part := range 3 {
		slash := strings.IndexByte(path[end:], '/')
		switch {
		case slash >= 0:
			end += slash + 1
		case part == 2:
			end = len(path) + 1
		default:
			return 0
		}
	}
	if x.clientRoots[path[:end-1]] {
		return 0
	}
	return below
}

// selects reports whether the mirror follows a path.
func (x *pathIndex) selects(path string) bool {
	if x.selector.matches(path) {
		return true
	}
	below := x.belowAnyClient(path)
	return below > 0 && x.selector.matches(anyClient+path[below:])
}

// isNamed reports whether a path name with these rules is that of an entry, with the indexes of some rules instead of
// their names. The first bytes of both names are not compared.
func isNamed(entry *pathEntry, ownSkip int, path string, skip int, rules []pathname.Rule) bool {
	own, err := pathname.Parse(entry.name)
	if err != nil || len(own.Rules()) != len(rules) {
		return false
	}
	indexes := entry.ruleIndexes
	ownAt, at := ownSkip, skip
	for i, ownRule := range own.Rules() {
		rule := rules[i]
		if entry.name[ownAt:ownRule.Start] != path[at:rule.Start] {
			return false
		}
		isSame := entry.name[ownRule.Start:ownRule.End] == path[rule.Start:rule.End]
		if ownRule.Index < 0 && len(indexes) > 0 {
			isSame = isSame || rule.Index == int64(indexes[0])
			indexes = indexes[1:]
		}
		if !isSame {
			return false
		}
		ownAt, at = ownRule.End, rule.End
	}
	return entry.name[ownAt:] == path[at:]
}

// hashWithoutRules returns the hash of a path name without the parts that follow `rules`.
func hashWithoutRules(path string) uint64 {
	var hash uint64
	last := ""
	for part := range strings.SplitSeq(path, "/") {
		if last != "rules" {
			hash = hash*31 + maphash.String(hashSeed, part)
		}
		last = part
	}
	return hash
}
