from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.core.errors import Span
from ksql.core.types import schema
from ksql.core.types.model import BIGINT, INTEGER, STRING
from ksql.sql.binder.bound import Column, LambdaVar
from ksql.sql.binder.errors import (
    AmbiguousColumn,
    NotAvailableHere,
    UnknownColumn,
    UnknownSource,
    describe,
)
from ksql.sql.binder.scope import Scope, Source
from ksql.sql.syntax import expr as ex

LEFT = Source("L", {"ID": INTEGER, "NAME": STRING, "ROWTIME": BIGINT})
RIGHT = Source("R", {"ID": INTEGER, "CITY": STRING, "ROWTIME": BIGINT})
ONE = Scope((LEFT,))
JOIN = Scope((LEFT, RIGHT), joined=True, extras={"ROWKEY": BIGINT})


def test_single_source():
    assert ONE.resolve(ex.Ref("ID")) == Column("ID", INTEGER)
    assert ONE.resolve(ex.Ref("NAME", "L")) == Column("NAME", STRING)


def test_a_join():
    assert JOIN.resolve(ex.Ref("ID", "R")) == Column("R_ID", INTEGER)
    assert JOIN.resolve(ex.Ref("CITY")) == Column("R_CITY", STRING)
    assert JOIN.resolve(ex.Ref("ROWKEY")) == Column("ROWKEY", BIGINT)


def test_ambiguous_names():
    with pytest.raises(AmbiguousColumn) as error:
        JOIN.resolve(ex.Ref("ROWTIME"))
    assert error.value.message == (
        "Exception while preparing statement: Column 'ROWTIME' is ambiguous. "
        "Could be L.ROWTIME or R.ROWTIME."
    )


def test_messages_call_columns_as_the_rows_do():
    name, city = ex.Ref("NAME", "L"), ex.Ref("CITY")
    written = ex.Binary("+", name, city)
    assert describe(JOIN.named(written)) == "(L_NAME + R_CITY)"
    assert describe(ONE.named(name)) == "NAME"
    assert describe(replace(JOIN, clause="JOIN ON").named(written)) == "(L.NAME + CITY)"


def test_messages_leave_names_that_are_no_columns():
    scope = JOIN.with_variables({"CITY": STRING})
    for ref in (ex.Ref("CITY"), ex.Ref("ID"), ex.Ref("WRONG", "L"), ex.Ref("ID", "X")):
        assert scope.named(ref) == ref


def test_unknown_names_come_with_a_place_and_a_proposal():
    with pytest.raises(UnknownColumn) as error:
        ONE.resolve(ex.Ref("NAMES", span=Span(40, 45, 3, 7)))
    assert error.value.message == "Line: 3, Col: 7: SELECT column 'NAMES' cannot be resolved."
    assert error.value.hint == "Did you mean NAME?"
    with pytest.raises(UnknownSource, match="'X' is not a valid stream/table name or alias"):
        ONE.resolve(ex.Ref("ID", "X"))


def test_names_of_other_clauses():
    scope = Scope((LEFT,), "WHERE", later=frozenset(("WINDOWSTART",)))
    with pytest.raises(NotAvailableHere) as error:
        scope.resolve(ex.Ref("WINDOWSTART"))
    assert error.value.message == "Error in WHERE expression: Unknown column WINDOWSTART."


def test_arguments_of_lambdas_hide_nothing_but_are_found_first():
    scope = ONE.with_variables({"X": STRING})
    assert scope.resolve(ex.Ref("X")) == LambdaVar("X", STRING)
    assert scope.resolve(ex.Ref("ID")) == Column("ID", INTEGER)


def test_a_source_of_a_schema():
    columns = (schema.Column("ID", INTEGER, schema.Role.KEY), schema.Column("ROWTIME", STRING))
    source = Source.of("S", schema.Schema(columns), windowed=True)
    assert list(source.columns) == [
        "ID",
        "ROWTIME",
        "ROWPARTITION",
        "ROWOFFSET",
        "WINDOWSTART",
        "WINDOWEND",
    ]
    assert source.columns["ROWTIME"] == STRING
