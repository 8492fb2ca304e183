"""The copy of a mirror: answers by path name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from entail_client import path as path_names
from entail_client.answers import SnapshotInfo
from entail_client.errors import MirrorLookupError, NotInMirrorError, NotSubscribedError, SettingsError

T = TypeVar("T")


class Entry(Generic[T]):
    """A compiled answer. Paths share an entry if and only if their answers are equal."""

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: T) -> None:
        self.value = value


@dataclass(frozen=True)
class PathSelector:
    """The paths that a mirror subscribes to."""

    prefixes: tuple[str, ...] = ()
    """Only paths that begin with one of these; all paths if empty."""
    levels: tuple[str, ...] = ()
    """Only paths that end at one of these; all levels if empty."""

    def __post_init__(self) -> None:
        for prefix in self.prefixes:
            try:
                path_names.parse(prefix)
            except path_names.PathSyntaxError as error:
                raise SettingsError(f"malformed prefix `{prefix}`: {error}") from error
        for level in self.levels:
            if level not in path_names.LEVELS:
                raise SettingsError(f"`{level}` is not a level; the levels are {', '.join(path_names.LEVELS)}")

    def matches(self, path: str) -> bool:
        """Report whether a path name is in the prefixes and levels."""
        if self.prefixes and not any(path_names.covers(prefix, path) for prefix in self.prefixes):
            return False
        if not self.levels:
            return True
        try:
            return path_names.parse(path).level in self.levels
        except path_names.PathSyntaxError:
            return False


@dataclass
class Delta(Generic[T]):
    """The changes of an update."""

    changed: dict[str, tuple[tuple[int, ...], Entry[T]]] = field(default_factory=dict)
    """The indexes of the rules whose names the path name contains, and the answer of the path."""
    removed: set[str] = field(default_factory=set)
    client_roots: frozenset[str] | None = None


@dataclass(frozen=True)
class PathMap(Generic[T]):
    """The answers of one update. It never changes; successive maps share what is equal."""

    selector: PathSelector
    answers: Mapping[str, Entry[T]] = field(default_factory=dict)
    rule_indexes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of paths with named rules alone."""
    named_rules: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The paths with named rules by their skeleton: such a path is also found by the indexes of the rules."""
    client_roots: frozenset[str] = frozenset()
    """Mesh roots of client namespaces whose paths differ from those of `*`."""

    def get(self, path: str) -> T:
        """Return the answer of a path, which may be named by the indexes of its rules."""
        entry = self.answers.get(path)
        if entry is None:
            entry = self._get_by_index(path)
        if entry is not None:
            return entry.value
        any_client = self._as_any_client(path)
        if any_client is not None:
            entry = self.answers.get(any_client) or self._get_by_index(any_client)
            if entry is not None:
                return entry.value
        raise self._error(path, any_client)

    def _get_by_index(self, path: str) -> Entry[T] | None:
        if not self.named_rules or "/rules/#" not in path:
            return None
        try:
            name = path_names.parse(path)
        except path_names.PathSyntaxError:
            return None
        for candidate in self.named_rules.get(name.skeleton, ()):
            indexes = iter(self.rule_indexes[candidate])
            pairs = zip(path_names.parse(candidate).rules, name.rules, strict=True)
            if all(_is_same_rule(own, rule, indexes) for own, rule in pairs):
                return self.answers[candidate]
        return None

    def _as_any_client(self, path: str) -> str | None:
        """Return the path of `*` for a mesh path whose client namespace has no paths of its own (specification 1.3)."""
        if not path.startswith("mesh/"):
            return None
        parts = path.split("/", 5)
        if len(parts) < 5:
            return None
        _, client, _, namespace, name = parts[:5]
        if f"mesh/{client}/services/{namespace}/{name}" in self.client_roots:
            return None
        return "/".join(("mesh", "*", *parts[2:]))

    def _error(self, path: str, any_client: str | None) -> MirrorLookupError:
        if self.selector.matches(path) or (any_client is not None and self.selector.matches(any_client)):
            return NotInMirrorError(f"the path does not exist, or is newer than the copy: {path}")
        return NotSubscribedError(f"the path is outside the prefixes or levels of the mirror: {path}")

    def apply(self, delta: Delta[T]) -> PathMap[T]:
        """Return the map after an update; this map if the update changes nothing."""
        removed = delta.removed & self.answers.keys()
        changed = {
            name: (indexes, entry)
            for name, (indexes, entry) in delta.changed.items()
            if name in removed or self.answers.get(name) is not entry or self.rule_indexes.get(name, ()) != indexes
        }
        client_roots = self.client_roots if delta.client_roots is None else delta.client_roots
        if not removed and not changed and client_roots == self.client_roots:
            return self
        answers = dict(self.answers)
        for name in removed:
            del answers[name]
        for name, (_, entry) in changed.items():
            answers[name] = entry
        # Mostly, only answers change: the names and their rules are shared then.
        old_names = {name for name in removed | changed.keys() if name in self.rule_indexes}
        new_names = {name: indexes for name, (indexes, _) in changed.items() if indexes}
        if all(self.rule_indexes.get(name) == new_names.get(name) for name in old_names | new_names.keys()):
            return PathMap(self.selector, answers, self.rule_indexes, self.named_rules, client_roots)
        rule_indexes = dict(self.rule_indexes)
        named_rules = dict(self.named_rules)
        for name in old_names:
            del rule_indexes[name]
            skeleton = _skeleton(name)
            others = named_rules.pop(skeleton, frozenset()) - {name}
            if others:
                named_rules[skeleton] = others
        for name, indexes in new_names.items():
            rule_indexes[name] = indexes
            skeleton = _skeleton(name)
            if skeleton:
                named_rules[skeleton] = named_rules.get(skeleton, frozenset()) | {name}
        return PathMap(self.selector, answers, rule_indexes, named_rules, client_roots)

    def is_equal(self, other: PathMap[T]) -> bool:
        """Report whether all paths and answers are the same."""
        return (
            self.answers == other.answers
            and self.rule_indexes == other.rule_indexes
            and self.client_roots == other.client_roots
        )


@dataclass(frozen=True)
class Changes:
    """The paths in which two snapshots of a mirror differ."""

    changed: tuple[str, ...]
    """Paths that are new or have another answer."""
    removed: tuple[str, ...]
    """Paths that no longer exist."""


class Snapshot(Generic[T]):
    """All answers of a mirror at one time, from one snapshot of the server. It never changes.

    Use it for look-ups that must be consistent with each other, or with `info`.
    """

    __slots__ = ("_map", "info")

    info: SnapshotInfo
    """What applies to all answers: version, kinds that are not completely known, and when sources were in sync."""

    def __init__(self, paths: PathMap[T], info: SnapshotInfo) -> None:
        self._map = paths
        self.info = info

    def get(self, path: str) -> T:
        """Return the answer of a path. It may be named by the index of a rule that has a name.

        Raises NotSubscribedError or NotInMirrorError.
        """
        return self._map.get(path)

    def paths(self) -> Iterable[str]:
        """Return the names of all paths."""
        return self._map.answers.keys()

    def items(self) -> Iterator[tuple[str, T]]:
        """Iterate over the names and answers of all paths."""
        return ((name, entry.value) for name, entry in self._map.answers.items())

    def changes_since(self, previous: Snapshot[T]) -> Changes:
        """Return what is different from an earlier snapshot of the same mirror."""
        now, before = self._map.answers, previous._map.answers
        if now is before:
            return Changes((), ())
        changed = tuple(name for name, entry in now.items() if before.get(name) is not entry)
        return Changes(changed, tuple(name for name in before if name not in now))

    def has_same_content(self, other: Snapshot[T]) -> bool:
        """Report whether paths, answers and the states of kinds are those of another snapshot of the same mirror."""
        return self._map is other._map and self.info.kinds == other.info.kinds

    def __len__(self) -> int:
        return len(self._map.answers)

    def __repr__(self) -> str:
        return f"<Snapshot of {len(self)} paths, {self.info!r}>"


def _skeleton(path: str) -> str:
    """Return the skeleton of a path; empty for a form of path names that this version of the client does not know."""
    try:
        return path_names.parse(path).skeleton
    except path_names.PathSyntaxError:
        return ""


def _is_same_rule(own: str, other: str, indexes: Iterator[int]) -> bool:
    """Report whether a rule of a path is the other, which may be named by the index of a rule that has a name."""
    # Each rule that has a name takes an index, also if the other is named in the same way.
    index = None if own.startswith("#") else next(indexes, None)
    return own == other or (index is not None and other == f"#{index}")
