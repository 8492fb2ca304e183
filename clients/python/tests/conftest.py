"""Fixtures: real servers, and the check that no thread is left behind."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import entail_client
from harness import BAKERY, Server


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: the paths of Unix sockets have about 100 bytes at most."""
    path = Path(tempfile.mkdtemp(prefix="entail-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def bakery() -> Iterator[Server]:
    """A server of examples/bakery that no test changes."""
    path = Path(tempfile.mkdtemp(prefix="entail-"))
    with Server(path, BAKERY) as server:
        yield server
    shutil.rmtree(path)


@pytest.fixture
def client(bakery: Server) -> Iterator[entail_client.Client]:
    """A client of the server of the bakery."""
    with entail_client.connect(bakery.address) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left
