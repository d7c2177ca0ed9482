from __future__ import annotations

import struct

import pytest

from ksql.core.types import model
from ksql.core.types.format import Format, KeyWindow
from ksql.core.types.schema import Column, Role, Schema
from ksql.sql.catalog.model import DataSource
from qtt import tokens
from qtt.compare import Actual, check_topic, same
from qtt.model import CaseRecord, Mismatch, QueryTestCase, Step, WindowBounds


def _same(want: str, got: str, *, exact: bool = True) -> bool:
    return same(tokens.parse(want), tokens.parse(got), exact=exact)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1", "1"),
        ("1.7", "1"),  # an integer is compared with the expected number cut
        ("1.50", "1.50"),
        ("100", "1E+2"),  # no digits behind the point
        ("null", "null"),
        ("[1, null]", "[1, null]"),
        ('{"A": 1, "b": null}', '{"b": null, "A": 1}'),
        ('{"a": 1}', '{"A": 1}'),  # names are also looked up in upper case
        ("true", "true"),
    ],
)
def test_equal(want, got):
    assert _same(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1", "2"),
        ("1", "1.0"),
        ("1.5", "1.50"),  # another scale
        ("1.0E10", "1E10"),
        ("1", "true"),
        ("true", "1"),
        ('"1"', "1"),
        ("1", '"1"'),
        ("null", '{"A": null}'),
        ('{"A": 1}', '{"A": 1, "B": null}'),  # null fields count
        ('{"A": 1}', '{"a": 1}'),
        ("[1, 2]", "[2, 1]"),
        ("[1]", "[1, 1]"),
        ('{"A": {"B": 1}}', '{"A": {"B": 2}}'),
    ],
)
def test_different(want, got):
    assert not _same(want, got)


def test_without_exactness_numbers_may_differ_a_little():
    assert _same("1", "1.0000001", exact=False)
    assert not _same("1", "1.00001", exact=False)


def _source(**changes):
    schema = Schema((Column("K", model.STRING, Role.KEY), Column("V", model.INTEGER, Role.VALUE)))
    fields = {
        "name": "S",
        "kind": "STREAM",
        "topic": "t",
        "schema": schema,
        "key_format": Format("KAFKA"),
        "value_format": Format("JSON"),
        "partitions": 1,
        **changes,
    }
    return DataSource(**fields)


INPUT = CaseRecord(topic="in", key=None, value=None, timestamp=0)
CASE = QueryTestCase(id="c", steps=(Step((), (INPUT,)),), outputs=())
QUIET = QueryTestCase(id="c", steps=(Step((), ()),), outputs=())


def _check(expected, actual, source=None, case=CASE):
    check_topic(case, source or _source(), expected, actual)


def _value(n):
    return {"V": tokens.Number(n)}


def test_only_records_of_one_partition_have_an_order():
    expected = [
        CaseRecord(topic="t", key=key, value=_value(n), timestamp=None)
        for key, n in (("a", 1), ("b", 2), ("a", 3))
    ]
    first, second, third = (
        Actual(b"b", b'{"V":2}', 9, partition=0),
        Actual(b"a", b'{"V":1}', 9, partition=1),
        Actual(b"a", b'{"V":3}', 9, partition=1),
    )
    _check(expected, [first, second, third])
    with pytest.raises(Mismatch, match='"V":1'):
        _check(expected, [first, third, second])
    with pytest.raises(Mismatch):
        _check(expected, [record._replace(partition=0) for record in (first, second, third)])
    with pytest.raises(Mismatch, match="3 records expected, 2 found"):
        _check(expected, [first, second])


def test_records_are_compared_in_their_order():
    expected = [
        CaseRecord(topic="t", key="a", value=_value(1), timestamp=None),
        CaseRecord(topic="t", key="b", value=None, timestamp=7),
    ]
    actual = [Actual(b"a", b'{"V":1}', 99), Actual(b"b", None, 7)]
    _check(expected, actual)
    with pytest.raises(Mismatch, match="record 0: key"):
        _check(expected, actual[::-1])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"key": b"b"}, 'key "a" expected, "b" found'),
        ({"value": b'{"V":2}'}, 'value {"V":1} expected, {"V":2} found'),
        ({"value": None}, "null found"),
        ({"timestamp": 6}, "timestamp 5 expected, 6 found"),
        ({"headers": (("h", b"x"),)}, "headers"),
    ],
)
def test_each_part_counts(change, text):
    expected = CaseRecord(topic="t", key="a", value=_value(1), timestamp=5)
    good = Actual(b"a", b'{"V":1}', 5)
    _check([expected], [good])
    with pytest.raises(Mismatch) as caught:
        _check([expected], [good._replace(**change)])
    assert text in str(caught.value)


def test_as_many_records_as_expected():
    expected, actual = (
        CaseRecord(topic="t", key="a", value=_value(1), timestamp=None),
        Actual(b"a", b'{"V":1}', 0),
    )
    with pytest.raises(
        Mismatch, match=r"2 records expected, 1 found; the first missing is key='a'"
    ):
        _check([expected, expected], [actual])
    with pytest.raises(
        Mismatch, match=r"1 records expected, 2 found; the first too many is key=b'a'"
    ):
        _check([expected], [actual, actual])


def test_time_zero_is_not_checked_where_nothing_was_read():
    expected, actual = (
        CaseRecord(topic="t", key="a", value=None, timestamp=0),
        Actual(b"a", None, 123),
    )
    _check([expected], [actual], case=QUIET)
    with pytest.raises(Mismatch, match="timestamp"):
        _check([expected], [actual])


def test_a_window_is_part_of_the_key():
    source = _source(window=KeyWindow("TUMBLING", 10))
    expected = CaseRecord(
        topic="t", key="a", value=None, timestamp=None, window=WindowBounds(20, 30, "time")
    )
    _check([expected], [Actual(b"a" + struct.pack(">q", 20), None, 0)], source)
    with pytest.raises(Mismatch, match="window"):
        _check([expected], [Actual(b"a" + struct.pack(">q", 30), None, 0)], source)


def test_a_sessions_window_has_its_end_first():
    source = _source(window=KeyWindow("SESSION", None))
    expected = CaseRecord(
        topic="t", key="a", value=None, timestamp=None, window=WindowBounds(20, 25, "session")
    )
    _check([expected], [Actual(b"a" + struct.pack(">qq", 25, 20), None, 0)], source)
