#!/usr/bin/env python3
"""Measure look-ups in a mirror, and calls of Get and of batches, against a server at a Unix socket.

ENTAIL is the path of the binary of entail. The world has as many routes as the first argument says, 1 000 by default.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("src", "tests")]

import entail_client
from harness import CACHE, Server, World, parent


def measure(what: str, call: Callable[[], object], seconds: float = 2.0) -> None:
    """Print how long a call takes, at the median and at the 99th percentile."""
    times = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        call()
        times.append(time.perf_counter() - start)
    times.sort()
    median, slow = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"{what:<42} {median * 1e6:>10.1f} us   p99 {slow * 1e6:>10.1f} us   {len(times)} calls")


def main() -> None:
    """Run the benchmark."""
    routes = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory(prefix="entail-") as name:
        folder = Path(name)
        world = World(folder, 0, routes=0)
        for number in range(routes):
            rules = [{"name": f"rule-{rule}", "backendRefs": [{"name": "a", "port": 80}]} for rule in range(3)]
            world.put(world.route("shop", f"r{number}", [parent("front", "http")], rules))
        for number in range(20):
            world.put(world.random_policy(number))
        world.write()
        with Server(folder, world.folder) as server, entail_client.connect(server.address, timeout=60) as client:
            start = time.perf_counter()
            with entail_client.Mirror(client) as mirror:
                snapshot = mirror.wait_ready(60)
                print(f"{len(snapshot)} paths; the first copy took {time.perf_counter() - start:.3f} s")
                paths = [path for path in snapshot.paths() if "/rules/rule-" in path]
                chosen = random.Random(0)
                measure("mirror: get by name", lambda: mirror.get(chosen.choice(paths)))
                indexed = [path.replace("/rules/rule-", "/rules/#") for path in paths]
                measure("mirror: get by the index of a named rule", lambda: mirror.get(chosen.choice(indexed)))
                measure("Get", lambda: client.get(chosen.choice(paths)))
                measure("Get of one kind", lambda: client.get(chosen.choice(paths), kinds=[CACHE]))
                measure("batch of 100 paths", lambda: client.batch_get(chosen.choices(paths, k=100)))
                changes = []
                for _ in range(10):
                    before = mirror.snapshot()
                    start = time.perf_counter()
                    world.write()
                    while mirror.wait_changed(before, 10) is None:
                        pass
                    changes.append(time.perf_counter() - start)
                print(f"mirror: a change of manifests arrives after {sorted(changes)[5] * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
