"""A copy of effective policies in this process, which a watch stream keeps up to date."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Generic, TypeVar, cast, overload

from entail_client import v1
from entail_client.answers import EffectivePolicies
from entail_client.client import Client, strings
from entail_client.errors import ClosedError, NotReadyError, SettingsError, WaitTimeoutError
from entail_client.mirror._path_map import Changes, PathSelector, Snapshot
from entail_client.mirror._reflector import Freshness, Reflector

__all__ = ["Changes", "Freshness", "Mirror", "Snapshot"]

T = TypeVar("T")


class Mirror(Generic[T]):
    """A copy of the effective policies of some paths, updated by a watch stream of a server.

    Look-ups read the copy: they do no I/O and never wait. A mirror may be used by several threads at once.

    Each distinct answer is converted once, when it arrives, to the value that look-ups return: by default the
    `EffectivePolicies` themselves, or the result of `compile` for them.

    While the server is unreachable, the last copy stays in use, without a time limit, and the mirror reconnects with
    exponential backoff. `age` and `freshness` tell how old the copy is.

    Close a mirror, or use it as a context manager: that ends its threads.
    """

    @overload
    def __init__(
        self: Mirror[EffectivePolicies],
        client: Client,
        *,
        prefixes: Iterable[str] = (),
        levels: Iterable[str] = (),
        kinds: Iterable[str] = (),
        timeout: float = 30.0,
        max_backoff: float = 5.0,
    ) -> None: ...

    @overload
    def __init__(
        self,
        client: Client,
        *,
        prefixes: Iterable[str] = (),
        levels: Iterable[str] = (),
        kinds: Iterable[str] = (),
        compile: Callable[[EffectivePolicies], T],
        timeout: float = 30.0,
        max_backoff: float = 5.0,
    ) -> None: ...

    def __init__(
        self,
        client: Client,
        *,
        prefixes: Iterable[str] = (),
        levels: Iterable[str] = (),
        kinds: Iterable[str] = (),
        compile: Callable[[EffectivePolicies], T] | None = None,  # noqa: A002
        timeout: float = 30.0,
        max_backoff: float = 5.0,
    ) -> None:
        """Create a mirror of the server of a client and start to watch it. The server need not be reachable yet.

        The mirror has a connection of its own: it does not end with the client.

        - `prefixes`: only these paths and those below them; all paths if empty.
        - `levels`: only paths that end at one of these levels, such as `RouteRule`; all if empty.
        - `kinds`: only these policy kinds, as `Kind.group`; all if empty.
        - `compile`: called in the thread of the mirror, once for each distinct answer. If it raises, the mirror fails:
          it keeps its copy, is not updated any more, and waits raise ClosedError.
        - `timeout`: seconds without a message after which the mirror reconnects. The server sends something at least
          every 10 seconds, so it must be more.
        - `max_backoff`: maximum seconds between attempts to connect; the first delay is a hundredth of it.

        Raises SettingsError for a malformed prefix, an unknown level, or times out of these bounds.
        """
        if not timeout > 10:
            raise SettingsError(f"timeout is {timeout} s; it must be more than the 10 s between heartbeats")
        if not 0 < max_backoff < threading.TIMEOUT_MAX:
            raise SettingsError(f"max_backoff is {max_backoff} s; it must be more than 0")
        selector = PathSelector(strings("prefixes", prefixes), strings("levels", levels))
        # Without `compile`, T is EffectivePolicies: see the overloads.
        compile_answer = compile or cast("Callable[[EffectivePolicies], T]", _same)
        reflector = Reflector(
            client._endpoint, selector, strings("kinds", kinds), compile_answer, min(timeout, 86_400.0), max_backoff
        )
        self._reflector = reflector
        self._shared = reflector.shared
        # Ends the threads of a mirror that is dropped without being closed, and at the end of the program.
        self._finalizer = weakref.finalize(self, reflector.stop)
        reflector.start()

    def get(self, path: str) -> T:
        """Return the answer of a path. It may be named by the index of a rule that has a name.

        To fail closed if the state of a kind is not known, take a `snapshot` and look at its `info`.

        Raises NotReadyError before the first complete update, NotSubscribedError for a path outside of the prefixes or
        levels, and NotInMirrorError for one that does not exist.
        """
        return self.snapshot().get(path)

    def snapshot(self) -> Snapshot[T]:
        """Return all answers of now, which are consistent with each other and never change.

        Raises NotReadyError before the first complete update.
        """
        snapshot = self._shared.snapshot
        if snapshot is None:
            raise NotReadyError("no update has been received yet")
        return snapshot

    @property
    def freshness(self) -> Freshness:
        """The state of the connection and of the last complete update."""
        return self._shared.freshness

    @property
    def connected(self) -> bool:
        """Whether the watch stream is open and has delivered a complete update."""
        return self._shared.freshness.connected

    @property
    def kinds(self) -> tuple[v1.KindState, ...]:
        """The kinds whose state is not COMPLETE, as of the last complete update."""
        return self._shared.freshness.kinds

    @property
    def age(self) -> float | None:
        """Seconds since the last complete update; None before the first.

        Heartbeats are updates: while the mirror is connected, its age is about 10 seconds at most. Whether the server
        itself is in step with its sources is in `synced_at` of `freshness`.
        """
        updated_at = self._shared.updated_at
        return None if updated_at is None else time.monotonic() - updated_at

    def wait_ready(self, timeout: float) -> Snapshot[T]:
        """Wait for the first complete update, at most `timeout` seconds, and return the current snapshot.

        Raises WaitTimeoutError, with the last error of the connection, and ClosedError if the mirror is closed or has
        failed.
        """
        self._wait(lambda: self._shared.snapshot is not None, timeout, "the first update")
        return self.snapshot()

    def wait_for(self, is_enough: Callable[[Freshness], bool], timeout: float) -> Freshness:
        """Wait until `is_enough` returns True for the current freshness, at most `timeout` seconds, and return it.

        `is_enough` is called with a lock held: it must not wait. Raises as `wait_ready` does.
        """
        found: list[Freshness] = []

        def condition() -> bool:
            freshness = self._shared.freshness
            if is_enough(freshness):
                found.append(freshness)
            return bool(found)

        self._wait(condition, timeout, "the freshness that was asked for")
        return found[0]

    def wait_changed(self, previous: Snapshot[T], timeout: float) -> Snapshot[T] | None:
        """Wait until paths, answers or states of kinds are not those of `previous`, and return the current snapshot.

        Returns None if nothing changed within `timeout` seconds. Changes in between are combined:
        `Snapshot.changes_since` lists the paths that differ. Raises ClosedError if the mirror is closed or has failed.
        """

        def differs() -> bool:
            snapshot = self._shared.snapshot
            return snapshot is not None and not snapshot.has_same_content(previous)

        try:
            self._wait(differs, timeout, "a change")
        except WaitTimeoutError:
            return None
        return self.snapshot()

    def _wait(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        shared = self._shared
        with shared.condition:
            reached = shared.condition.wait_for(
                lambda: shared.ended is not None or condition(), min(timeout, threading.TIMEOUT_MAX)
            )
            if shared.ended is not None and not condition():
                error, cause = shared.ended
                raise ClosedError(error) from cause
            if not reached:
                why = f": {shared.freshness.error}" if shared.freshness.error else ""
                raise WaitTimeoutError(f"{what} did not arrive within {timeout:g} s{why}")

    def close(self, timeout: float = 10.0) -> None:
        """End the stream and the threads of the mirror. The last copy can still be read.

        Raises WaitTimeoutError if the threads do not end within `timeout` seconds, because `compile` does not return.
        """
        self._finalizer()
        deadline = time.monotonic() + timeout
        for thread in self._reflector.threads:
            if thread is threading.current_thread():
                continue
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise WaitTimeoutError(f"the thread {thread.name} did not end within {timeout:g} s")

    def __enter__(self) -> Mirror[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Mirror of {self._reflector.endpoint.target}, {self._shared.freshness!r}>"


def _same(answer: EffectivePolicies) -> EffectivePolicies:
    return answer
