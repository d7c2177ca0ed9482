"""Names: of columns in messages, of sources that share a column, of pseudo columns, of stars."""

from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError, ParseError
from ksql.functions.registry import BUILTINS
from ksql.sql.plan.build import build
from tests.unit.world import World

WORLD = World("""
CREATE STREAM ORDERS (ID STRING KEY, QTY INT, NOTE STRING, ST STRUCT<ROWTIME BIGINT, F INT>)
  WITH (KAFKA_TOPIC='orders', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE STREAM BACK (ID STRING KEY, WHY STRING)
  WITH (KAFKA_TOPIC='back', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE TABLE ITEMS (ID STRING PRIMARY KEY, NOTE STRING, WEIGHT DOUBLE)
  WITH (KAFKA_TOPIC='items', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE STREAM WINDOWED (K STRING KEY, A INT)
  WITH (KAFKA_TOPIC='w', PARTITIONS=1, WINDOW_TYPE='SESSION');
""")
JOIN = "FROM ORDERS O JOIN ITEMS I ON O.ID = I.ID"


def refused(text, *, persistent=True):
    statement = WORLD.parse(f"{text};")
    with pytest.raises(KsqlError) as caught:
        build(statement, WORLD.catalog, BUILTINS, sink="OUT", persistent=persistent)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT O.ID, NOTE {JOIN}",
        f"SELECT O.ID, LEN(NOTE) {JOIN}",
        f"SELECT O.ID, QTY {JOIN} WHERE NOTE = 'x'",
        f"SELECT O.ID, QTY {JOIN} PARTITION BY NOTE",
        f"SELECT O.ID, COUNT(*) {JOIN} GROUP BY O.ID, NOTE",
        f"SELECT O.ID, COUNT(NOTE) {JOIN} GROUP BY O.ID",
        f"SELECT O.ID, COUNT(*) {JOIN} GROUP BY O.ID HAVING MAX(NOTE) > 'x'",
        "SELECT O.ID, QTY FROM ORDERS O JOIN ITEMS I ON NOTE = I.ID",
    ],
)
def test_a_column_of_several_sources(text):
    error = refused(text)
    assert isinstance(error, ParseError)
    assert error.message.startswith("Exception while preparing statement: Line: 1, Col: ")
    assert error.message.endswith("Column 'NOTE' is ambiguous. Could be I.NOTE or O.NOTE.")


def test_pseudo_columns_are_of_every_source():
    error = refused(f"SELECT O.ID, ROWTIME {JOIN}")
    assert "Column 'ROWTIME' is ambiguous. Could be I.ROWTIME or O.ROWTIME." in error.message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"SELECT O.ID, QTY {JOIN} WHERE O.NOTE > 3",
         "Error in WHERE expression: Cannot compare O_NOTE (STRING) to 3 (INTEGER) "
         "with GREATER_THAN."),
        (f"SELECT O.ID, QTY {JOIN} WHERE QTY + 1",
         "Should evaluate to boolean but is (O_QTY + 1) (INTEGER) instead."),
        (f"SELECT O.ID, O.NOTE - 1 {JOIN}", "Error processing expression: (O_NOTE - 1)."),
        (f"SELECT O.ID, QTY {JOIN} WHERE WEIGHT IN (O.NOTE)",
         "operator does not exist: DOUBLE = STRING (O_NOTE)"),
        (f"SELECT O.ID, QTY {JOIN} WHERE QTY LIKE 'x'", "Like condition must be between strings"),
        (f"SELECT O.ID, QTY[1] {JOIN}", "Subscript expression (O_QTY[1]) applies only to"),
        (f"SELECT O.ID, O.ST->G {JOIN}", "Could not find field 'G' in 'O_ST'."),
        (f"SELECT O.ID, CASE WHEN QTY THEN 1 END {JOIN}", "Type for 'O_QTY' is INTEGER"),
        (f"SELECT O.ID, QTY, COUNT(*) {JOIN} GROUP BY O.ID",
         "Non-aggregate SELECT expression(s) not part of GROUP BY: O_QTY\n"),
        (f"SELECT O.ID, QTY * COUNT(*) {JOIN} GROUP BY O.ID", "GROUP BY: (O_QTY * COUNT(*))\n"),
        (f"SELECT COUNT(*) {JOIN} GROUP BY O.NOTE",
         "must include the grouping expression O_NOTE in its projection (eg, SELECT O_NOTE...)."),
        ("SELECT O.ID, QTY FROM ORDERS O WHERE O.NOTE > 3", "Cannot compare NOTE (STRING) to 3"),
        ("SELECT COUNT(*) FROM ORDERS O GROUP BY O.NOTE", "the grouping expression NOTE in"),
    ],
)  # fmt: skip
def test_columns_are_called_as_in_the_rows(text, part):
    assert part in refused(text).text()


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT O.ID, QTY {JOIN} PARTITION BY O.NOTE, O.NOTE",
        f"SELECT O.ID, COUNT(*) {JOIN} GROUP BY O.NOTE, O.NOTE",
    ],
)
def test_repeated_keys_are_named_with_their_source(text):
    assert refused(text).message.endswith("expression: O.NOTE")


@pytest.mark.parametrize("name", ["ROWTIME", "ROWPARTITION", "ROWOFFSET"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ID, {} FROM ORDERS",
        "SELECT ID, O.{} FROM ORDERS O",
        "SELECT ID, ORDERS.{0} AS {0} FROM ORDERS",
        "SELECT O.ID, O.{0} AS {0} " + JOIN,
        "SELECT O.ID, I.{0} AS {0} " + JOIN,
    ],
)
def test_pseudo_columns_cannot_be_stored_under_their_names(text, name):
    assert refused(text.format(name)).message == (
        f"Reserved column name in select: `{name}`. Please remove or alias the column."
    )


@pytest.mark.parametrize("name", ["WINDOWSTART", "WINDOWEND"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ID, {} FROM ORDERS",
        "SELECT ID, {0} AS {0} FROM ORDERS",
        "SELECT ID, {}, COUNT(*) FROM ORDERS GROUP BY ID",
        "SELECT O.ID, {} " + JOIN,
        "SELECT O.ID, {}, COUNT(*) " + JOIN + " WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY O.ID",
    ],
)
def test_window_bounds_are_no_columns_without_windows(text, name):
    assert f"SELECT column '{name}' cannot be resolved." in refused(text.format(name)).message


@pytest.mark.parametrize("name", ["WINDOWSTART", "WINDOWEND"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ID, {}, COUNT(*) FROM ORDERS WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY ID",
        "SELECT K, {0}, COUNT(*) FROM WINDOWED GROUP BY K, {0}",
    ],
)
def test_window_bounds_cannot_be_stored_under_their_names(text, name):
    assert f"Reserved column name in select: `{name}`." in refused(text.format(name)).message


@pytest.mark.parametrize(
    "name", ["ROWTIME", "WINDOWSTART", "WINDOWEND", "ROWPARTITION", "ROWOFFSET"]
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ID, QTY AS {} FROM ORDERS",
        "SELECT ID, QTY + 1 AS {} FROM ORDERS",
        "SELECT O.ID, O.QTY AS {} " + JOIN,
        "SELECT K, A AS {} FROM WINDOWED",
    ],
)
def test_nothing_else_is_called_like_a_pseudo_column(text, name):
    for persistent in (True, False):
        assert refused(text.format(name), persistent=persistent).message == (
            f"`{name}` is a reserved column name. You cannot use it as an alias for a column."
        )


def test_fields_that_are_called_like_a_pseudo_column():
    for text in ("SELECT ID, ST->ROWTIME FROM ORDERS", "SELECT ID, ST->* FROM ORDERS"):
        assert "Reserved column name in select: `ROWTIME`." in refused(text).message


def test_push_queries_may_show_pseudo_columns():
    text = "SELECT O.ID, O.ROWTIME AS ROWTIME FROM ORDERS O EMIT CHANGES;"
    plan = build(WORLD.parse(text), WORLD.catalog, BUILTINS, persistent=False)
    assert [column.name for column in plan.value] == ["ID", "ROWTIME"]


@pytest.mark.parametrize("select", ["COUNT(*)", "SUM(QTY) AS S, COUNT(QTY)", "1 + MAX(QTY)"])
def test_aggregates_without_group_by_have_no_key_to_be_stored_under(select):
    error = refused(f"SELECT {select} FROM ORDERS")
    assert error.message.endswith("] without a GROUP BY clause.")
    assert "must include the grouping expression 1 in its projection" in error.detail


PSEUDO = ["ROWTIME", "ROWPARTITION", "ROWOFFSET"]
OF_ORDERS = [f"O_{name}" for name in ("QTY", "NOTE", "ST", *PSEUDO)]
OF_ITEMS = [f"I_{name}" for name in ("NOTE", "WEIGHT", *PSEUDO)]


@pytest.mark.parametrize(
    ("by", "key", "value"),
    [
        ("QTY", ["O_QTY"], [*OF_ORDERS[1:], "O_ID", *OF_ITEMS, "I_ID"]),
        ("I.NOTE", ["I_NOTE"], [*OF_ORDERS, "O_ID", *OF_ITEMS[1:], "I_ID"]),
        ("O.ID, QTY", ["O_ID", "O_QTY"], [*OF_ORDERS[1:], *OF_ITEMS, "I_ID"]),
        ("QTY + 1", ["KSQL_COL_0"], [*OF_ORDERS, "O_ID", *OF_ITEMS, "I_ID"]),
    ],
)
def test_a_star_over_a_partitioned_join_gives_all_that_its_rows_have(by, key, value):
    text = f"SELECT * {JOIN} PARTITION BY {by};"
    plan = build(WORLD.parse(text), WORLD.catalog, BUILTINS, sink="OUT")
    assert [column.name for column in plan.key] == key
    assert [column.name for column in plan.value] == value


def test_synthetic_key_is_in_a_star_once():
    joined = "FROM ORDERS O FULL OUTER JOIN BACK B WITHIN 1 HOUR ON O.ID = B.ID"
    text = f"SELECT * {joined} PARTITION BY ROWKEY;"
    plan = build(WORLD.parse(text), WORLD.catalog, BUILTINS, sink="OUT")
    assert [column.name for column in plan.key] == ["ROWKEY"]
    assert "ROWKEY" not in [column.name for column in plan.value]
