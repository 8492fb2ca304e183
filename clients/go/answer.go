package entail

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	entailv1 "entail.dev/clients/go/entail/v1"
)

// EffectivePolicies are the effective policies of a path.
type EffectivePolicies struct {
	// Policies has one entry for each kind, sorted by group, then kind. Entries are shared: do not change them.
	Policies []*entailv1.EffectivePolicy
	// ETag is the hash of the answer. Equal answers have equal etags on every replica.
	ETag string
}

// Policy returns the entry of a kind, named as Kind.group; nil if there is none. A nil entry means "no policy" only if
// [SnapshotInfo.IsKnown] is true for the kind; the fields unknown and not_computed of an entry say what it lacks.
func (p *EffectivePolicies) Policy(kind string) *entailv1.EffectivePolicy {
	for _, policy := range p.Policies {
		name, group := policy.GetKind(), policy.GetGroup()
		if len(kind) == len(name)+1+len(group) && kind[:len(name)] == name && kind[len(name)] == '.' &&
			kind[len(name)+1:] == group {
			return policy
		}
	}
	return nil
}

// Version is the version of a snapshot.
type Version struct {
	// Epoch identifies one run of a server. Generations of different epochs cannot be compared.
	Epoch string
	// Generation is the number of the snapshot within the epoch.
	Generation uint64
}

// SnapshotInfo is the part of a reply or update that applies to all of its answers.
type SnapshotInfo struct {
	Version Version
	// SyncedAt is when the sources of the server were last in sync. For manifests, that is when the last change was
	// read. It is zero if it is not known.
	SyncedAt time.Time
	// Kinds has the kinds whose state is not COMPLETE. Do not change the entries.
	Kinds []*entailv1.KindState
}

// IsKnown reports whether the policies of a kind, named as Kind.group, are known: its state is COMPLETE or STALE. It says
// nothing of a single path, where the field unknown of the entry does, nor of kinds that the request did not name. If
// they are not, an answer without an entry for the kind does not mean that there is no policy. Fail closed then, unless
// requests may pass without the policy.
func (i *SnapshotInfo) IsKnown(kind string) bool {
	switch i.State(kind) {
	case entailv1.KindState_STATE_COMPLETE, entailv1.KindState_STATE_STALE:
		return true
	}
	return false
}

// State returns the state of a kind, named as Kind.group. In a mirror or reply that is restricted to some kinds, it is
// meaningful for these kinds only.
func (i *SnapshotInfo) State(kind string) entailv1.KindState_State {
	for _, name := range [...]string{kind, "*"} { // "*" stands for all kinds: some input cannot be read.
		for _, state := range i.Kinds {
			if state.GetKind() == name {
				return state.GetState()
			}
		}
	}
	return entailv1.KindState_STATE_COMPLETE
}

// versioned is a reply, or the last message of an update.
type versioned interface {
	GetVersion() *entailv1.Version
	GetSyncedAt() *timestamppb.Timestamp
	GetKinds() []*entailv1.KindState
}

func newSnapshotInfo(reply versioned) SnapshotInfo {
	version := reply.GetVersion()
	info := SnapshotInfo{
		Version: Version{Epoch: version.GetEpoch(), Generation: version.GetGeneration()},
		Kinds:   reply.GetKinds(),
	}
	if at := reply.GetSyncedAt(); at.IsValid() {
		info.SyncedAt = at.AsTime()
	}
	return info
}
