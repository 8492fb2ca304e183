"""The example program, against a server whose policies change."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from harness import BAKERY, RETRY, Server

PACKAGE = Path(__file__).resolve().parents[1]
STOREFRONT = "gateways/platform/storefront/listeners/https/routes/HTTPRoute"


def test_the_example_lists_paths_and_follows_changes(folder: Path) -> None:
    manifests = folder / "bakery"
    shutil.copytree(BAKERY, manifests)
    with Server(folder, manifests) as server:
        program = [sys.executable, str(PACKAGE / "examples" / "without_policy.py")]
        program += ["--server", server.address, "--gateway", "platform/storefront", "--kind", RETRY]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE / "src")}
        once = subprocess.run([*program, "--once"], env=environment, capture_output=True, text=True, timeout=30)
        assert (once.stdout, once.stderr, once.returncode) == ("", "", 0)
        with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                lines: queue.Queue[str] = queue.Queue()
                reader = threading.Thread(target=read, args=(process.stdout, lines))
                reader.start()
                retries = manifests / "policies" / "retries.yaml"
                text = retries.read_text()
                retries.write_text("")
                gone = {lines.get(timeout=20).strip() for _ in range(7)}
                assert f"- {STOREFRONT}/baker/bread/rules/menu/backends/Service/baker/loaves" in gone
                retries.write_text(text)
                assert {lines.get(timeout=20).strip() for _ in range(7)} == {line.replace("- ", "+ ") for line in gone}
            finally:
                process.terminate()
            reader.join(10)
            assert lines.empty()
    failed = subprocess.run([*program, "--timeout", "1"], env=environment, capture_output=True, text=True, timeout=30)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: the first update did not arrive within 1 s: the server is not available")


def read(lines: Iterable[str], into: queue.Queue[str]) -> None:
    for line in lines:
        into.put(line)
