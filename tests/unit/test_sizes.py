"""No module is longer than 500 lines, no function longer than 60."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ("ksql", "server", "qtt", "migrations", "docs/tools")
MODULE, FUNCTION = 500, 60


def test_modules_and_functions_are_short() -> None:
    for place in PLACES:
        files = sorted((ROOT / place).rglob("*.py"))
        assert files, place
        assert [fault for f in files for fault in too_long(f.name, f.read_text("utf-8"))] == []


def test_long_modules_and_functions_are_named() -> None:
    body = "\n".join(["def f():", *["    pass"] * FUNCTION])
    assert too_long("m.py", body) == ["m.py:1: f has 61 lines"]
    assert too_long("m.py", "\n" * MODULE + "pass") == ["m.py has 501 lines"]
    assert too_long("m.py", body.removesuffix("\n    pass")) == []


def too_long(name: str, text: str) -> list[str]:
    lines = len(text.splitlines())
    problems = [f"{name} has {lines} lines"] if lines > MODULE else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION:
                problems.append(f"{name}:{node.lineno}: {node.name} has {length} lines")
    return problems
