"""Parses addresses of servers and opens channels."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import grpc

from entail_client.errors import SettingsError

# The maximum size of a reply; the 4 MiB that gRPC permits by itself are too few for large batches.
_MAX_REPLY_BYTES = 64 * 1024 * 1024
_HOST_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[^\s\[\]/:@?#]+):([0-9]{1,5})")


@dataclass(frozen=True)
class ClientTls:
    """TLS settings. The files are read when a connection is opened."""

    ca: str | os.PathLike[str] | None = None
    """PEM file with the CA certificate that signed the server certificate; the CAs that gRPC contains if None."""
    identity: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None
    """PEM files with the client certificate and its private key."""
    server_name: str | None = None
    """Name expected in the server certificate, if it differs from the host of the address."""


@dataclass(frozen=True)
class Endpoint:
    """A server and how to connect to it."""

    target: str
    tls: ClientTls | None

    @staticmethod
    def parse(address: str, tls: ClientTls | None) -> Endpoint:
        """Parse `host:port`, `http://host:port`, `https://host:port` or `unix:PATH`."""

        def invalid(why: str) -> SettingsError:
            return SettingsError(
                f"`{address}` is not a server address: {why}; use `host:port`, `https://host:port` or `unix:PATH`"
            )

        if address.startswith("unix:"):
            if tls is not None:
                raise invalid("a Unix socket does not use TLS")
            path = address.removeprefix("unix:")
            path = "/" + path.lstrip("/") if path.startswith("//") else path
            if not path or "\0" in path:
                raise invalid("the path is missing")
            return Endpoint(f"unix:{path}", None)
        if address.startswith("http://") and tls is not None:
            raise invalid("certificates need `https://host:port`")
        uses_tls = tls is not None or address.startswith("https://")
        host_port = address.removeprefix("http://").removeprefix("https://").removesuffix("/")
        match = _HOST_PORT.fullmatch(host_port)
        if match is None or not 1 <= int(match[1]) <= 65535:
            raise invalid("the port is missing" if ":" not in host_port else "not a host and a port")
        return Endpoint(f"dns:///{host_port}", (tls or ClientTls()) if uses_tls else None)

    def open_channel(self, *, private: bool = False) -> grpc.Channel:
        """Open a channel; `private`: with a connection that no other channel shares.

        Raises SettingsError if a certificate file cannot be read.
        """
        options: list[tuple[str, str | int]] = [
            ("grpc.max_receive_message_length", _MAX_REPLY_BYTES),
            # A sidecar is not behind the proxy that the environment names for other requests.
            ("grpc.enable_http_proxy", 0),
            ("grpc.use_local_subchannel_pool", int(private)),
            # Finds connections that are dead without having been closed.
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            # While the channel waits before it connects again, calls fail at once: keep that short.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1_000),
        ]
        if self.target.startswith("unix:"):
            # By itself gRPC takes the encoded path of the socket, which HTTP/2 implementations in Rust reject.
            options.append(("grpc.default_authority", "localhost"))
        if self.tls is None:
            return grpc.insecure_channel(self.target, options)
        if self.tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", self.tls.server_name))
        certificate, key = self.tls.identity or (None, None)
        credentials = grpc.ssl_channel_credentials(_read(self.tls.ca), _read(key), _read(certificate))
        return grpc.secure_channel(self.target, credentials, options)


def _read(path: str | os.PathLike[str] | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"failed to load the certificates: {error}") from error
