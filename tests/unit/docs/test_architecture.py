"""The tree that the documents describe is the one that is there."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.unit.docs.fences import ROOT

LAYERED = "the data's way"
DOCUMENTS = [
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for name in ("ksql", "server") for path in (ROOT / name).rglob("README.md")),
]
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?:ksql|server)/[\w/-]+(?:\.\w+)?/?")
_ROW = re.compile(r"^\| `ksql/(\w+)` \| [^|]+\| ([^|]*)\|$", re.MULTILINE)


def exists(name):
    """A module may be named without its suffix."""
    return (ROOT / name).exists() or (ROOT / f"{name}.py").exists()


def packages(path):
    return {each.parent.name for each in path.glob("*/__init__.py")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_of_the_code_exist(document):
    named = {code for code in _CODE.findall(document.read_text("utf-8")) if _PATH.fullmatch(code)}
    assert not {name for name in named if not exists(name)}


def test_missing_paths_are_noticed():
    assert _PATH.fullmatch("ksql/app/nothing_of_that_name.py")
    assert not exists("ksql/app/nothing_of_that_name.py")
    assert exists("ksql/app/service")


def test_the_table_of_packages_has_the_layers_in_their_order():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["name"] == LAYERED)
    rows = _ROW.findall((ROOT / "docs/architecture.md").read_text("utf-8"))
    assert [package for package, _ in rows] == layers
    for package, named in rows:
        assert set(_CODE.findall(named)) == packages(ROOT / "ksql" / package), package
