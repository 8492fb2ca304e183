"""The threads of a mirror: one watches a server and reconnects after errors, one ends streams that are silent."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

import grpc

from entail_client import v1
from entail_client._connect import Endpoint
from entail_client.answers import EffectivePolicies, SnapshotInfo
from entail_client.errors import SettingsError, StatusError
from entail_client.mirror._decoder import ProtocolError, StreamDecoder
from entail_client.mirror._path_map import PathMap, PathSelector, Snapshot

T = TypeVar("T")

# Ratio of the maximum delay between attempts to the first delay.
_BACKOFF_RATIO = 100
_LOG = logging.getLogger("entail_client")


@dataclass(frozen=True)
class Freshness:
    """State of the connection of a mirror and of its last complete update."""

    connected: bool = False
    """Whether the watch stream is open and has delivered a complete update."""
    version: v1.Version | None = None
    """Version of the last complete update; None before the first."""
    synced_at: datetime | None = None
    """When the sources of the server were last in sync."""
    kinds: tuple[v1.KindState, ...] = ()
    """The kinds whose state is not COMPLETE."""
    error: str | None = None
    """The last error, if the mirror is not connected."""


class Shared(Generic[T]):
    """What a mirror shares with its threads. Waiters are woken by `condition`."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        # Read without the lock: each is one reference, which is replaced and never changed.
        self.snapshot: Snapshot[T] | None = None
        self.freshness = Freshness()
        self.updated_at: float | None = None
        # Why the mirror is not updated any more, and the exception that caused it.
        self.ended: tuple[str, BaseException | None] | None = None

    def publish(self, paths: PathMap[T], info: SnapshotInfo) -> None:
        """Publish a complete update."""
        with self.condition:
            self.snapshot = Snapshot(paths, info)
            self.updated_at = time.monotonic()
            self.freshness = Freshness(True, info.version, info.synced_at, info.kinds)
            self.condition.notify_all()

    def disconnected(self, error: str) -> None:
        """Record that the stream has ended. The copy stays."""
        with self.condition:
            self.freshness = replace(self.freshness, connected=False, error=error)
            self.condition.notify_all()

    def end(self, error: str, cause: BaseException | None) -> None:
        """Record that the mirror will not be updated any more."""
        with self.condition:
            if self.ended is None:
                self.ended = (error, cause)
                self.freshness = replace(self.freshness, connected=False, error=error)
            self.condition.notify_all()


class Reflector(Generic[T]):
    """Watches a server until it is stopped. It does not refer to its mirror, which can be collected without a close."""

    def __init__(
        self,
        endpoint: Endpoint,
        selector: PathSelector,
        kinds: tuple[str, ...],
        compile_answer: Callable[[EffectivePolicies], T],
        timeout: float,
        max_backoff: float,
    ) -> None:
        self.shared: Shared[T] = Shared()
        self.endpoint = endpoint
        self._selector = selector
        self._kinds = kinds
        self._decoder = StreamDecoder(selector, compile_answer)
        self._timeout = timeout
        self._max_backoff = max_backoff
        self._backoff = max_backoff / _BACKOFF_RATIO
        # Resume token of the last complete update; empty before the first.
        self._resume_token = ""
        self._stopped = threading.Event()
        # Guards the call in progress, which stop and the watchdog end from other threads.
        self._lock = threading.Condition()
        self._call: grpc.Call | None = None
        # When the call is ended unless a message arrives; None while no message is awaited.
        self._deadline: float | None = None
        self._timed_out = False
        self.threads = (
            threading.Thread(target=self._run, name="entail-mirror", daemon=True),
            threading.Thread(target=self._watch_deadlines, name="entail-mirror-watchdog", daemon=True),
        )

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """End the stream and the threads, without waiting for them."""
        self._stopped.set()
        self.shared.end("the mirror is closed", None)
        with self._lock:
            if self._call is not None:
                self._call.cancel()
            self._lock.notify_all()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                error = self._watch_once()
                if not self._stopped.is_set():
                    self.shared.disconnected(error)
                    self._stopped.wait(self._backoff)
                    self._backoff = min(2 * self._backoff, self._max_backoff)
        except Exception as error:  # noqa: BLE001
            # An error of the function that compiles answers, or a defect. Threads that wait for the mirror raise it;
            # the log is for programs in which none waits.
            _LOG.exception("the mirror of %s has failed", self.endpoint.target)
            self.shared.end(f"the mirror has failed: {error!r}", error)
        finally:
            self.stop()

    def _watch_once(self) -> str:
        """Open one watch stream and read it to its end. Returns why it ended."""
        try:
            # A channel for each attempt: it connects at once, and reads certificates that were renewed meanwhile.
            channel = self.endpoint.open_channel(private=True)
        except SettingsError as error:
            return str(error)
        try:
            request = v1.WatchEffectivePoliciesRequest(
                prefixes=self._selector.prefixes,
                levels=self._selector.levels,
                kinds=self._kinds,
                resume_token=self._resume_token,
            )
            self._decoder.start_stream()
            call = v1.EffectivePolicyServiceStub(channel).WatchEffectivePolicies(request)
            if not self._begin(call):
                return "the mirror is closed"
            for message in call:
                # No message is awaited while this one is decoded, which can take long.
                self._await_message(False)
                self._decode(message)
                self._await_message(True)
        except ProtocolError as error:
            self._resume_token = ""
            return str(error)
        except grpc.RpcError as error:
            if self._timed_out:
                return f"no message from the server within {self._timeout:g} s"
            return _status_message(StatusError.of(error))
        else:
            return "the server closed the stream"
        finally:
            with self._lock:
                self._call, self._deadline = None, None
            channel.close()

    def _decode(self, message: v1.WatchEffectivePoliciesResponse) -> None:
        """Decode a message, and publish the copy if the message completes an update."""
        copy = self._decoder.decode(message)
        if copy is None:
            return
        info = SnapshotInfo.of(
            message.version if message.HasField("version") else None,
            message.synced_at if message.HasField("synced_at") else None,
            message.kinds,
            self._kinds,
        )
        self.shared.publish(copy, info)
        self._resume_token = message.resume_token
        self._backoff = self._max_backoff / _BACKOFF_RATIO

    def _begin(self, call: grpc.Call) -> bool:
        """Set the call in progress; returns False, and cancels it, if the mirror is stopped."""
        with self._lock:
            if self._stopped.is_set():
                call.cancel()
                return False
            self._call, self._timed_out = call, False
            self._deadline = time.monotonic() + self._timeout
            self._lock.notify_all()
            return True

    def _await_message(self, awaited: bool) -> None:
        with self._lock:
            self._deadline = time.monotonic() + self._timeout if awaited else None

    def _watch_deadlines(self) -> None:
        """End each call whose deadline passes. A later deadline is seen when the earlier one has passed."""
        with self._lock:
            while not self._stopped.is_set():
                left = self._timeout if self._deadline is None else self._deadline - time.monotonic()
                if left > 0:
                    self._lock.wait(left)
                elif self._call is not None:
                    self._timed_out = True
                    self._deadline = None
                    self._call.cancel()


def _status_message(status: StatusError) -> str:
    if status.code is grpc.StatusCode.UNAVAILABLE:
        return f"the server is not available: {status.message}"
    reason = f", {status.reason}" if status.reason else ""
    return f"the server rejected the request ({status.code.name}{reason}): {status.message}"
