"""A class has a name of its own: not more than two classes of the product share one."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("ksql", "server", "qtt", "migrations")
MOST = 2


def test_no_name_has_three_classes() -> None:
    files = [file for place in PLACES for file in (ROOT / place).rglob("*.py")]
    counts = Counter(
        node.name
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in counts.items() if count > MOST] == []
