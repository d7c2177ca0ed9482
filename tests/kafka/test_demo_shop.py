"""The shop's demo as a user runs it: its words, its exit status, and nothing left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from server.demo.shop import script

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.proof
def test_a_small_run(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "server.entry", "demo-shop", "--orders", "1000"],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = done.stdout
    assert done.returncode == 0, said
    assert "Traceback" not in said
    for sql in (*script.SOURCES, *script.QUERIES.values()):
        assert sql.splitlines()[0] in said
    outcomes = re.findall(r"^ *(look at \w+|[A-Z_]+) .*?([\d,]+) rows equal$", said, re.MULTILINE)
    counts = {name: int(count.replace(",", "")) for name, count in outcomes}
    assert set(counts) == {*script.QUERIES, *(f"look at {sink}" for sink in script.QUERIES)}
    assert counts["ENRICHED"] == 1100
    assert all(counts.values())
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("ksql-demo-")] == []
