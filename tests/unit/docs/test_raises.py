"""The errors that docstrings name after ``Raises:`` exist.

A name is resolved in the module of the docstring, with what it imports for type checking only.
Else it is one of Python's own errors, or defined anywhere in ``ksql`` and ``server``. Docstrings
also name what is raised by modules that their own calls.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = [file for place in ("ksql", "server") for file in sorted((ROOT / place).rglob("*.py"))]
_RAISES = re.compile(r"Raises:(.*?)(?:\n\s*\n|\Z)", re.DOTALL)
_ITEM = re.compile(r"[,;]|\b(?:and|or|else|also)\b")
_NAME = r"((?:\w+\.)*_?[A-Z]\w+)"
_LATER = re.compile(rf"[.;]\s+{_NAME}:")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def errors_named(docstring):
    """Return the names of errors: the first words of items."""
    names = set()
    for clause in _RAISES.findall(docstring):
        plain = re.sub(r"``.*?``", "", clause, flags=re.DOTALL)
        first_sentence = re.split(r"\.(?:\s|\Z)", plain, maxsplit=1)[0]
        items = [re.match(_NAME, item.strip()) for item in _ITEM.split(first_sentence)]
        names |= {name[1] for name in items if name} | set(_LATER.findall(plain))
    return names


@cache
def parsed(file):
    return ast.parse(file.read_text("utf-8"))


@cache
def bound(file):
    """Return the names that a module defines or imports, wherever it does so."""
    names = set()
    for node in ast.walk(parsed(file)):
        match node:
            case ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
            case _:
                pass
    return names


@cache
def defined_somewhere():
    return frozenset().union(*(bound(file) for file in FILES), dir(builtins))


def unknown(file):
    """Return what ``Raises:`` names in a module, and what does not exist."""
    docstrings = (
        ast.get_docstring(node) or ""
        for node in ast.walk(parsed(file))
        if isinstance(node, _DOCUMENTED)
    )
    names = {name for docstring in docstrings for name in errors_named(docstring)}
    return sorted(name for name in names if not exists(name, file))


def exists(name, file):
    module, _, last = name.rpartition(".")
    if module in sys.stdlib_module_names:
        return hasattr(importlib.import_module(module), last)
    return last in bound(file) or last in defined_somewhere()


@pytest.mark.parametrize(
    ("clause", "names"),
    [
        ("ValueError.", {"ValueError"}),
        ("Turned, Unreachable.", {"Turned", "Unreachable"}),
        ("StartError and other KsqlErrors; what was started is stopped.", {"StartError"}),
        (
            "ValueError, and nothing has changed then; CommandInDoubt: Or has it?",
            {"ValueError", "CommandInDoubt"},
        ),
        ("``stored.Gone``, also NEWER_BACKUP for one of\n    a later DateTime.", {"NEWER_BACKUP"}),
        ("whatever Spark reports. Kafka is not asked.", set()),
        ("ssl.SSLError: It may fail. ROW: None is left.\n\nNotThis", {"ssl.SSLError", "ROW"}),
    ],
)
def test_names_of_a_clause(clause, names):
    assert errors_named(f"Do it.\n\nRaises: {clause}") == names


@pytest.mark.parametrize(
    ("name", "there"),
    [("ssl.SSLError", True), ("ssl.NoError", False), ("StoreFailed", True), ("NoError", False)],
)
def test_a_name_exists_in_its_module_or_anywhere_in_the_product(name, there):
    assert exists(name, FILES[0]) == there


def test_every_error_that_a_docstring_names_exists():
    problems = {file.relative_to(ROOT).as_posix(): unknown(file) for file in FILES}
    assert {file: names for file, names in problems.items() if names} == {}
