"""The answers of a server: effective policies, and what is known about all answers of one reply."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from entail_client import v1
from entail_client.errors import NotKnownError, StatusError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """What applies to all answers of one reply, or of one update of a mirror."""

    version: v1.Version | None
    """The snapshot of the server that the answers are from. Compare generations within one epoch alone."""
    synced_at: datetime | None
    """When the sources of the server were last known to be in sync (UTC). It stands still while a source is out of
    reach, and for manifests while they do not change."""
    kinds: tuple[v1.KindState, ...]
    """The kinds whose state is not COMPLETE. An answer without a policy of a FORBIDDEN or UNKNOWN kind does not mean
    that there is no policy."""
    requested_kinds: frozenset[str]
    """The kinds that the request named; empty if it asked for all."""

    @staticmethod
    def of(
        version: v1.Version | None, synced_at: Timestamp | None, kinds: Iterable[v1.KindState], requested: Iterable[str]
    ) -> SnapshotInfo:
        """Return what a reply says of all its answers."""
        return SnapshotInfo(version, _datetime(synced_at), tuple(kinds), frozenset(requested))

    def state(self, kind: str) -> v1.KindState:
        """Return the state of a kind, given as `Kind.group`; it is COMPLETE if the server does not report it.

        A server reports a kind without a profile only if the request names the kind, so name the kinds that you need.
        Raises ValueError if the request named other kinds alone: nothing is known about this one then.
        """
        if self.requested_kinds and kind not in self.requested_kinds:
            raise ValueError(f"the request names the kinds {sorted(self.requested_kinds)}, and not {kind}")
        for name in (kind, "*"):  # `*` stands for all kinds: some input cannot be read.
            for state in self.kinds:
                if state.kind == name:
                    return state
        return v1.KindState(kind=kind, state=v1.KindState.STATE_COMPLETE)

    def require_known(self, kind: str) -> None:
        """Raise NotKnownError if the state of a kind is neither COMPLETE nor STALE.

        A state that this version of the client does not know is taken for UNKNOWN.
        """
        state = self.state(kind)
        if state.state not in (v1.KindState.STATE_COMPLETE, v1.KindState.STATE_STALE):
            raise NotKnownError(kind, state.reason, state.message)


@dataclass(frozen=True, slots=True)
class EffectivePolicies:
    """The effective policies of a path. Equal answers may share one object: do not change it."""

    policies: tuple[v1.EffectivePolicy, ...]
    """One entry for each kind, sorted by group, then kind. A kind without policies has no entry."""
    etag: str
    """Hash of the answer; equal answers have equal etags on every replica."""

    def policy(self, kind: str) -> v1.EffectivePolicy | None:
        """Return the entry of a kind, given as `Kind.group`; None if the kind has no policy here.

        That is no proof that there is no policy: see `SnapshotInfo.require_known` and the field `unknown` of the entry,
        or use `spec`.
        """
        name, _, group = kind.partition(".")
        return next((policy for policy in self.policies if policy.kind == name and policy.group == group), None)

    def spec(self, kind: str, info: SnapshotInfo) -> Any:
        """Return the merged rules of a kind as JSON values; None only if no policy sets any.

        `info` is that of the same reply or mirror snapshot. Integers are exact, other numbers are floats; parse
        `spec_json` for others.

        Raises NotKnownError if the policy in effect is not known: because of the state of the kind, because the entry
        is incomplete or was not computed, or because policies of the kind are listed and not merged. Not covered are
        entries with `inherited_only`, of paths above the level where the kind takes effect, and `rejected` policies,
        on which some controllers fail closed.
        """
        info.require_known(kind)
        policy = self.policy(kind)
        if policy is None:
            return None
        if policy.HasField("unknown"):
            raise NotKnownError(kind, policy.unknown.reason, policy.unknown.message)
        if policy.listed:
            raise NotKnownError(kind, "Listed", "its policies are not merged; read `listed` of the entry")
        if policy.not_computed:
            raise NotKnownError(kind, "NotComputed", policy.not_computed)
        return json.loads(policy.spec_json) if policy.HasField("spec_json") else None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of `Client.get`."""

    answer: EffectivePolicies
    """The effective policies of the path; the object that was passed as `held` if it is still current."""
    info: SnapshotInfo
    """What applies to the whole reply."""

    def spec(self, kind: str) -> Any:
        """Return the merged rules of a kind; see `EffectivePolicies.spec`."""
        return self.answer.spec(kind, self.info)


@dataclass(frozen=True, slots=True)
class BatchReply:
    """The answers of `Client.batch_get`, all from one snapshot."""

    answers: tuple[EffectivePolicies | StatusError, ...]
    """For each path, in order: its effective policies, or the error of this path. Paths with equal answers share one
    object."""
    info: SnapshotInfo
    """What applies to the whole reply."""


@dataclass(frozen=True, slots=True)
class PathList:
    """The paths of `Client.list_paths`, all from one snapshot."""

    paths: tuple[str, ...]
    """Names of paths, in the order of a depth-first walk."""
    truncated: bool
    """Whether paths are missing, because the caller's rights to too many objects would have had to be checked."""
    info: SnapshotInfo
    """What applies to the whole list."""


def _datetime(timestamp: Timestamp | None) -> datetime | None:
    """Return a time; None for one that Python cannot represent: no data of a server may end a mirror."""
    if timestamp is None or not 0 <= timestamp.nanos < 10**9:
        return None
    try:
        return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
    except OverflowError:
        return None
