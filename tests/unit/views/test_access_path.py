from __future__ import annotations

import pytest

from ksql.core.types.windowed import session_key, window_key
from ksql.views.access_path import Windows
from tests.unit.serving.pulls import answer, bound
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE TABLE W AS SELECT K, COUNT(*) AS C FROM S
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY K;
CREATE TABLE E AS SELECT K, COUNT(*) AS C FROM S WINDOW SESSION (5 MILLISECONDS) GROUP BY K;
"""


def world():
    world_ = World(SETUP)
    keys = ("a", "ab", "b", "ab" + "\0" * 8)
    world_.feed("s", *((key, {"A": 1}, time) for time in range(0, 100, 10) for key in keys))
    return world_


WORLD = world()


def ranges(text):
    query, tables = bound(text, WORLD)
    list(query.batches())
    return tables.ranges


@pytest.mark.parametrize(
    ("condition", "ranges"),
    [
        ("K > 'a'", [(b"a", None)]),
        ("K <= 'b'", [(None, b"c")]),
        ("K BETWEEN 'a' AND 'b'", [(b"a", b"c")]),
        ("K < 'a' OR K > 'x'", [(None, b"b"), (b"x", None)]),
        ("K >= 'a' AND K < 'c' OR K >= 'b' AND K < 'd'", [(b"a", b"e")]),
        ("K = 'q' OR K > 'x'", [(b"q", b"r"), (b"x", None)]),
        ("K > 'x' AND K < 'd'", []),
        ("K LIKE 'ab%b'", [(b"ab", b"ac")]),
        ("K LIKE 'a_c'", [(b"a", b"b")]),
        ("K LIKE '%a'", [(None, None)]),  # a scan
        ("K LIKE 'a#%%' ESCAPE '#'", [(None, None)]),
    ],
)
def test_ranges_of_keys_do_not_overlap(condition, ranges):
    text = f"SELECT K FROM N WHERE {condition};"
    query, tables = bound(text, WORLD)
    list(query.batches())
    assert (tables.ranges or [(None, None)] * tables.scans) == ranges


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("WINDOWSTART = 30", 30, 30),
        ("WINDOWSTART >= 30 AND WINDOWSTART < 60", 30, 59),
        ("30 < WINDOWEND AND WINDOWEND <= 50", 21, 40),
        ("WINDOWSTART BETWEEN 20 AND 40", 20, 40),
        ("WINDOWSTART > '1970-01-01T00:00:00.020'", 21, 2**63 - 11),
    ],
)
def test_windows_of_a_key_are_a_range(condition, first, last):
    text = f"SELECT WINDOWSTART FROM W WHERE K = 'ab' AND {condition};"
    [(lo, hi)] = ranges(text)
    assert lo == window_key(b"ab", first)
    assert hi == window_key(b"ab", last + 1)


def test_a_longer_key_among_the_windows_is_left_out():
    text = "SELECT K, WINDOWSTART AS S FROM W WHERE K = 'ab' AND WINDOWSTART < 30;"
    assert answer(text, WORLD) == [("ab", 0), ("ab", 10), ("ab", 20)]


def test_sessions_of_a_key_are_in_the_order_of_their_ends():
    text = "SELECT WINDOWSTART AS S FROM E WHERE K = 'a' AND WINDOWSTART >= 40 AND WINDOWEND <= 60;"
    [(lo, hi)] = ranges(text)
    assert lo == session_key(b"a", 0, 40)[:-8]
    assert hi == session_key(b"a", 0, 61)[:-8]
    assert answer(text, WORLD) == [(40,), (50,), (60,)]


def test_alternatives_give_what_either_allows():
    assert Windows(5, 9) | Windows(1, 7, 3, 4) == Windows(1, 9, 0, 2**63 - 1)
    assert Windows(first_start=5, last_start=4).ends(10) == (5, 4)


NUMBERS = World(
    """
CREATE STREAM D (P DECIMAL(5, 2), I INT, X DOUBLE) WITH (KAFKA_TOPIC='d', PARTITIONS=1);
CREATE TABLE BY_P WITH (KEY_FORMAT='JSON') AS SELECT P AS K, COUNT(*) AS C FROM D GROUP BY P;
CREATE TABLE BY_I WITH (KEY_FORMAT='JSON') AS SELECT I AS K, COUNT(*) AS C FROM D GROUP BY I;
CREATE TABLE BY_J WITH (KEY_FORMAT='JSON') AS SELECT I AS K, COUNT(*) AS C FROM D GROUP BY I;
CREATE TABLE BY_X WITH (KEY_FORMAT='JSON') AS SELECT X AS K, COUNT(*) AS C FROM D GROUP BY X;
"""
)
NUMBERS.feed("d", *((None, {"P": n, "I": n, "X": n}, 1) for n in range(3)))
NUMBERS.feed("d", (None, {"P": 1.5, "I": None, "X": 1.5}, 2))


@pytest.mark.parametrize(
    ("table", "literal", "ranges"),
    [
        ("BY_P", "1.5", ["1.50"]),
        ("BY_P", "1.500", ["1.50"]),
        ("BY_P", "1.50e0", ["1.50"]),
        ("BY_P", "1.501", []),
        ("BY_P", "1000", []),
        ("BY_P", "2", ["2.00"]),
        ("BY_P", "-0.0", ["0.00"]),
        ("BY_I", "1.0", ["1"]),
        ("BY_I", "1.5", []),
        ("BY_I", "9999999999", []),
        ("BY_X", "1", ["1.0"]),
        ("BY_X", "1.50", ["1.5"]),
        ("BY_X", "0", ["0.0"]),
        ("BY_X", "-0.0", ["0.0"]),
        ("BY_X", "-0e0", ["0.0"]),
    ],
)
def test_a_number_is_looked_up_as_its_column_has_it(table, literal, ranges):
    text = f"SELECT K FROM {table} WHERE K = {literal} AND C + 1 > 0;"
    query, tables = bound(text, NUMBERS)
    assert [str(row.values[0]) for batch in query.batches() for row in batch] == ranges
    assert (tables.ranges, tables.scans) == ([], 0)


ZEROS = """
CREATE STREAM D (X DOUBLE, SIGN DOUBLE, S STRING) WITH (KAFKA_TOPIC='d', PARTITIONS=1);
CREATE TABLE Z AS SELECT X * SIGN AS K, COUNT(*) AS C FROM D GROUP BY X * SIGN;
CREATE TABLE ZS WITH (KEY_FORMAT='DELIMITED') AS SELECT S, X * SIGN AS K, COUNT(*) AS C FROM D
  GROUP BY S, X * SIGN;
CREATE TABLE ZW AS SELECT X * SIGN AS K, COUNT(*) AS C FROM D
  WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY X * SIGN;
"""


@pytest.mark.parametrize("signs", [[-1.0], [1.0], [1.0, -1.0]])
@pytest.mark.parametrize(
    ("table", "condition", "five"),
    [
        ("Z", "K = 0", False),
        ("Z", "K = -0e0", False),
        ("Z", "K = 0 OR K = -0e0 OR K = 0.0", False),
        ("Z", "K IN (0e0, 5e0)", True),
        ("Z", "K IN (5, 5.0, -0e0, 0e0, 0, 5e0)", True),
        ("ZS", "S = 's' AND K = 0", False),
        ("ZS", "S IN ('s', 't', 's') AND K IN (0e0, 5, -0e0)", True),
        ("ZS", "S = 's' AND K = 5 OR K = -0e0 AND S = 's' OR K = 0 AND S = 's'", True),
        ("ZW", "K = 0", False),
        ("ZW", "K IN (-0e0, 5)", True),
    ],
)
def test_either_zero_finds_the_rows_of_both_once(signs, table, condition, five):
    world_ = World(ZEROS)
    world_.feed("d", *((None, {"X": 0.0, "SIGN": sign, "S": "s"}, 1) for sign in signs))
    world_.feed("d", (None, {"X": 5.0, "SIGN": 1.0, "S": "s"}, 2))
    query, tables = bound(f"SELECT K FROM {table} WHERE {condition};", world_)
    rows = sorted(repr(row.values[0]) for batch in query.batches() for row in batch)
    assert rows == sorted([*(repr(0.0 * sign) for sign in signs), *(["5.0"] if five else [])])
    assert tables.scans == 0


def test_a_number_is_looked_up_as_its_column_has_it_in_a_join():
    text = "SELECT a.K FROM BY_I a JOIN BY_J b ON a.K = b.K WHERE b.K = 1.0;"
    query, tables = bound(text, NUMBERS)
    assert [row.values for batch in query.batches() for row in batch] == [(1,)]
    assert tables.scans == 0


@pytest.mark.parametrize(
    "condition",
    [
        "K <= CAST(NULL AS STRING)",
        "K >= 'a' AND K >= CAST(NULL AS STRING)",
        "K = CAST(NULL AS STRING) OR K > 'c'",
        "K BETWEEN CAST(NULL AS STRING) AND 'b'",
    ],
)
def test_nothing_is_compared_with_null(condition):
    assert answer(f"SELECT K FROM N WHERE {condition};", WORLD) == []


@pytest.mark.parametrize(("keys", "counts", "scans"), [(101, 1, 0), (25, 40, 0), (26, 40, 1)])
def test_as_many_alternatives_are_looked_up_as_need_no_scan(keys, counts, scans):
    condition = " OR ".join(f"K = '{number}'" for number in range(keys - 1))
    allowed = " OR ".join(f"C = {number + 10}" for number in range(counts))
    text = f"SELECT K FROM N WHERE ({condition} OR K = 'b') AND ({allowed});"
    query, tables = bound(text, WORLD)
    assert [row.values for batch in query.batches() for row in batch] == [("b",)]
    assert tables.scans == scans
    if not scans:
        bound(text, WORLD, **{"ksql.query.pull.table.scan.enabled": "false"})
