"""Rows of JSON for a stream."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ksql.control.statements.execute import UnknownField
from ksql.control.statements.insert_values import CannotInsert
from ksql.control.statements.inserts_stream import RowWriter, coerced, name_of
from ksql.control.statements.services import Request
from ksql.core.errors import KsqlError
from ksql.core.types import model
from ksql.core.types.model import Array, Field, Map, Struct
from tests.unit.world import World

DEC = model.Decimal(4, 2)
POINT = Struct((Field("X", model.INTEGER), Field("y", model.DOUBLE)))
S = """
CREATE STREAM S (K STRING KEY, A BIGINT, `b` DOUBLE, P STRUCT<X INT>, H BYTES HEADER('h'))
  WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');
"""


def writer(world, name="s"):
    return RowWriter(name, Request(world.services, world.settings))


def test_rows_are_written_with_the_time_of_the_clock():
    world = World(S)
    rows = writer(world)
    rows.begin({"k": "a", "A": 1, "`b`": Decimal("2.5"), "p": {"x": 3}})
    rows.begin({})
    assert [record[:3] for record in world.out("s")] == [
        ("a", {"A": 1, "b": 2.5, "P": {"X": 3}}, 1000),
        (None, {"A": None, "b": None, "P": None}, 1000),
    ]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"Z": 1}, UnknownField),
        ({"b": 1}, UnknownField),
        ({"H": "AA=="}, UnknownField),
        ({"ROWTIME": 1}, UnknownField),
        ({"A": "1"}, CannotInsert),
        ({"K": 1}, CannotInsert),
        ({"A": 2**63}, CannotInsert),
        ({"P": {"Z": 1}}, CannotInsert),
        ({"P": []}, CannotInsert),
    ],
)
def test_rows_that_do_not_fit_are_not_written(row, error):
    world = World(S)
    with pytest.raises(KsqlError) as caught:
        writer(world).begin(row)
    assert type(caught.value) is error
    assert world.out("s") == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1", "STRING (1)"),
        (True, "BOOLEAN (true)"),
        (2**63, "NUMBER (9223372036854775808)"),
        (Decimal("1.50"), "NUMBER (1.50)"),
        ([None, "ä"], 'ARRAY ([null, "ä"])'),
        ({"x": [False, Decimal("0.5")]}, 'OBJECT ({"x": [false, 0.5]})'),
    ],
)
def test_the_error_reports_value_type_and_column(value, shown):
    with pytest.raises(CannotInsert) as caught:
        writer(World(S)).begin({"A": value})
    assert caught.value.message == (
        f"Can't coerce a field of type {shown} into type BIGINT for column `A`"
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t", "Cannot insert into a table: `T`"),
        ("nowhere", "unknown stream/table: `NOWHERE`"),
        ("`s`", "unknown stream/table: `s`"),
        ("w", "windowed"),
        ("r", "read-only"),
    ],
)
def test_only_streams_take_rows(name, says):
    world = World(
        S,
        "CREATE TABLE T (K STRING PRIMARY KEY, A INT) "
        "WITH (KAFKA_TOPIC='t', PARTITIONS=1, VALUE_FORMAT='JSON');"
        "CREATE STREAM W (K STRING KEY, A INT) WITH (KAFKA_TOPIC='w', PARTITIONS=1, "
        "VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');"
        "CREATE SOURCE STREAM R (K STRING KEY, A INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');",
    )
    with pytest.raises(CannotInsert, match=says):
        writer(world, name)


@pytest.mark.parametrize(
    ("value", "type_", "result"),
    [
        (None, POINT, None),
        (True, model.BOOLEAN, True),
        (1, model.INTEGER, 1),
        (2**31, model.BIGINT, 2**31),
        (1, model.DOUBLE, 1.0),
        (Decimal("1e2"), model.DOUBLE, 100.0),
        (7, DEC, Decimal("7.00")),
        (Decimal("1.5"), DEC, Decimal("1.50")),
        ("1.25", DEC, Decimal("1.25")),
        ("x", model.STRING, "x"),
        ("AQI=", model.BYTES, b"\1\2"),
        ("1970-01-02", model.DATE, 1),
        ("00:00:01", model.TIME, 1000),
        ("1970-01-01T00:00:01", model.TIMESTAMP, 1000),
        ([1, None], Array(model.BIGINT), [1, None]),
        ({"a": 1, "b": None}, Map(model.STRING, model.INTEGER), {"a": 1, "b": None}),
        ({"x": 1, "`y`": 2}, POINT, {"X": 1, "y": 2.0}),
        ({}, POINT, {"X": None, "y": None}),
    ],
)
def test_values_that_fit(value, type_, result):
    value_ = coerced(value, type_)
    assert value_ == result
    assert type(value_) is type(result)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("true", model.BOOLEAN),
        (1, model.BOOLEAN),
        (True, model.INTEGER),
        (True, model.STRING),
        (2**31, model.INTEGER),
        (2**63, model.BIGINT),
        (Decimal("1.0"), model.INTEGER),
        (1, model.STRING),
        ("1", model.INTEGER),
        ("1", model.DOUBLE),
        (Decimal("1.555"), DEC),
        (100, DEC),
        ("abc", DEC),
        ("no day", model.DATE),
        (1, model.TIMESTAMP),
        ("!", model.BYTES),
        ([1, "2"], Array(model.INTEGER)),
        ({"a": 1}, Array(model.INTEGER)),
        ({"a": "1"}, Map(model.STRING, model.INTEGER)),
        ({"Y": 1}, POINT),
        ([], POINT),
        ({}, model.STRING),
    ],
)
def test_values_that_do_not_fit(value, type_):
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        coerced(value, type_)


def test_names_are_read_as_in_statements():
    assert [name_of(n) for n in ("a", "`a`", '"a``"', "`a``b`", "`", "a`")] == [
        "A",
        "a",
        "a``",
        "a`b",
        "`",
        "A`",
    ]
