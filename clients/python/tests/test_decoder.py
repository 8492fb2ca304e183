"""The decoder of watch streams: what a server may send, and what it must not."""

from __future__ import annotations

import pytest

from entail_client import EffectivePolicies, NotInMirrorError, NotKnownError, SnapshotInfo, v1
from entail_client.mirror._decoder import ProtocolError, StreamDecoder
from entail_client.mirror._path_map import PathMap, PathSelector

RULE = "gateways/a/gw/listeners/l/routes/HTTPRoute/a/r/rules/"


def decoder() -> StreamDecoder[EffectivePolicies]:
    return StreamDecoder(PathSelector(), lambda answer: answer)


def body(number: int, etag: str = "") -> v1.NumberedBody:
    return v1.NumberedBody(number=number, etag=etag or f"e{number}")


def path(name: str, number: int, *indexes: int) -> v1.WatchedPath:
    return v1.WatchedPath(path=name, body=number, rule_indexes=indexes)


def message(
    *paths: v1.WatchedPath,
    bodies: tuple[v1.NumberedBody, ...] = (),
    removed: tuple[str, ...] = (),
    complete: bool = True,
    reset: bool = False,
) -> v1.WatchEffectivePoliciesResponse:
    return v1.WatchEffectivePoliciesResponse(
        paths=paths, bodies=bodies, removed_paths=removed, complete=complete, reset=reset
    )


def etags(copy: PathMap[EffectivePolicies] | None) -> dict[str, str]:
    assert copy is not None
    return {name: entry.value.etag for name, entry in copy.answers.items()}


def test_an_update_is_applied_as_a_whole() -> None:
    stream = decoder()
    first = stream.decode(message(path("a", 1), path("b", 1), bodies=(body(1),), reset=True))
    assert etags(first) == {"a": "e1", "b": "e1"}
    assert stream.decode(message(path("c", 2), bodies=(body(2),), complete=False)) is None
    second = stream.decode(message(removed=("a",)))
    assert etags(second) == {"b": "e1", "c": "e2"}
    assert etags(first) == {"a": "e1", "b": "e1"}


def test_a_heartbeat_changes_nothing() -> None:
    stream = decoder()
    first = stream.decode(message(path("a", 1), bodies=(body(1),), reset=True))
    assert stream.decode(message()) is first
    assert stream.decode(message(removed=("never",))) is first


def test_an_update_that_a_stream_leaves_incomplete_is_dropped() -> None:
    stream = decoder()
    stream.decode(message(path("a", 1), bodies=(body(1),), reset=True))
    stream.decode(message(path("b", 2), bodies=(body(2),), removed=("a",), complete=False))
    stream.start_stream()
    assert etags(stream.decode(message())) == {"a": "e1"}
    stream.decode(message(path("b", 2), bodies=(body(2),), complete=False, reset=True))
    assert etags(stream.decode(message(path("c", 1), bodies=(body(1),), reset=True))) == {"c": "e1"}


def test_a_reset_with_equal_content_is_no_change() -> None:
    stream = decoder()
    first = stream.decode(message(path("a", 1), bodies=(body(1, "x"),), reset=True))
    stream.start_stream()
    assert stream.decode(message(path("a", 7), bodies=(body(7, "x"),), reset=True)) is first


def test_numbers_belong_to_one_stream() -> None:
    stream = decoder()
    stream.decode(message(path("a", 1), bodies=(body(1),), reset=True))
    stream.start_stream()
    with pytest.raises(ProtocolError, match="unknown answer 1"):
        stream.decode(message(path("b", 1)))


def test_a_path_that_is_removed_and_added_in_one_update_exists() -> None:
    stream = decoder()
    stream.decode(message(path("a", 1), bodies=(body(1),), reset=True))
    copy = stream.decode(message(path("a", 2), bodies=(body(2),), removed=("a",)))
    assert etags(copy) == {"a": "e2"}


def test_paths_are_found_by_the_indexes_of_any_of_their_named_rules() -> None:
    def name(*rules: str) -> str:
        first, second, last = rules
        return f"{RULE}{first}/routes/HTTPRoute/a/r/rules/{second}/routes/HTTPRoute/a/rules/rules/{last}"

    stream = decoder()
    copy = stream.decode(message(path(name("one", "#1", "two"), 1, 3, 0), bodies=(body(1),), reset=True))
    assert copy is not None
    for rules in (("one", "#1", "two"), ("#3", "#1", "two"), ("one", "#1", "#0"), ("#3", "#1", "#0")):
        assert copy.get(name(*rules)).etag == "e1", rules
    for rules in (("#0", "#1", "two"), ("one", "#0", "two"), ("one", "#1", "#3"), ("two", "#1", "one")):
        with pytest.raises(NotInMirrorError):
            copy.get(name(*rules))
    with pytest.raises(NotInMirrorError):
        copy.get(f"{name('#3', '#1', '#0')}/backends/Service/a/s")


def test_a_rule_that_moves_or_loses_its_name_is_found_where_it_is() -> None:
    stream = decoder()
    first = stream.decode(
        message(path(f"{RULE}one", 1, 0), path(f"{RULE}two", 2, 1), bodies=(body(1), body(2)), reset=True)
    )
    second = stream.decode(message(path(f"{RULE}one", 1, 1), path(f"{RULE}two", 2, 0)))
    third = stream.decode(message(path(f"{RULE}#1", 1), removed=(f"{RULE}one",)))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.get(f"{RULE}#0").etag, first.get(f"{RULE}#1").etag) == ("e1", "e2")
    assert (second.get(f"{RULE}#0").etag, second.get(f"{RULE}#1").etag) == ("e2", "e1")
    assert (third.get(f"{RULE}#0").etag, third.get(f"{RULE}#1").etag) == ("e2", "e1")
    assert list(third.named_rules.values()) == [frozenset({f"{RULE}two"})]


def test_clients_without_paths_of_their_own_have_those_of_all() -> None:
    stream = decoder()
    of_all = [path(f"mesh/*/services/a/s{below}", 1) for below in ("", "/ports/80")]
    update = message(*of_all, path("mesh/c/services/a/s", 2), bodies=(body(1), body(2)), reset=True)
    update.client_roots.roots.append("mesh/c/services/a/s")
    copy = stream.decode(update)
    assert copy is not None
    assert copy.get("mesh/other/services/a/s").etag == "e1"
    assert copy.get("mesh/c/services/a/s").etag == "e2"
    # The path exists for all other clients.
    assert copy.get("mesh/other/services/a/s/ports/80").etag == "e1"
    for missing in ("mesh/c/services/a/s/ports/80", "mesh/other/services/a/t", "mesh/other", "mesh/"):
        with pytest.raises(NotInMirrorError):
            copy.get(missing)
    update = message(removed=("mesh/c/services/a/s",))
    update.client_roots.SetInParent()
    copy = stream.decode(update)
    assert copy is not None
    assert copy.get("mesh/c/services/a/s").etag == "e1"


def test_forms_of_names_that_are_not_known_are_kept() -> None:
    stream = decoder()
    copy = stream.decode(message(path("planets/a/rules/one", 1, 0), bodies=(body(1),), reset=True))
    assert copy is not None
    assert copy.get("planets/a/rules/one").etag == "e1"
    with pytest.raises(NotInMirrorError):
        copy.get("planets/a/rules/#0")
    assert etags(stream.decode(message(removed=("planets/a/rules/one",)))) == {}


def test_times_that_python_cannot_represent_are_none() -> None:
    response = v1.WatchEffectivePoliciesResponse()
    for seconds, nanos in ((2**62, 0), (-(2**62), 0), (0, -1), (0, 10**9)):
        response.synced_at.seconds, response.synced_at.nanos = seconds, nanos
        assert SnapshotInfo.of(None, response.synced_at, (), ()).synced_at is None
    response.synced_at.seconds, response.synced_at.nanos = 1_700_000_000, 5_000
    time = SnapshotInfo.of(None, response.synced_at, (), ()).synced_at
    assert time is not None
    assert time.isoformat() == "2023-11-14T22:13:20.000005+00:00"


def test_a_state_that_is_not_known_is_taken_for_unknown() -> None:
    state = v1.KindState.FromString(b"\x0a\x03K.g\x10\x63")
    info = SnapshotInfo.of(None, None, [state], ())
    with pytest.raises(NotKnownError):
        info.require_known("K.g")
    info.require_known("Other.g")
