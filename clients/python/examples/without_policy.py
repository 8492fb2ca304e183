#!/usr/bin/env python3
"""Print which paths below a Gateway have no policy of a kind, and follow changes.

    without_policy.py --gateway platform/storefront --kind RetryPolicy.policies.bakery.example

Levels: RouteRule for kinds that act on rules, Backend for kinds that act on backends.
"""

from __future__ import annotations

import argparse
import sys

import entail_client
from entail_client import EffectivePolicies, Mirror, Snapshot


def paths_without_policy(snapshot: Snapshot[EffectivePolicies], kind: str) -> set[str]:
    """Return the paths for which it is known that no policy of the kind sets anything."""
    without = set()
    for path, answer in snapshot.items():
        try:
            if answer.spec(kind, snapshot.info) is None:
                without.add(path)
        except entail_client.NotKnownError as error:
            # "Not known" is not "no policy".
            print(f"? {path}: {error}", flush=True)
    return without


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="127.0.0.1:50051", help="host:port or unix:PATH")
    parser.add_argument("--gateway", required=True, help="namespace/name")
    parser.add_argument("--kind", required=True, help="Kind.group")
    parser.add_argument("--level", default="Backend", choices=entail_client.path.LEVELS)
    parser.add_argument("--timeout", type=float, default=10, help="seconds to wait for the server")
    parser.add_argument("--once", action="store_true", help="do not follow changes")
    arguments = parser.parse_args()
    prefixes = [f"gateways/{arguments.gateway}"]
    with (
        entail_client.connect(arguments.server) as client,
        Mirror(client, prefixes=prefixes, levels=[arguments.level], kinds=[arguments.kind]) as mirror,
    ):
        snapshot = mirror.wait_ready(arguments.timeout)
        without = paths_without_policy(snapshot, arguments.kind)
        for path in sorted(without):
            print(f"- {path}", flush=True)
        while not arguments.once:
            changed = mirror.wait_changed(snapshot, 60)
            if changed is None:
                # A connected mirror is updated every ten seconds, even if nothing changes.
                if not mirror.connected:
                    print(f"not up to date for {mirror.age:.0f} s: {mirror.freshness.error}", file=sys.stderr)
                continue
            snapshot, before = changed, without
            without = paths_without_policy(snapshot, arguments.kind)
            for path in sorted(without - before):
                print(f"- {path}", flush=True)
            exist = set(snapshot.paths())
            for path in sorted(before - without):
                print(f"{'+' if path in exist else 'x'} {path}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except entail_client.EntailError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
