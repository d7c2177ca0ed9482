from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ksql.core.config import canonical
from ksql.core.properties.model import PLAN_PROPERTIES, PROPERTIES, SUBJECTS

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "ksql/core/properties"
_NAME = re.compile(r"(ksql|auto|commit|cache|processing|access)(\.[a-z_0-9]+)+|bootstrap\.servers")
_NOT_IN_THE_TABLE = {
    "ksql.runtime.feature.shared.enabled",  # ksqlDB's, in the refusal of ALTER SYSTEM
    "ksql.server",  # marks in the scope of a request
    "ksql.user",
    "auto.create.topics.enable",  # the embedded broker's
}


# of the file of ``ksql migrations``, which no server reads
_OF_MIGRATIONS = ("ksql.migrations.", "ksql.auth.basic.", "ksql.server.url", "ssl.verify.host")


def _texts_of_code() -> set[str]:
    """The string constants of the product, docstrings and the table itself left out."""
    texts = set()
    for file in [*ROOT.glob("ksql/**/*.py"), *ROOT.glob("server/**/*.py")]:
        if file.is_relative_to(TABLE):
            continue
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts |= {
            node.value
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
        }
    return texts


@pytest.fixture(scope="module")
def texts():
    return _texts_of_code()


@pytest.mark.parametrize("row", PROPERTIES.values(), ids=PROPERTIES)
def test_every_property_has_a_sentence_and_a_default_of_its_type(row):
    assert re.fullmatch(r"[A-Z0-9].*[^.]\.", row.doc), row.doc
    assert "\n" not in row.doc
    assert row.accepts(row.default)
    assert bool(row.choices) == (row.kind == "choice")
    assert row.scope == "server" or row.editable


@pytest.mark.slow
@pytest.mark.parametrize("row", PROPERTIES.values(), ids=PROPERTIES)
def test_a_property_has_an_effect_if_some_code_reads_it(row, texts):
    if row.stands_for:  # the server's configuration takes it for the other one
        assert PROPERTIES[row.stands_for].effect
        assert not row.effect
        return
    assert row.effect == (row.name in texts)


def test_code_names_no_property_that_does_not_exist(texts):
    modules = {".".join(f.relative_to(ROOT).with_suffix("").parts) for f in ROOT.glob("ksql/**/*")}
    named = {canonical(text) for text in texts if _NAME.fullmatch(text)} - modules
    named = {name for name in named if not name.startswith(_OF_MIGRATIONS)}
    assert named - set(PROPERTIES) - _NOT_IN_THE_TABLE == set()
    assert len(named) > 50


def test_properties_are_in_the_table_once():
    rows = [row for subject in SUBJECTS.values() for row in subject]
    assert len(rows) == len(PROPERTIES)
    assert {row.name for row in rows if row.decides_results} == set(PLAN_PROPERTIES)
