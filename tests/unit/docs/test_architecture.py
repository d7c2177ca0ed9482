"""The tree that the documents describe is the one that is there."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.unit.docs.fences import ROOT

LAYERED = "the data's way"
PACKAGES = {path.parent.name for path in ROOT.glob("ksql/*/__init__.py")}
DOCUMENTS = [
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for name in ("ksql", "server") for path in (ROOT / name).rglob("README.md")),
]
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(\w+)/[\w/-]+(?:\.\w+)?/?")
_ROW = re.compile(r"^\| `ksql/(\w+)` \| [^|]+\| ([^|]*)\|$", re.MULTILINE)


def root_of(name, document):
    """Where a path begins, if it is one of the code; READMEs leave out ``ksql/``."""
    match = _PATH.fullmatch(name)
    if match is None:
        return None
    if match[1] in ("ksql", "server"):
        return ROOT
    is_readme = document.is_relative_to(ROOT / "ksql")
    return ROOT / "ksql" if is_readme and match[1] in PACKAGES else None


def exists(name, document):
    """A module may be named without its suffix, and seen from its package."""
    roots = (root_of(name, document), document.parent)
    return any((root / f"{name}{suffix}").exists() for root in roots for suffix in ("", ".py"))


def packages(path):
    return {each.parent.name for each in path.glob("*/__init__.py")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_of_the_code_exist(document):
    code = set(_CODE.findall(document.read_text("utf-8")))
    named = {name for name in code if root_of(name, document)}
    assert not {name for name in named if not exists(name, document)}


@pytest.mark.parametrize("name", ["ksql/app/nothing.py", "server/nothing", "app/nothing"])
def test_missing_paths_are_noticed(name):
    document = ROOT / "ksql/app/README.md"
    assert root_of(name, document)
    assert not exists(name, document)
    assert exists("app/service", document)


def test_the_table_of_packages_has_the_layers_in_their_order():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["name"] == LAYERED)
    rows = _ROW.findall((ROOT / "docs/architecture.md").read_text("utf-8"))
    assert [package for package, _ in rows] == layers
    for package, named in rows:
        assert set(_CODE.findall(named)) == packages(ROOT / "ksql" / package), package
