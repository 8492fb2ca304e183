"""TLS: certificates of both sides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

import entail_client
from entail_client import ClientTls, Mirror
from harness import BAKERY, BREAD, Server


@dataclass
class Tls:
    """A server with client certificates, and the files of its client."""

    server: Server
    ca: Path
    other_ca: Path
    identity: tuple[Path, Path]
    other_identity: tuple[Path, Path]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tls]:
    folder = tmp_path_factory.mktemp("tls")

    def issue(ca: trustme.CA, name: str) -> tuple[Path, Path]:
        certificate = ca.issue_cert(name)
        chain, key = folder / f"{name}-{id(ca)}.crt", folder / f"{name}-{id(ca)}.key"
        certificate.private_key_pem.write_to_path(key)
        for part in certificate.cert_chain_pems:
            part.write_to_path(chain, append=True)
        return chain, key

    ca, other = trustme.CA(), trustme.CA()
    ca_file, other_file = folder / "ca.pem", folder / "other.pem"
    ca.cert_pem.write_to_path(ca_file)
    other.cert_pem.write_to_path(other_file)
    certificate, key = issue(ca, "entail.test")
    options = [
        "--tls-cert",
        certificate,
        "--tls-key",
        key,
        "--tls-client-ca",
        ca_file,
        "--data-plane-san",
        "proxy.test",
    ]
    with Server(folder, BAKERY, *map(str, options), tcp=True) as server:
        identity = issue(ca, "proxy.test")
        with entail_client.connect(server.address, tls=ClientTls(ca_file, identity, "entail.test")) as client:
            client.wait_serving(20)
        yield Tls(server, ca_file, other_file, identity, issue(ca, "stranger.test"))


def test_clients_with_a_certificate_are_served(tls: Tls) -> None:
    settings = ClientTls(ca=tls.ca, identity=tls.identity, server_name="entail.test")
    for address in (tls.server.address, f"https://{tls.server.address}"):
        with entail_client.connect(address, tls=settings) as client, Mirror(client) as mirror:
            assert client.get(BREAD).answer == mirror.wait_ready(10).get(BREAD)


def test_clients_without_the_right_name_are_denied(tls: Tls) -> None:
    settings = ClientTls(ca=tls.ca, identity=tls.other_identity, server_name="entail.test")
    with entail_client.connect(tls.server.address, tls=settings) as client:
        with pytest.raises(entail_client.PermissionDeniedError):
            client.get(BREAD)
        with Mirror(client) as mirror, pytest.raises(entail_client.WaitTimeoutError, match="PERMISSION_DENIED"):
            mirror.wait_ready(1)


def test_failures_of_certificates_are_described(tls: Tls) -> None:
    for settings, message in [
        (ClientTls(ca=tls.other_ca, identity=tls.identity, server_name="entail.test"), "CERTIFICATE_VERIFY_FAILED"),
        (ClientTls(ca=tls.ca, identity=tls.identity, server_name="another.test"), "another.test|Hostname"),
        (ClientTls(ca=tls.ca, server_name="entail.test"), ""),
    ]:
        with entail_client.connect(tls.server.address, tls=settings) as client:
            with pytest.raises(entail_client.UnavailableError) as failure:
                client.get(BREAD)
            # The words are those of gRPC and differ between its versions.
            assert re.search(message, failure.value.message), failure.value.message
    with entail_client.connect(tls.server.address) as client, pytest.raises(entail_client.UnavailableError):
        client.get(BREAD)


def test_certificates_that_cannot_be_read_stop_no_mirror(tls: Tls, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(tls.ca.read_bytes())
    settings = ClientTls(ca=ca, identity=tls.identity, server_name="entail.test")
    with entail_client.connect(tls.server.address, tls=settings) as client:
        ca.unlink()
        with Mirror(client) as mirror:
            with pytest.raises(entail_client.WaitTimeoutError, match=r"ca\.pem"):
                mirror.wait_ready(0.5)
            ca.write_bytes(tls.ca.read_bytes())
            assert mirror.wait_ready(10).get(BREAD).policies
