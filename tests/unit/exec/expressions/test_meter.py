"""What the functions of one row, or of one INSERT, compute together is bounded."""

from __future__ import annotations

import pytest

from ksql.control.statements.execute import RequestFailed
from ksql.exec.expressions import meter
from ksql.exec.expressions.compile import compile_expr, compile_projection
from ksql.functions.registry import BUILTINS
from ksql.sql.binder.infer import bind
from ksql.sql.binder.scope import NO_COLUMNS
from ksql.sql.syntax.parser import parse_one, split
from tests.unit.world import World

LIMIT = 20_000


@pytest.fixture(autouse=True)
def _low(monkeypatch):
    monkeypatch.setattr(meter, "LONGEST_RESULT", LIMIT)
    monkeypatch.setattr(meter._row, "left", LIMIT)


def bound(text):
    [raw] = split(f"INSERT INTO s VALUES ({text});")
    [value] = parse_one(raw).statement.values
    return bind(value, NO_COLUMNS, BUILTINS)


def evaluated(text):
    """The value and what was logged."""
    logged = []
    run = compile_expr((), bound(text), BUILTINS, {}, "x")
    return run((), lambda *entry: logged.append(entry)), logged


def nested(function, text, levels):
    for _ in range(levels):
        text = function.format(text)
    return text


SERIES = "ARRAY_LENGTH(GENERATE_SERIES(1, 9000))"
PAD = "LPAD('x', 9000, 'x')"
HEX = "ENCODE({}, 'ascii', 'hex')"
WRONG = [
    "+".join([SERIES] * 5),
    f"LEN({'||'.join([PAD] * 6)})",
    f"ARRAY_LENGTH(ARRAY[{', '.join([PAD] * 6)}])",
    f"LEN({nested('TO_JSON_STRING({})', 'TO_JSON_STRING(1)', 40)})",
    f"LEN({nested(HEX, repr('x'), 40)})",
    f"ARRAY_LENGTH(TRANSFORM(GENERATE_SERIES(1, 9000), x => {SERIES}))",
    "ARRAY_LENGTH(TRANSFORM(GENERATE_SERIES(1, 900), "
    "x => REDUCE(GENERATE_SERIES(1, 900), 0, (s, i) => s + i)))",
]


@pytest.mark.parametrize("text", WRONG)
def test_results_are_counted_together(text):
    _, logged = evaluated(text)
    assert any("longer than 20000 together" in message for _, message, _ in logged)


@pytest.mark.parametrize("text", WRONG)
def test_an_insert_is_refused_with_the_reason(text):
    world = World(
        "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    with pytest.raises(RequestFailed, match="longer than 20000 together"):
        world.run(f"INSERT INTO s VALUES ({text});")
    assert world.topics.describe("s") is not None


def test_the_values_of_an_insert_are_counted_together():
    world = World(
        "CREATE STREAM s (a STRING, b STRING, c STRING)"
        " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    world.run(f"INSERT INTO s VALUES ({PAD}, {PAD}, 'x');" * 2)
    with pytest.raises(RequestFailed, match="longer than 20000 together"):
        world.run(f"INSERT INTO s VALUES ({PAD}, {PAD}, {PAD});")


def test_no_function_is_called_once_too_much_was_computed(monkeypatch):
    """Hundreds of calls would take their time one after another."""
    calls = []
    usual = meter.counted

    def count(value):
        calls.append(1)
        return usual(value)

    monkeypatch.setattr(meter, "counted", count)
    evaluated("+".join([SERIES] * 50))
    assert len(calls) < 10


def test_each_row_is_counted_again():
    series = "ARRAY_LENGTH(GENERATE_SERIES(1, 3000))"
    output = bound("+".join([series] * 5))
    projection = compile_projection((), None, [output], BUILTINS, {}, "x")
    assert projection.batch([()] * 3, None) == [(15_000,)] * 3
    assert projection.run((), None) == (15_000,)


@pytest.mark.parametrize("text", [PAD, f"UCASE({PAD}) || 'x'", "1 + 2 * 3", "'a' = 'b'"])
def test_few_functions_are_not_counted(text):
    assert not meter.are_many([bound(text)])
    assert "begin" not in compile_projection((), None, [bound(text)], BUILTINS, {}, "x").text


def test_small_results_cost_nothing():
    value, logged = evaluated(" || ".join(["'abc'"] * 50))
    assert (value, logged) == ("abc" * 50, [])
