"""A format is its folder and two rows: nobody else asks which one it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ksql
import qtt
import server
from ksql.core.types.format import CAPABILITIES
from ksql.formats.table import FORMATS

ROOT = Path(ksql.__file__).parent.parent
MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in (ksql, qtt, server)
    for path in Path(package.__file__).parent.rglob("*.py")
)
QUOTED = re.compile(f"""["'](?:{"|".join(CAPABILITIES)})["']""")
OTHER_MEANING = {
    "ksql/cluster/replicas/cluster_status.py": "a partition is not placed on a server",
    "ksql/cluster/replicas/lag_reporter.py": "a partition is not placed on a server",
    "ksql/kafka/processing_log.py": "ksqlDB tells a wrong JSON record in other words",
    "ksql/serving/printing.py": "how PRINT shows the texts that it guesses",
    "ksql/cluster/replicas/partition_assignment.py": "a partition is not placed on a server",
    "server/cli/forms.py": "how the terminal prints its answers",
    "server/cli/terminal.py": "how the terminal prints its answers",
}
"""Modules in which the texts are no formats of records."""


def format_comparisons(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and name for each comparison with a format's name, operators and ``match`` alike."""
    places = (node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.MatchValue))
    return [
        (inner.lineno, inner.value)
        for place in places
        for inner in ast.walk(place)
        if isinstance(inner, ast.Constant) and inner.value in CAPABILITIES
    ]


@pytest.mark.parametrize(
    ("text", "comparisons"),
    [
        ("a.name == 'AVRO'", [(1, "AVRO")]),
        ("if not x in ('JSON', 'B'): pass", [(1, "JSON")]),
        ("match x:\n  case A(name='KAFKA' | 'NONE'): pass", [(2, "KAFKA"), (2, "NONE")]),
        ("x = 'AVRO'; y = Format('JSON'); z = a == 'AVROS'", []),
    ],
)
def test_comparisons_are_found(text, comparisons):
    assert format_comparisons(ast.parse(text)) == comparisons


def test_format_names_are_not_compared():
    folders = tuple(f"ksql/formats/{name.lower()}/" for name in FORMATS)
    own = [m for m in MODULES if not m.startswith(folders) and m != "ksql/core/types/format.py"]
    texts = {m: text for m in own if QUOTED.search(text := (ROOT / m).read_text())}
    comparisons = {m: format_comparisons(ast.parse(text)) for m, text in texts.items()}
    asking = {module: places for module, places in comparisons.items() if places}
    assert {m: places for m, places in asking.items() if m not in OTHER_MEANING} == {}
    assert asking.keys() == OTHER_MEANING.keys()


def test_each_format_has_its_folder_and_its_rows():
    assert FORMATS.keys() == CAPABILITIES.keys()
    assert all((ROOT / "ksql/formats" / name.lower() / "serde.py").is_file() for name in FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_with_registered_schemas_have_a_kind_of_them(name):
    info = CAPABILITIES[name]
    assert (FORMATS[name].kind is not None) == info.infers
    assert ({"schemaId", "fullSchemaName"} <= info.properties) == info.infers
