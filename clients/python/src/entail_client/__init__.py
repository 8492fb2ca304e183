"""Client of entail: the effective policies of Gateway API paths.

Look up a path at the server:

    with entail_client.connect("unix:/run/entail/entail.sock") as client:
        reply = client.get("gateways/shop/web/listeners/http", kinds=["TimeoutPolicy.example.com"])
        print(reply.spec("TimeoutPolicy.example.com"))

Or keep a copy of the paths that you serve, which a background thread updates, and look up without I/O:

    with entail_client.Mirror(client, prefixes=["gateways/shop/web"], levels=["RouteRule"]) as mirror:
        mirror.wait_ready(30)
        print(mirror.get("gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/#0").policies)

`v1` contains the messages and stubs of entail.v1.
"""

from entail_client import path, v1
from entail_client._connect import ClientTls
from entail_client.answers import BatchReply, EffectivePolicies, PathList, Reply, SnapshotInfo
from entail_client.client import Client, connect
from entail_client.errors import (
    AbortedError,
    ClosedError,
    DeadlineExceededError,
    EntailError,
    InternalError,
    InvalidArgumentError,
    MirrorLookupError,
    NotFoundError,
    NotInMirrorError,
    NotKnownError,
    NotReadyError,
    NotSubscribedError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SettingsError,
    StatusError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
    WaitTimeoutError,
)
from entail_client.mirror import Changes, Freshness, Mirror, Snapshot

__all__ = [
    "AbortedError",
    "BatchReply",
    "Changes",
    "Client",
    "ClientTls",
    "ClosedError",
    "DeadlineExceededError",
    "EffectivePolicies",
    "EntailError",
    "Freshness",
    "InternalError",
    "InvalidArgumentError",
    "Mirror",
    "MirrorLookupError",
    "NotFoundError",
    "NotInMirrorError",
    "NotKnownError",
    "NotReadyError",
    "NotSubscribedError",
    "PathList",
    "PermissionDeniedError",
    "Reply",
    "ResourceExhaustedError",
    "SettingsError",
    "Snapshot",
    "SnapshotInfo",
    "StatusError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnknownError",
    "WaitTimeoutError",
    "connect",
    "path",
    "v1",
]
