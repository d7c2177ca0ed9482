"""The pages as a whole: links, generated parts, the README's length."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from ksql.core.properties.model import PROPERTIES
from ksql.functions.registry import BUILTINS
from tests.unit.docs.fences import ROOT

OUTSIDE = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "qtt/README.md")),
    *sorted(ROOT.glob("ksql/**/README.md")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CITED = re.compile(r"Source[^:\n]*:[^\n]*?((?:docs|qtt)/[\w/-]+\.md)(?:#([\w-]+))?")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs/tools/tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _tables()


def anchors(path):
    """What a site calls the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", head.replace("`", "").lower()) for head in heads)
    return {head.strip().replace(" ", "-") for head in plain}


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_outside_of_the_site_lead_somewhere(path):
    """Those inside are checked by ``make docs``."""
    for link in _LINK.findall(_FENCE.sub("", path.read_text("utf-8"))):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_sources_cite_pages_that_exist():
    """``Source:`` lines name a page here, or a public document."""
    modules = [path for name in ("ksql", "server", "qtt") for path in (ROOT / name).rglob("*.py")]
    texts = [(path.relative_to(ROOT), path.read_text("utf-8")) for path in modules]
    cited = [(path, *citation) for path, text in texts for citation in _CITED.findall(text)]
    assert len(cited) > 60
    pages = {page for _, page, _ in cited}
    known: dict[str, Any] = {
        page: anchors(ROOT / page) if (ROOT / page).exists() else None for page in pages
    }
    assert [
        each
        for each in cited
        if known[each[1]] is None or (each[2] and each[2] not in known[each[1]])
    ] == []
    assert [path for path, text in texts if "Source: reference," in text] == []


def test_every_function_is_listed():
    library = TABLES.functions()
    names = [function.name for function in BUILTINS.all()]
    assert [name for name in names if f"### {name}\n" not in library] == []


@pytest.mark.parametrize("name", TABLES.PAGES)
def test_a_page_has_its_parts_as_the_code_gives_them(name):
    """Else: ``make docs-tables``."""
    text = (ROOT / "docs" / name).read_text("utf-8")
    assert TABLES.filled(text) == text


def test_a_part_is_written_between_its_marks_and_nowhere_else():
    marked = "a <!-- generated: functions -->\nold\n<!-- end: functions --> b"
    assert TABLES.filled(marked) == (
        f"a <!-- generated: functions -->\n\n{TABLES.functions()}\n<!-- end: functions --> b"
    )


def test_every_mark_is_that_of_a_part_with_an_end():
    pages = {path.name: path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")}
    marked = {
        name: parts
        for name, text in pages.items()
        if (parts := re.findall(r"<!-- generated: (\w+)", text))
    }
    assert tuple(sorted(marked)) == TABLES.PAGES
    assert sorted(part for parts in marked.values() for part in parts) == sorted(TABLES.GENERATED)
    assert {name: TABLES.PART.findall(pages[name]) for name in marked} == marked


@pytest.mark.parametrize("row", PROPERTIES.values(), ids=PROPERTIES)
def test_the_list_of_properties_has_a_line_for_each(row):
    listed = TABLES.properties().splitlines()
    (line,) = [line for line in listed if line.startswith(f"| `{row.name}` |")]
    assert row.doc in line
    assert f" {row.scope} " in line
    assert ("it has no effect" in line) == (not row.effect)


def test_every_error_code_is_explained():
    """Those of the registry are the registry's own."""
    modules = [path for name in ("ksql", "server") for path in (ROOT / name).rglob("*.py")]
    texts = [path.read_text("utf-8") for path in modules if "registry" not in path.parts]
    codes = {code for text in texts for code in re.findall(r"^    code = (\d{5})$", text, re.M)}
    assert len(codes) > 15
    page = (ROOT / "docs/rest.md").read_text("utf-8")
    rows = " ".join(re.findall(r"^\| (\d{5}(?:, \d{5})*) \|", page, re.M))
    assert codes - set(re.findall(r"\d+", rows)) == set()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_contributing_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`((?:ksql|server|tests|qtt|docs|grammar|requirements)/[^`\s]*)`", text)
    assert len(named) > 30
    assert [name for name in named if not any(ROOT.glob(name.split("<")[0].rstrip("/")))] == []
