"""A public method has a docstring, or its protocol or base class has one for it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def methods() -> list[tuple[str, str, bool]]:
    """Return file and class, method, and whether it has a docstring, of all public methods."""
    return [
        (f"{file.relative_to(ROOT)} {kind.name}", method.name, bool(ast.get_docstring(method)))
        for place in ("ksql", "server", "qtt", "migrations")
        for file in sorted((ROOT / place).rglob("*.py"))
        for kind in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name[0] != "_"
    ]


def test_a_method_without_docstring_has_its_contract_elsewhere() -> None:
    documented = {name for _, name, has_docstring in methods() if has_docstring}
    assert [
        f"{where}.{name}"
        for where, name, has_docstring in methods()
        if not has_docstring and not where.split()[1].startswith("_") and name not in documented
    ] == []
