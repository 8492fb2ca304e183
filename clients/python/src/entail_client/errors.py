"""The exceptions of the client. All of them are an `EntailError`."""

from __future__ import annotations

import grpc
from google.protobuf.message import DecodeError

from entail_client import v1
from entail_client.wire_formats_pb2 import ErrorInfo, StatusDetails

_DETAILS_KEY = "grpc-status-details-bin"
_PUSHBACK_KEY = "grpc-retry-pushback-ms"
_ERROR_DOMAIN = "entail.dev"
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class EntailError(Exception):
    """Base class of the exceptions of this package."""


class SettingsError(EntailError, ValueError):
    """A setting of the caller is invalid: an address, a certificate file, a prefix or a level."""


class ClosedError(EntailError):
    """The client is closed, or the mirror is closed or has failed.

    If the mirror has failed, `__cause__` is the exception that ended its thread.
    """


class WaitTimeoutError(EntailError, TimeoutError):
    """A wait for a mirror or a connection took longer than its timeout. The message has the last connection error."""


class NotKnownError(EntailError):
    """It is not known which policy of a kind is in effect. This does not mean that there is none: fail closed."""

    kind: str
    """The kind, as `Kind.group`."""
    reason: str
    """Why: the reason of the state of the kind, or of what is not known about it on the path.

    It is `NotComputed` if the server did not compute the policy, and `Listed` if policies of the kind are listed
    instead of merged.
    """

    def __init__(self, kind: str, reason: str, message: str) -> None:
        super().__init__(f"the effective {kind} is not known ({reason}): {message}")
        self.kind = kind
        self.reason = reason


class StatusError(EntailError):
    """A call failed with a gRPC status, from the server or from the connection.

    The codes that callers tell apart have subclasses; handle a reason that you do not know by its code.
    """

    code: grpc.StatusCode
    """The code of the status."""
    reason: str
    """The stable reason, such as `RouteNotFound`; empty if the status has none. docs/api.md lists all."""
    message: str
    """Explanation for people; it may change between versions."""
    nearest: str
    """The longest prefix of the path that exists; empty if none does, or the error is not about a path."""
    retry_after: float | None
    """Seconds for which the server asks to wait before another attempt; None if it does not say."""
    retryable: bool
    """Whether the same call can succeed later.

    It is true for UNAVAILABLE, and for RESOURCE_EXHAUSTED if the server is busy and says when to call again: a reply
    that is too large stays too large.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str = "",
        nearest: str = "",
        retry_after: float | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(f"{code.name}{f' ({reason})' if reason else ''}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.nearest = nearest
        self.retry_after = retry_after
        self.retryable = retryable

    @staticmethod
    def of(error: grpc.RpcError) -> StatusError:
        """Return the exception for an error of a stub."""
        if not isinstance(error, grpc.Call):
            return UnknownError(grpc.StatusCode.UNKNOWN, str(error))
        code = error.code() or grpc.StatusCode.UNKNOWN
        metadata = {
            key: value for key, value in error.trailing_metadata() or () if key in (_DETAILS_KEY, _PUSHBACK_KEY)
        }
        reason, nearest = _error_info(metadata.get(_DETAILS_KEY))
        retry_after, may_retry = _pushback(metadata.get(_PUSHBACK_KEY))
        retryable = may_retry and (
            code is grpc.StatusCode.UNAVAILABLE
            or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry_after is not None)
        )
        return _CLASSES.get(code, UnknownError)(
            code,
            error.details() or "",
            reason=reason,
            nearest=nearest,
            retry_after=retry_after,
            retryable=retryable,
        )

    @staticmethod
    def of_path(error: v1.PathError) -> StatusError:
        """Return the exception for the error of one path of a batch."""
        code = _CODES.get(error.code, grpc.StatusCode.UNKNOWN)
        return _CLASSES.get(code, UnknownError)(code, error.message, reason=error.reason, nearest=error.nearest)


class InvalidArgumentError(StatusError):
    """The request is malformed, such as a path name; `reason` tells what."""


class NotFoundError(StatusError):
    """The path or the object does not exist. It never means that a path has no policy."""


class PermissionDeniedError(StatusError):
    """The client certificate does not permit the call."""


class UnauthenticatedError(StatusError):
    """The client has no valid certificate or token."""


class ResourceExhaustedError(StatusError):
    """The server is busy (`retryable`), or the reply would be too large."""


class AbortedError(StatusError):
    """A listing was interrupted by another snapshot: start it again."""


class UnavailableError(StatusError):
    """The server cannot be reached, has no snapshot yet, or stops. Call again later."""


class DeadlineExceededError(StatusError):
    """The call took longer than its timeout, or than the server permits."""


class InternalError(StatusError):
    """The server has a defect, or its reply could not be read."""


class UnknownError(StatusError):
    """The call failed with a code that has no class of its own."""


class MirrorLookupError(EntailError, LookupError):
    """A look-up in a mirror has no answer."""


class NotReadyError(MirrorLookupError):
    """The mirror has received nothing since its start: wait with `Mirror.wait_ready`."""


class NotSubscribedError(MirrorLookupError):
    """The path is outside of the prefixes or levels of the mirror."""


class NotInMirrorError(MirrorLookupError):
    """The path does not exist, or is newer than the copy."""


_CLASSES: dict[grpc.StatusCode, type[StatusError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.ABORTED: AbortedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.INTERNAL: InternalError,
}


def _error_info(details: str | bytes | None) -> tuple[str, str]:
    """Return the reason and the nearest path of the details of a status."""
    if not isinstance(details, bytes):
        return "", ""
    try:
        for detail in StatusDetails.FromString(details).details:
            if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                info = ErrorInfo.FromString(detail.value)
                if info.domain == _ERROR_DOMAIN:
                    return info.reason, info.metadata.get("nearest", "")
    except DecodeError:
        # Details that cannot be read, of a proxy in between for example, must not hide the status that they belong to.
        pass
    return "", ""


def _pushback(value: str | bytes | None) -> tuple[float | None, bool]:
    """Return the seconds to wait, and whether the server permits another attempt at all (gRFC A6)."""
    if value is None:
        return None, True
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if text.isascii() and text.isdigit():
        return int(text[:10]) / 1000, True
    return None, False
