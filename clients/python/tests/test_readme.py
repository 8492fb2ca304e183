"""The code of README.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import Server

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_code_of_the_readme_runs(bakery: Server, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    # Nothing changes here, and the test does not wait for that.
    assert "wait_changed(snapshot, 60)" in blocks[1]
    code = "\n".join(blocks).replace("127.0.0.1:50051", bakery.address).replace("(snapshot, 60)", "(snapshot, 0)")
    exec(compile(code, str(README), "exec"), {})  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == lines[-1] == "{'client': {'request': '10s'}}"
    assert f"# {lines[0]}" in blocks[0]
