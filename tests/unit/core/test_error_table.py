"""Each row is raised once, with the facts that its texts name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ksql
from ksql.core import error_table
from ksql.core.error_table import ErrorRow
from ksql.core.errors import KsqlError, Span, StartError, StatementError

ROWS = {name: row for name, row in vars(error_table).items() if isinstance(row, ErrorRow)}
OF_THE_CLASS = {"span", "statement", "entry"}


def calls():
    """The calls of rows in the product: name and arguments."""
    for file in sorted(Path(ksql.__file__).parent.rglob("*.py")):
        text = file.read_text("utf-8")
        if not any(name in text for name in ROWS):
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ROWS
            ):
                assert not node.args, f"{file}:{node.lineno}"
                yield node.func.id, {keyword.arg for keyword in node.keywords}


def test_each_row_is_raised_once_with_its_facts():
    raised = list(calls())
    assert sorted(name for name, _ in raised) == sorted(ROWS)
    for name, given in raised:
        assert given - OF_THE_CLASS == ROWS[name].facts, name


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_makes_an_error_of_its_class(row):
    error = row(**{fact: f"<{fact}>" for fact in row.facts})
    assert type(error) is row.base
    assert all(f"<{fact}>" in error.text() for fact in row.facts)
    assert "{" not in error.text()
    with pytest.raises(row.base, match=row.pattern):
        raise error


def test_code_and_operator_are_those_of_the_row_or_else_of_the_class():
    plain = ErrorRow(StartError, "x")()
    other = ErrorRow(StartError, "x", code=50305, operator=False)()
    assert (plain.code, plain.operator) == (StartError.code, True)
    assert (other.code, other.operator) == (50305, False)


def test_a_place_in_the_text_goes_to_the_class():
    error = ErrorRow(StatementError, "{what} is bad", hint="Use {what} no more.")(
        what="a {brace}", span=Span(0, 1, 2, 3)
    )
    assert error.text() == "line 2:3: a {brace} is bad\nUse a {brace} no more."


def test_a_missing_fact_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError, match="what"):
        ErrorRow(KsqlError, "{what} is bad")()
