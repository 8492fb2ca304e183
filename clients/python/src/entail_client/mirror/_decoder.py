"""Decodes the messages of a watch stream into a `PathMap`. It does no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from entail_client import v1
from entail_client.answers import EffectivePolicies
from entail_client.mirror._path_map import Delta, Entry, PathMap, PathSelector

T = TypeVar("T")


class ProtocolError(Exception):
    """A message refers to an answer that the stream has not sent: open a new stream without a resume token."""


class StreamDecoder(Generic[T]):
    """State of a watch stream, and the copy that was built from it. The copy outlives the stream."""

    def __init__(self, selector: PathSelector, compile_answer: Callable[[EffectivePolicies], T]) -> None:
        self._compile = compile_answer
        self._copy: PathMap[T] = PathMap(selector)
        # The answers of the stream, by number.
        self._numbered: dict[int, Entry[T]] = {}
        # Answers by etag: an answer that a later stream sends again is not compiled again, and is the same object.
        self._by_etag: WeakValueDictionary[str, Entry[T]] = WeakValueDictionary()
        # Changes since the last complete update, and whether they replace the copy.
        self._delta: Delta[T] = Delta()
        self._reset = False

    def start_stream(self) -> None:
        """Prepare for a new stream, which either resumes from the copy or resets it."""
        self._numbered.clear()
        self._delta = Delta()
        self._reset = False

    def decode(self, message: v1.WatchEffectivePoliciesResponse) -> PathMap[T] | None:
        """Decode a message; return the new copy if the message completes an update.

        The copy is the same object as before if nothing is different.
        """
        if message.reset:
            self.start_stream()
            self._reset = True
        for body in message.bodies:
            self._numbered[body.number] = self._compile_once(body)
        for path in message.paths:
            entry = self._numbered.get(path.body)
            if entry is None:
                raise ProtocolError(f"protocol error: the server refers to unknown answer {path.body}")
            self._delta.changed[path.path] = (tuple(path.rule_indexes), entry)
        self._delta.removed.update(message.removed_paths)
        if not message.complete:
            return None
        if message.HasField("client_roots"):
            self._delta.client_roots = frozenset(message.client_roots.roots)
        delta, self._delta = self._delta, Delta()
        if self._reset:
            copy = PathMap[T](self._copy.selector).apply(delta)
            self._reset = False
            if not copy.is_equal(self._copy):
                self._copy = copy
        else:
            self._copy = self._copy.apply(delta)
        for number in message.removed_bodies:
            self._numbered.pop(number, None)
        return self._copy

    def _compile_once(self, body: v1.NumberedBody) -> Entry[T]:
        """Compile an answer unless one with the same etag is in use."""
        entry = self._by_etag.get(body.etag)
        if entry is None:
            entry = Entry(self._compile(EffectivePolicies(tuple(body.policies), body.etag)))
            if body.etag:
                self._by_etag[body.etag] = entry
        return entry
