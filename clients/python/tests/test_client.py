"""Look-ups, batches, lists and errors."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path

import grpc
import pytest

import entail_client
from entail_client import Client, ClientTls, EffectivePolicies, StatusError, v1
from harness import BAKERY, BREAD, RETRY, TIMEOUT, Server, wait_until


def test_a_look_up_returns_the_rules_and_their_origins(client: Client) -> None:
    reply = client.get(f"{BREAD}/rules/menu", kinds=[TIMEOUT])
    assert reply.spec(TIMEOUT) == {"client": {"request": "10s"}}
    policy = reply.answer.policy(TIMEOUT)
    assert policy is not None
    assert [(origin.unit, origin.block) for origin in policy.origins] == [("*", v1.Block.BLOCK_OVERRIDES)]
    assert reply.info.version is not None
    assert reply.info.version.generation >= 1
    assert reply.info.synced_at is not None
    assert abs((datetime.now(timezone.utc) - reply.info.synced_at).total_seconds()) < 600


def test_a_path_in_parts_has_the_same_answer(client: Client) -> None:
    parts = v1.PathRef(
        gateway="platform/storefront",
        listener="https",
        route="HTTPRoute/baker/bread",
        rule="#0",
    )
    assert client.get(parts).answer == client.get(f"{BREAD}/rules/menu").answer


def test_a_current_answer_is_not_sent_again(client: Client) -> None:
    menu, order = f"{BREAD}/rules/menu", "gateways/platform/backdoor"
    held = client.get(menu).answer
    assert client.get(menu, held=held).answer is held
    assert client.get(order, held=held).answer is not held
    batch = client.batch_get([menu, order], held={menu: held, order: held})
    assert batch.answers[0] is held
    assert batch.answers[1] == client.get(order).answer


def test_a_kind_without_policies_is_told_from_one_that_is_not_known(client: Client) -> None:
    reply = client.get("gateways/platform/backdoor", kinds=[TIMEOUT, "Nothing.example.com"])
    assert reply.spec(TIMEOUT) is None
    with pytest.raises(entail_client.NotKnownError) as failure:
        reply.spec("Nothing.example.com")
    assert (failure.value.kind, failure.value.reason) == ("Nothing.example.com", "NoProfile")
    # What was not asked for is not known to be absent.
    with pytest.raises(ValueError, match=RETRY):
        reply.spec(RETRY)


def test_a_batch_is_from_one_snapshot_and_paths_fail_alone(client: Client) -> None:
    batch = client.batch_get([f"{BREAD}/rules/menu", f"{BREAD}/rules/order", f"{BREAD}/rules/nope", "pods/a"])
    menu, order, missing, malformed = batch.answers
    assert menu == client.get(f"{BREAD}/rules/menu").answer
    assert isinstance(menu, EffectivePolicies)
    assert menu is order
    assert isinstance(missing, entail_client.NotFoundError)
    assert (missing.reason, missing.nearest) == ("RuleNotFound", BREAD)
    assert isinstance(malformed, entail_client.InvalidArgumentError)
    assert malformed.reason == "NotAPath"
    assert client.batch_get([]).answers == ()


def test_a_path_that_does_not_exist_has_a_reason(client: Client) -> None:
    with pytest.raises(entail_client.NotFoundError) as failure:
        client.get(f"{BREAD}/rules/nope")
    error = failure.value
    assert (error.code, error.reason, error.nearest) == (grpc.StatusCode.NOT_FOUND, "RuleNotFound", BREAD)
    assert not error.retryable
    assert error.retry_after is None
    with pytest.raises(entail_client.NotFoundError) as failure:
        client.get("gateways/platform/nowhere")
    assert (failure.value.reason, failure.value.nearest) == ("GatewayNotFound", "")


def test_requests_that_are_malformed_have_a_reason(client: Client) -> None:
    for path in ("", "pods/a", "gateways/ns", "gateways//gw", "gateways/a/b/listeners/c/routes/X/a/b/rules/#01"):
        with pytest.raises(entail_client.InvalidArgumentError) as failure:
            client.get(path)
        assert failure.value.reason in ("NotAPath", "NoTarget"), path
    with pytest.raises(entail_client.InvalidArgumentError) as failure:
        client.batch_get(["gateways/a/b"] * 10_001)
    assert failure.value.reason == "TooManyPaths"
    with pytest.raises(TypeError, match="kinds"):
        client.get("gateways/a/b", kinds=TIMEOUT)
    with pytest.raises(TypeError, match="paths"):
        client.batch_get("gateways/a/b")


def test_names_are_malformed_for_the_client_where_they_are_for_the_server(client: Client) -> None:
    rule = "gateways/a/b/listeners/l/routes/HTTPRoute/a/r/rules/#0"
    delegating = "/routes/HTTPRoute/a/r/rules/#0"
    names = [
        *("", "/", "pods/a", "gatewayclasses/c", "namespaces/a/b", "gateways", "gateways//gw", "gateways/a/b/"),
        *("gateways/a/b/listenersets/c/d/listeners/l", "gateways/a/b/routes/HTTPRoute/a/b", "gateways/\u00e9/b//"),
        *("mesh/*/services/a/b/ports/80", "mesh/*/services/a/b/ports/080", "mesh/*/services/a/b/ports/65536"),
        *("mesh/*/service/a/b", "mesh/*/services/a", "mesh/*/services/a/b/ports/\u0661", "mesh/*/services/a/b/ports/0"),
        *(rule, f"{rule}0", f"{rule}/x", f"{rule[:-1]}00", f"{rule[:-1]}x", f"{rule[:-1]}4294967296", rule[:-2]),
        *(f"{rule}/backends/Service/a/b/ports/{port}" for port in ("1", "x", "")),
        *("gateways/a/b/listeners/l" + delegating * count for count in (8, 9, 10)),
        "gateways/a/" + "b" * 9000,
    ]
    for name, answer in zip(names, client.batch_get(names).answers, strict=True):
        assert isinstance(answer, StatusError), name
        syntax_error = syntax_error_of(name)
        if syntax_error is None:
            assert isinstance(answer, entail_client.NotFoundError), (name, answer)
        else:
            assert isinstance(answer, entail_client.InvalidArgumentError), name
            # An empty path is an absent one.
            assert answer.reason == "NoTarget" or answer.message.endswith(syntax_error), (name, answer.message)


def syntax_error_of(name: str) -> str | None:
    try:
        entail_client.path.parse(name)
    except entail_client.path.PathSyntaxError as error:
        return str(error)
    return None


def test_paths_are_listed_in_pages_of_one_snapshot(client: Client) -> None:
    everything = client.list_paths()
    assert len(everything.paths) == client.server_status().paths == len(set(everything.paths))
    rules = client.list_paths("httproute/baker/bread", levels=["RouteRule"])
    assert rules.paths == (f"{BREAD}/rules/menu", f"{BREAD}/rules/order")
    levels = {entail_client.path.parse(path).level for path in everything.paths}
    assert levels >= {"Gateway", "Listener", "Route", "RouteRule", "Backend"}
    with pytest.raises(entail_client.NotFoundError) as failure:
        client.list_paths("httproute/baker/breads")
    assert failure.value.reason == "ObjectNotFound"


def test_a_request_is_resolved_to_its_rule(client: Client) -> None:
    request = v1.ResolveRequestRequest(host="bread.bakery.example", path="/order", method="POST")
    (resolved,) = client.resolve(request).resolved
    assert resolved.path == f"{BREAD}/rules/order"
    with pytest.raises(entail_client.InvalidArgumentError) as failure:
        client.resolve(v1.ResolveRequestRequest(host="a host"))
    assert failure.value.reason == "NotAHost"


def test_errors_of_stubs_are_converted(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        client.insight.Explain(v1.ExplainRequest(name="nothing/a/b"), timeout=10)
    error = StatusError.of(failure.value)
    assert isinstance(error, entail_client.NotFoundError)
    assert error.reason == "KindNotFound"


def test_a_server_that_is_gone_is_unavailable_until_it_is_back(folder: Path) -> None:
    server = Server(folder, BAKERY)
    with entail_client.connect(server.address, timeout=5) as client:
        with pytest.raises(entail_client.UnavailableError) as failure:
            client.get(BREAD)
        assert failure.value.retryable
        with pytest.raises(entail_client.WaitTimeoutError, match="cannot be reached"):
            client.wait_serving(0.2)
        with server:
            assert client.get(BREAD).answer.policies
        with pytest.raises(entail_client.UnavailableError):
            client.get(BREAD)
        time.sleep(2)
        with server:
            # Calls notice by themselves, soon after the server is back.
            wait_until(lambda: is_available(client), 2)


def is_available(client: Client) -> bool:
    try:
        return bool(client.get(BREAD).answer.policies)
    except entail_client.UnavailableError:
        return False


def test_a_server_that_does_not_answer_costs_the_timeout(folder: Path) -> None:
    with Server(folder, BAKERY) as server, entail_client.connect(server.address, timeout=30) as client:
        assert client.get(BREAD).answer.policies
        server.pause()
        with pytest.raises(entail_client.DeadlineExceededError):
            client.get(BREAD, timeout=0.3)
        server.resume()
        assert client.get(BREAD).answer.policies


def test_a_busy_server_says_when_to_call_again(folder: Path) -> None:
    with Server(folder, BAKERY, "--max-concurrency", "1") as server, entail_client.connect(server.address) as client:
        paths = list(client.list_paths().paths) * 150
        found: list[StatusError] = []
        done = threading.Event()

        def call() -> None:
            while not done.is_set():
                try:
                    client.batch_get(paths)
                except entail_client.ResourceExhaustedError as error:
                    found.append(error)
                    done.set()

        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(call) for _ in range(4)]
            assert done.wait(20)
            for each in calls:
                each.result(20)
        assert found[0].retryable
        assert found[0].retry_after == 0.1


def test_a_closed_client_is_not_used(bakery: Server) -> None:
    client = entail_client.connect(bakery.address)
    assert client.get(BREAD).answer.policies
    client.close()
    client.close()
    with pytest.raises(entail_client.ClosedError):
        client.get(BREAD)
    with pytest.raises(entail_client.ClosedError):
        client.wait_serving()


def test_addresses_are_parsed() -> None:
    for address in ("127.0.0.1:1", "localhost:1", "[::1]:1", "http://h:1", "https://h:1", "unix:/x", "unix:///x"):
        entail_client.connect(address).close()
    for address in (
        "",
        "localhost",
        "https://h",
        "a b:1",
        "http://",
        "1",
        "h:0",
        "h:65536",
        "h:1/x",
        "::1:80",
        "unix:",
    ):
        with pytest.raises(entail_client.SettingsError, match="host:port"):
            entail_client.connect(address)
    for address in ("unix:/x", "http://h:1"):
        with pytest.raises(entail_client.SettingsError):
            entail_client.connect(address, tls=ClientTls())
    with pytest.raises(entail_client.SettingsError, match=r"no-such\.pem"):
        entail_client.connect("h:1", tls=ClientTls(ca="no-such.pem"))
