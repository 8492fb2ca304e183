"""The mirror: that it equals the server, and what it does when the server or the connection is gone."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import entail_client
from entail_client import Client, EffectivePolicies, Mirror, Snapshot, v1
from harness import BAKERY, BREAD, CACHE, RETRY, TIMEOUT, Proxy, Server, World, wait_for_step, wait_until

STEPS = 30


def test_a_look_up_has_the_answer_of_the_server(client: Client) -> None:
    with Mirror(client, kinds=[TIMEOUT, RETRY]) as mirror:
        snapshot = mirror.wait_ready(10)
        batch = client.batch_get(list(snapshot.paths()), kinds=[TIMEOUT, RETRY])
        assert set(snapshot.paths()) == set(client.list_paths().paths)
        assert list(batch.answers) == [answer for _, answer in snapshot.items()]
        assert snapshot.info.version == batch.info.version
        assert mirror.get(f"{BREAD}/rules/#0") is mirror.get(f"{BREAD}/rules/menu")
        assert mirror.get(f"{BREAD}/rules/menu").spec(TIMEOUT, snapshot.info) == {"client": {"request": "10s"}}
        assert mirror.connected
        assert mirror.age is not None
        assert 0 <= mirror.age < 30
        assert mirror.freshness.version == snapshot.info.version
        assert mirror.kinds == ()


def test_failures_of_look_ups_are_told_apart(client: Client) -> None:
    with Mirror(client, prefixes=["gateways/platform/storefront"], levels=["RouteRule"]) as mirror:
        mirror.wait_ready(10)
        assert mirror.get(f"{BREAD}/rules/menu").policies
        with pytest.raises(entail_client.NotInMirrorError):
            mirror.get(f"{BREAD}/rules/nope")
        for path in (BREAD, "gateways/platform/storefront2", "gateways/platform/backdoor", "nonsense", ""):
            with pytest.raises(entail_client.NotSubscribedError):
                mirror.get(path)
        assert issubclass(entail_client.NotInMirrorError, LookupError)


def test_a_kind_that_is_not_known_is_no_kind_without_policies(client: Client) -> None:
    with Mirror(client, kinds=["Nothing.example.com", TIMEOUT]) as mirror:
        snapshot = mirror.wait_ready(10)
        answer = snapshot.get("gateways/platform/backdoor")
        assert answer.spec(TIMEOUT, snapshot.info) is None
        with pytest.raises(entail_client.NotKnownError, match="NoProfile"):
            answer.spec("Nothing.example.com", snapshot.info)
        assert [(kind.kind, kind.state) for kind in mirror.kinds] == [
            ("Nothing.example.com", v1.KindState.STATE_UNKNOWN)
        ]


def test_each_distinct_answer_is_compiled_once(client: Client) -> None:
    compiled: list[str] = []

    def compile_answer(answer: EffectivePolicies) -> int:
        compiled.append(answer.etag)
        return len(answer.policies)

    with Mirror(client, compile=compile_answer) as mirror:
        snapshot = mirror.wait_ready(10)
        assert len(set(compiled)) == len(compiled) < len(snapshot)
        assert mirror.get(f"{BREAD}/rules/menu") == len(client.get(f"{BREAD}/rules/menu").answer.policies)


def test_an_error_of_compile_ends_the_mirror_loudly(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def fail(answer: EffectivePolicies) -> None:
        raise ArithmeticError(answer.etag)

    with caplog.at_level(logging.CRITICAL, "entail_client"), Mirror(client, compile=fail) as mirror:
        with pytest.raises(entail_client.ClosedError, match="ArithmeticError") as failure:
            mirror.wait_ready(10)
        assert isinstance(failure.value.__cause__, ArithmeticError)
        assert not mirror.connected
        assert "ArithmeticError" in str(mirror.freshness.error)
        with pytest.raises(entail_client.NotReadyError):
            mirror.get(BREAD)


def test_settings_are_checked(client: Client) -> None:
    with pytest.raises(entail_client.SettingsError, match="byte 9"):
        Mirror(client, prefixes=["gateways//a"])
    with pytest.raises(entail_client.SettingsError, match="RouteRule"):
        Mirror(client, levels=["Rule"])
    with pytest.raises(entail_client.SettingsError, match="timeout"):
        Mirror(client, timeout=10)
    with pytest.raises(entail_client.SettingsError, match="max_backoff"):
        Mirror(client, max_backoff=0)
    with pytest.raises(TypeError, match="kinds"):
        Mirror(client, kinds=TIMEOUT)


def test_a_request_that_the_server_rejects_is_reported(client: Client) -> None:
    with Mirror(client, kinds=[f"K{number}.example.com" for number in range(101)]) as mirror:
        with pytest.raises(entail_client.WaitTimeoutError, match="INVALID_ARGUMENT, TooMany"):
            mirror.wait_ready(1)
        assert mirror.age is None


def test_a_closed_mirror_keeps_its_copy_and_no_thread(client: Client) -> None:
    mirror = Mirror(client)
    snapshot = mirror.wait_ready(10)
    mirror.close()
    assert not any(thread.name.startswith("entail-mirror") for thread in threading.enumerate())
    mirror.close()
    assert mirror.snapshot() is snapshot
    assert (mirror.connected, mirror.freshness.error) == (False, "the mirror is closed")
    with pytest.raises(entail_client.ClosedError):
        mirror.wait_changed(snapshot, 10)


def test_close_ends_a_wait_in_another_thread(client: Client) -> None:
    with Mirror(client) as mirror:
        snapshot = mirror.wait_ready(10)
        failures: list[entail_client.ClosedError] = []

        def wait() -> None:
            try:
                mirror.wait_changed(snapshot, 60)
            except entail_client.ClosedError as error:
                failures.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        mirror.close()
        waiting.join(5)
        assert failures


def test_a_mirror_that_is_dropped_ends_its_threads(client: Client) -> None:
    mirror = Mirror(client)
    mirror.wait_ready(10)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("entail-mirror")]
    assert len(threads) == 2
    del mirror
    gc.collect()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_a_mirror_may_be_closed_before_and_while_it_connects(folder: Path) -> None:
    server = Server(folder, BAKERY)
    with entail_client.connect(server.address) as client:
        for delay in (0.0, 0.001, 0.01, 0.1):
            with Mirror(client) as mirror:
                time.sleep(delay)
                with pytest.raises(entail_client.NotReadyError):
                    mirror.snapshot()
        with server:
            for delay in (0.0, 0.001, 0.002, 0.005, 0.01):
                with Mirror(client):
                    time.sleep(delay)


def test_a_mirror_waits_for_a_server_that_is_not_there_yet(folder: Path) -> None:
    server = Server(folder, BAKERY)
    with entail_client.connect(server.address) as client, Mirror(client) as mirror:
        with pytest.raises(entail_client.NotReadyError):
            mirror.get(BREAD)
        with pytest.raises(entail_client.WaitTimeoutError, match="not available"):
            mirror.wait_ready(0.3)
        with server:
            assert mirror.wait_ready(10).get(BREAD).policies


# Changes


def server_answers(
    client: Client,
    levels: Sequence[str],
    kinds: Sequence[str],
    prefixes: Sequence[str],
) -> tuple[dict[str, EffectivePolicies], v1.Version | None]:
    """Return what the server itself says of the paths that a mirror follows."""
    listed = client.list_paths(levels=levels)
    paths = [path for path in listed.paths if not prefixes or any(entail_client.path.covers(p, path) for p in prefixes)]
    batch = client.batch_get(paths, kinds=kinds)
    assert batch.info.version == listed.info.version
    answers = {}
    for path, answer in zip(paths, batch.answers, strict=True):
        assert isinstance(answer, EffectivePolicies), (path, answer)
        answers[path] = answer
    return answers, batch.info.version


def assert_equal_to_server(
    client: Client, world: World, mirror: Mirror[EffectivePolicies], settings: tuple[list[str], list[str], list[str]]
) -> Snapshot[EffectivePolicies]:
    """Wait for the current step, and compare the mirror with the server."""
    step = world.step

    def has_step() -> bool:
        try:
            answer = mirror.get(World.MARKER)
        except entail_client.MirrorLookupError:
            return False
        return bool(answer.spec(CACHE, mirror.snapshot().info) == {"step": step})

    wait_until(has_step, what=f"step {step} in the mirror, which is {mirror!r},")
    snapshot = mirror.snapshot()
    prefixes, levels, kinds = settings
    expected, version = server_answers(client, levels, kinds, prefixes)
    assert dict(snapshot.items()) == expected
    assert len(snapshot) == len(expected)
    assert snapshot.info.version == version
    for path in expected:
        assert snapshot.get(path) is mirror.get(path)
        for other in world.paths_by_index(path):
            assert snapshot.get(other) is snapshot.get(path), other
    # Clients with paths of their own do not have those of all clients; the others do.
    of_all = [path for path in expected if path.startswith("mesh/*/")]
    asked = [
        path.replace("*", client_namespace, 1) for path in of_all for client_namespace in ("shop", "pay", "nobody")
    ]
    for path, answer in zip(asked, client.batch_get(asked, kinds=kinds).answers, strict=True):
        if isinstance(answer, EffectivePolicies):
            assert snapshot.get(path) == answer, path
        else:
            assert isinstance(answer, entail_client.NotFoundError)
            with pytest.raises(entail_client.MirrorLookupError):
                snapshot.get(path)
    return snapshot


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mirrors_equal_the_server_after_each_change(folder: Path, seed: int) -> None:
    """Edits manifests at random while mirrors of all paths and of some follow."""
    world = World(folder, seed)
    everything: tuple[list[str], list[str], list[str]] = ([], [], [])
    some = (["gateways/platform/front", "mesh/*/services/shop/a"], ["RouteRule", "Backend"], [TIMEOUT, CACHE])
    paths_ever: set[str] = set()
    with Server(folder, world.folder) as server, entail_client.connect(server.address) as client:
        with Mirror(client) as all_paths, Mirror(client, prefixes=some[0], levels=some[1], kinds=some[2]) as some_paths:
            previous = all_paths.wait_ready(10)
            for _ in range(STEPS):
                world.change()
                wait_for_step(client, world.write())
                snapshot = assert_equal_to_server(client, world, all_paths, everything)
                assert_equal_to_server(client, world, some_paths, some)
                changes = snapshot.changes_since(previous)
                before, now = dict(previous.items()), dict(snapshot.items())
                assert set(changes.removed) == before.keys() - now.keys()
                assert set(changes.changed) == {path for path in now if before.get(path) != now[path]}
                previous = snapshot
                paths_ever.update(now)
                gone = sorted(paths_ever - now.keys())
                for path, answer in zip(gone, client.batch_get(gone).answers, strict=True):
                    # The server answers paths of a client namespace without paths of its own as those of `*`.
                    if isinstance(answer, EffectivePolicies):
                        assert all_paths.get(path) == answer, path
                    else:
                        assert isinstance(answer, entail_client.NotFoundError)
                        with pytest.raises(entail_client.NotInMirrorError):
                            all_paths.get(path)
            assert len(paths_ever) > len(previous)


@pytest.mark.parametrize("seed", [4, 5])
def test_mirrors_equal_the_server_after_interruptions(folder: Path, seed: int) -> None:
    """Edits manifests at random while connections are cut and servers restart, with edits in between."""
    world = World(folder, seed)
    everything: tuple[list[str], list[str], list[str]] = ([], [], [])
    with Server(folder, world.folder) as server, Proxy(server) as proxy:
        with entail_client.connect(server.address) as client, entail_client.connect(proxy.address) as far:
            with Mirror(far, max_backoff=0.5) as mirror:
                for _ in range(STEPS):
                    choice = world.random.random()
                    if choice < 0.3:
                        proxy.cut()
                    elif choice < 0.5:
                        server.stop()
                        if choice < 0.45:
                            world.change()
                            world.write()
                        server.start()
                        client.wait_serving(10)
                    world.change()
                    wait_for_step(client, world.write())
                    assert_equal_to_server(client, world, mirror, everything)


def test_a_snapshot_never_changes_and_changes_are_announced(folder: Path) -> None:
    world = World(folder, 6)
    with Server(folder, world.folder) as server, entail_client.connect(server.address) as client:
        with Mirror(client, levels=["RouteRule"], kinds=[CACHE]) as mirror:
            first = mirror.wait_ready(10)
            copy = dict(first.items())
            assert mirror.wait_changed(first, 0.2) is None
            step = world.write()
            second = mirror.wait_changed(first, 20)
            assert second is not None
            assert second.changes_since(first) == entail_client.Changes((World.MARKER,), ())
            assert second.get(World.MARKER).spec(CACHE, second.info) == {"step": step}
            assert dict(first.items()) == copy
            del world.objects["HTTPRoute/shop/marker"]
            world.write()
            third = mirror.wait_changed(second, 20)
            assert third is not None
            assert third.changes_since(second) == entail_client.Changes((), (World.MARKER,))


# Connections


def test_a_restart_without_changes_sends_nothing_again(folder: Path) -> None:
    world = World(folder, 7, routes=8)
    with Server(folder, world.folder) as server, Proxy(server) as proxy:
        with entail_client.connect(proxy.address) as client, Mirror(client, max_backoff=0.5) as mirror:
            first = mirror.wait_ready(10)
            sent = proxy.received
            assert first.info.version is not None
            epoch = first.info.version.epoch
            server.stop()
            mirror.wait_for(lambda freshness: not freshness.connected, 10)
            assert mirror.get(World.MARKER) is first.get(World.MARKER)
            age = mirror.age
            assert age is not None
            server.start()
            freshness = mirror.wait_for(lambda freshness: freshness.connected, 10)
            assert freshness.version is not None
            assert freshness.version.epoch != epoch
            assert freshness.error is None
            assert mirror.snapshot().has_same_content(first)
            assert proxy.received - sent < sent / 10
            assert mirror.age is not None


def test_a_lost_connection_is_resumed_with_the_difference(folder: Path) -> None:
    world = World(folder, 8, routes=8)
    with Server(folder, world.folder) as server, Proxy(server) as proxy:
        with entail_client.connect(proxy.address) as client, Mirror(client, max_backoff=0.5) as mirror:
            first = mirror.wait_ready(10)
            sent = proxy.received
            for _ in range(3):
                proxy.cut()
                step = world.write()
                changed = mirror.wait_changed(mirror.snapshot(), 20)
                assert changed is not None
                assert changed.get(World.MARKER).spec(CACHE, changed.info) == {"step": step}
                mirror.wait_for(lambda freshness: freshness.connected, 10)
            changes = mirror.snapshot().changes_since(first)
            assert World.MARKER in changes.changed
            assert not changes.removed
            assert proxy.received - sent < sent


def test_a_server_with_other_objects_resets_the_mirror(folder: Path) -> None:
    world = World(folder, 9)
    with Server(folder, world.folder) as server, entail_client.connect(server.address) as client:
        with Mirror(client, max_backoff=0.5) as mirror:
            first = mirror.wait_ready(10)
            server.stop()
            mirror.wait_for(lambda freshness: not freshness.connected, 10)
            for key in [key for key in world.objects if key.startswith(("HTTPRoute/shop/r", "HTTPRoute/pay/r"))]:
                del world.objects[key]
            world.write()
            server.start()
            snapshot = assert_equal_to_server(client, world, mirror, ([], [], []))
            changes = snapshot.changes_since(first)
            assert World.MARKER in changes.changed
            assert changes.removed
            # What is equal is not compiled again.
            assert snapshot.get("gateways/platform/back") is first.get("gateways/platform/back")


def test_a_server_that_is_silent_is_left(folder: Path) -> None:
    with Server(folder, BAKERY) as server, entail_client.connect(server.address) as client:
        with Mirror(client, timeout=11) as mirror:
            first = mirror.wait_ready(10)
            time.sleep(0.5)
            server.pause()
            freshness = mirror.wait_for(lambda freshness: not freshness.connected, 20)
            assert freshness.error == "no message from the server within 11 s"
            assert mirror.age is not None
            assert mirror.age > 10
            assert mirror.snapshot() is first
            server.resume()
            mirror.wait_for(lambda freshness: freshness.connected, 20)
            assert mirror.age < 10


def test_heartbeats_keep_the_copy_fresh(client: Client) -> None:
    with Mirror(client, timeout=15) as mirror:
        first = mirror.wait_ready(10)
        time.sleep(10.5)
        assert mirror.connected
        assert mirror.age is not None
        assert mirror.age < 5
        assert mirror.snapshot() is not first
        assert mirror.snapshot().has_same_content(first)


PROGRAM = """
import sys
import threading
import entail_client

client = entail_client.connect(sys.argv[1])
mirror = entail_client.Mirror(client)
print(len(mirror.wait_ready(10)))
if sys.argv[2] == "waiting":
    threading.Thread(target=mirror.wait_changed, args=(mirror.snapshot(), 3600), daemon=True).start()
if sys.argv[2] == "failing":
    raise SystemExit(3)
"""


@pytest.mark.parametrize(("how", "code"), [("ending", 0), ("waiting", 0), ("failing", 3)])
def test_a_program_ends_although_it_does_not_close_its_mirror(bakery: Server, how: str, code: int) -> None:
    source = Path(entail_client.__file__).parents[1]
    command = [sys.executable, "-W", "error", "-c", PROGRAM, bakery.address, how]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "53\n", "")
