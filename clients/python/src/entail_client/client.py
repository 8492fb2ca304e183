"""The client of a server: look-ups, batches, lists of paths, and the stubs for everything else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

import grpc

from entail_client import v1
from entail_client._connect import ClientTls, Endpoint
from entail_client.answers import BatchReply, EffectivePolicies, PathList, Reply, SnapshotInfo
from entail_client.errors import (
    AbortedError,
    ClosedError,
    DeadlineExceededError,
    EntailError,
    StatusError,
    UnavailableError,
    WaitTimeoutError,
)
from entail_client.wire_formats_pb2 import HealthCheckRequest, HealthCheckResponse

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
# How often a listing starts again because the snapshot changed between two pages.
_LIST_ATTEMPTS = 10
# How long the channel connects in the background after a call; another call that fails begins anew.
_RECONNECT_SECONDS = 60.0


def connect(address: str, *, tls: ClientTls | None = None, timeout: float = 10.0) -> Client:
    """Return a client of the server at `host:port`, `http://host:port`, `https://host:port` or `unix:PATH`.

    With `tls`, or with an address that begins with `https://`, the connection uses TLS. `timeout` is the number of
    seconds that a call may take, unless the call sets its own.

    The server need not be reachable yet: the client connects with the first call, and again after a connection is lost.
    Use `Client.wait_serving` to wait for it. Raises SettingsError if the address is malformed or a certificate file
    cannot be read.
    """
    return Client(Endpoint.parse(address, tls), timeout)


class Client:
    """Calls one server. Create it with `connect`, and close it or use it as a context manager.

    A client may be used by several threads at once. All calls have a timeout, and raise a `StatusError` if they fail.
    They are not repeated: `StatusError.retryable` and `StatusError.retry_after` tell whether and when to call again.
    """

    policies: v1.EffectivePolicyServiceStub
    """The stub of EffectivePolicyService. Its calls raise grpc.RpcError: see `StatusError.of`. Set their timeout."""
    insight: v1.PolicyInsightServiceStub
    """The stub of PolicyInsightService, in the same way."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._closed = False
        # Guards the two fields around it: no call is begun in a channel that is closed.
        self._lock = threading.Lock()
        self._connecting: grpc.Future[HealthCheckResponse] | None = None
        self._channel = endpoint.open_channel()
        # Health is served to every client, under any load.
        self._check_health: grpc.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse] = (
            self._channel.unary_unary(
                "/grpc.health.v1.Health/Check", HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
            )
        )
        self.policies = v1.EffectivePolicyServiceStub(self._channel)
        self.insight = v1.PolicyInsightServiceStub(self._channel)

    def get(
        self,
        path: str | v1.PathRef,
        *,
        kinds: Iterable[str] = (),
        held: EffectivePolicies | None = None,
        timeout: float | None = None,
    ) -> Reply:
        """Return the effective policies of a path, given by its name or in parts.

        `kinds` are the kinds to return, as `Kind.group`; all if empty. `held` is an answer for the same path and kinds
        that the caller has: if it is current, the server does not send it again, and the reply contains it.

        Raises NotFoundError if the path does not exist, InvalidArgumentError if its name is malformed, and other
        StatusErrors.
        """
        kinds = strings("kinds", kinds)
        request = _get_request(path, held)
        request.kinds.extend(kinds)
        response = self._call(self.policies.GetEffectivePolicies, request, timeout)
        result = response.result
        if held is not None and result.not_modified:
            answer = held
        else:
            answer = EffectivePolicies(tuple(result.policies), result.etag)
        return Reply(answer, _info(response, kinds))

    def batch_get(
        self,
        paths: Iterable[str | v1.PathRef],
        *,
        kinds: Iterable[str] = (),
        held: Mapping[str, EffectivePolicies] | None = None,
        timeout: float | None = None,
    ) -> BatchReply:
        """Return the effective policies of up to 10 000 paths from one snapshot.

        `kinds` is as in `get`. `held` are answers that the caller has, by path name.

        A path that does not exist or is malformed fails alone: its entry in the reply is a StatusError, which is not
        raised.
        """
        kinds = strings("kinds", kinds)
        held = held or {}
        if isinstance(paths, str):
            raise TypeError("paths is one text, and not a list of path names")
        answers_held = [(path, held.get(path) if isinstance(path, str) else None) for path in paths]
        requests = [_get_request(path, answer) for path, answer in answers_held]
        request = v1.BatchGetEffectivePoliciesRequest(requests=requests, kinds=kinds)
        response = self._call(self.policies.BatchGetEffectivePolicies, request, timeout)
        if len(response.results) != len(requests):
            raise EntailError(f"the server sent {len(response.results)} results for {len(requests)} paths")
        shared: dict[int, EffectivePolicies] = {}
        answers: list[EffectivePolicies | StatusError] = []
        for (_, answer), result in zip(answers_held, response.results, strict=True):
            if result.HasField("error"):
                answers.append(StatusError.of_path(result.error))
            elif result.not_modified and answer is not None:
                answers.append(answer)
            elif not result.HasField("body") or result.body >= len(response.bodies):
                raise EntailError("the server sent a result without its answer")
            else:
                if result.body not in shared:
                    body = response.bodies[result.body]
                    shared[result.body] = EffectivePolicies(tuple(body.policies), result.etag)
                answers.append(shared[result.body])
        return BatchReply(tuple(answers), _info(response, kinds))

    def resolve(self, request: v1.ResolveRequestRequest, *, timeout: float | None = None) -> v1.ResolveRequestResponse:
        """Return the rule that matches a request, and its effective policies, or why no rule matches.

        A request that no rule matches is not an error: the reply then has `unresolved` entries.
        """
        return self._call(self.policies.ResolveRequest, request, timeout)

    def list_paths(
        self,
        name: str = "",
        *,
        levels: Iterable[str] = (),
        timeout: float | None = None,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> PathList:
        """Return the names of all paths through an object or below a path; all paths of the server if `name` is empty.

        `levels` are the levels to list, such as `RouteRule`; all if empty. All pages are from one snapshot: the listing
        starts again if another one is published in between. `timeout` is for all pages together. `metadata` can contain
        a token, as `("authorization", "Bearer ...")`.
        """
        levels = strings("levels", levels)
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        for attempt in range(_LIST_ATTEMPTS):
            try:
                return self._list_once(name, levels, deadline, metadata)
            except AbortedError:
                if attempt + 1 == _LIST_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _list_once(
        self, name: str, levels: Sequence[str], deadline: float, metadata: Sequence[tuple[str, str]]
    ) -> PathList:
        paths: list[str] = []
        truncated = False
        token = ""
        while True:
            request = v1.ListPathsRequest(name=name, levels=levels, page_size=10_000, page_token=token)
            response = self._call(self.insight.ListPaths, request, max(0.0, deadline - time.monotonic()), metadata)
            paths.extend(response.paths)
            truncated |= response.truncated
            token = response.next_page_token
            if not token:
                return PathList(tuple(paths), truncated, _info(response, ()))

    def server_status(
        self, *, timeout: float | None = None, metadata: Sequence[tuple[str, str]] = ()
    ) -> v1.GetServerStatusResponse:
        """Return the state of the server: its kinds, its problems, and the number of its paths."""
        return self._call(self.insight.GetServerStatus, v1.GetServerStatusRequest(), timeout, metadata)

    def wait_serving(self, timeout: float | None = None) -> None:
        """Wait until the server can be reached and has a snapshot, so that it answers look-ups.

        Raises WaitTimeoutError if that takes longer than `timeout` seconds, or than the timeout of the client, and a
        StatusError if the server refuses the connection for another reason than that it is not available.
        """
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        why = "it cannot be reached"
        while (left := deadline - time.monotonic()) > 0:
            try:
                health = self._call(self._check_health, HealthCheckRequest(), left, wait_for_ready=True)
            except DeadlineExceededError:
                break
            except UnavailableError as error:
                why = error.message
            else:
                if health.status == HealthCheckResponse.SERVING:
                    return
                why = "it has no snapshot yet"
            time.sleep(max(0.0, min(0.05, deadline - time.monotonic())))
        raise WaitTimeoutError(f"the server at {self._endpoint.target} does not serve: {why}")

    def close(self) -> None:
        """Close the connection. Calls in progress fail. Mirrors of this client have their own connections."""
        with self._lock:
            self._closed = True
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self._endpoint.target}{', closed' if self._closed else ''}>"

    def _call(
        self,
        method: grpc.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        timeout: float | None,
        metadata: Sequence[tuple[str, str]] = (),
        *,
        wait_for_ready: bool = False,
    ) -> _Response:
        if self._closed:
            raise ClosedError("the client is closed")
        seconds = self._timeout if timeout is None else timeout
        try:
            return method(request, timeout=seconds, metadata=tuple(metadata), wait_for_ready=wait_for_ready)
        except grpc.RpcError as error:
            if self._closed:
                raise ClosedError("the client was closed during the call") from error
            status = StatusError.of(error)
            if isinstance(status, UnavailableError):
                self._reconnect()
            raise status from error
        except ValueError as error:
            # gRPC has no type of its own for a channel that is closed meanwhile.
            if self._closed:
                raise ClosedError("the client is closed") from error
            raise

    def _reconnect(self) -> None:
        """Let gRPC connect in the background.

        By itself, a channel makes progress while a call waits for it, and otherwise every five seconds; but calls fail
        at once, and do not wait, after a connection has failed.
        """
        with self._lock:
            if not self._closed and (self._connecting is None or self._connecting.done()):
                self._connecting = self._check_health.future(
                    HealthCheckRequest(), timeout=_RECONNECT_SECONDS, wait_for_ready=True
                )


def strings(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return texts as a tuple; one text instead of several is an error that would otherwise pass as its letters."""
    if isinstance(values, str):
        raise TypeError(f"{name} is one text, and not a list of texts")
    return tuple(values)


def _get_request(path: str | v1.PathRef, held: EffectivePolicies | None) -> v1.GetEffectivePoliciesRequest:
    etag = "" if held is None else held.etag
    if isinstance(path, str):
        return v1.GetEffectivePoliciesRequest(path=path, if_none_match=etag)
    return v1.GetEffectivePoliciesRequest(ref=path, if_none_match=etag)


def _info(
    response: v1.GetEffectivePoliciesResponse | v1.BatchGetEffectivePoliciesResponse | v1.ListPathsResponse,
    requested_kinds: Iterable[str],
) -> SnapshotInfo:
    return SnapshotInfo.of(
        response.version if response.HasField("version") else None,
        response.synced_at if response.HasField("synced_at") else None,
        response.kinds,
        requested_kinds,
    )
