"""Aggregates over every kind of source, and what a failing one does to those beside it."""

from __future__ import annotations

import json

import pytest

from ksql.exec.dataflow.load import program_of
from ksql.exec.dataflow.program import RawBatch, through
from ksql.exec.dataflow.query_start import plan_of
from ksql.exec.operators.memory import MemoryStore
from ksql.functions.registry import BUILTINS, Functions
from ksql.functions.user.load import load_sources
from tests.unit.functions.harness import aggregate, fold, result
from tests.unit.world import World

SOURCES = """
CREATE STREAM S (K STRING KEY, G STRING, I INT, J INT, T STRING, A ARRAY<INT>) WITH (
  KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE R (ID STRING PRIMARY KEY, G STRING, I INT, J INT, T STRING, A ARRAY<INT>) WITH (
  KAFKA_TOPIC='r', PARTITIONS=1);
CREATE STREAM S2 (K STRING KEY, I INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE D (ID STRING PRIMARY KEY, X INT) WITH (KAFKA_TOPIC='d', PARTITIONS=1);
"""
# name: its call over columns, their types, the constants, whether it may be used on tables
CALLS = {
    "COUNT": ("COUNT({0}.T)", "T", "STRING", (), True),
    "SUM": ("SUM({0}.I)", "I", "INT", (), True),
    "SUM_LIST": ("SUM_LIST({0}.A)", "A", "ARRAY<INT>", (), True),
    "AVG": ("AVG({0}.I)", "I", "INT", (), True),
    "MIN": ("MIN({0}.I)", "I", "INT", (), False),
    "MAX": ("MAX({0}.I)", "I", "INT", (), False),
    "COUNT_DISTINCT": ("COUNT_DISTINCT({0}.T)", "T", "STRING", (), False),
    "COLLECT_LIST": ("COLLECT_LIST({0}.I)", "I", "INT", (), True),
    "COLLECT_SET": ("COLLECT_SET({0}.I)", "I", "INT", (), False),
    "HISTOGRAM": ("HISTOGRAM({0}.T)", "T", "STRING", (), True),
    "TOPK": ("TOPK({0}.I, 2)", "I", "INT", (2,), False),
    "TOPKDISTINCT": ("TOPKDISTINCT({0}.I, 2)", "I", "INT", (2,), False),
    "EARLIEST_BY_OFFSET": ("EARLIEST_BY_OFFSET({0}.I)", "I", "INT", (), False),
    "LATEST_BY_OFFSET": ("LATEST_BY_OFFSET({0}.I, 2)", "I", "INT", (2,), False),
    "ATTR": ("ATTR({0}.G)", "G", "STRING", (), True),
    "STDDEV_SAMP": ("STDDEV_SAMP({0}.I)", "I", "INT", (), True),
    "STDDEV_SAMPLE": ("STDDEV_SAMPLE({0}.I)", "I", "INT", (), True),
    "CORRELATION": ("CORRELATION({0}.I, {0}.J)", "I J", "INT; INT", (), True),
}
ROWS = [
    {"G": "g", "I": 3, "J": 1, "T": "x", "A": [1, 2]},
    {"G": "g", "I": 5, "J": 4, "T": "y", "A": [4]},
    {"G": "g", "I": None, "J": None, "T": None, "A": None},
    {"G": "g", "I": 4, "J": 2, "T": "x", "A": []},
    {"G": "g", "I": 3, "J": 9, "T": "z", "A": [7]},
]
ALL = pytest.mark.parametrize("name", CALLS)


def test_all_aggregates_are_here():
    known = {function.name for function in BUILTINS.all() if function.kind == "AGGREGATE"}
    assert set(CALLS) == known


def model(name, rows=ROWS):
    """What the aggregate makes of the rows, one by one."""
    _, columns, types, literals, _ = CALLS[name]
    factory, _ = aggregate(name, types, literals)
    values = [tuple(row[column] for column in columns.split()) for row in rows]
    return result(factory, fold(factory, values))


def queried(name, source, clauses, alias="S", *, feed="s", every=True):
    """The values that a query gives for the rows, the last per key."""
    settings = {"cache.max.bytes.buffering": "0"} if every else {}
    world = World(SOURCES, **settings)
    call = CALLS[name][0].format(alias)
    world.run(f"CREATE TABLE X AS SELECT {alias}.G AS G, {call} AS V FROM {source} {clauses};")
    world.feed("d", *((f"k{n}", {"X": n}, 0) for n in range(len(ROWS))))
    world.feed(feed, *((f"k{n}", row, n) for n, row in enumerate(ROWS)))
    assert world.runner.errors() == []
    latest = {record.key: record.value for record in world.topics.records["X"]}
    return [json.loads(value)["V"] for value in latest.values() if value is not None]


@pytest.mark.slow
@ALL
@pytest.mark.parametrize("every", [True, False])
def test_over_a_stream(name, every):
    assert queried(name, "S", "GROUP BY G", every=every) == [
        pytest.approx(model(name), nan_ok=True)
    ]


@pytest.mark.slow
@ALL
def test_over_windows(name):
    rows = queried(name, "S", "WINDOW TUMBLING (SIZE 3 MILLISECONDS) GROUP BY G")
    expected = [model(name, ROWS[:3]), model(name, ROWS[3:])]
    assert rows == [pytest.approx(value, nan_ok=True) for value in expected]


@pytest.mark.slow
@ALL
def test_over_sessions_that_merge(name):
    """The last row joins two sessions; what came first is first in both."""
    world = World(SOURCES, **{"cache.max.bytes.buffering": "0"})
    call = CALLS[name][0].format("S")
    world.run(
        f"CREATE TABLE X AS SELECT G, {call} AS V FROM S "
        "WINDOW SESSION (10 MILLISECONDS) GROUP BY G;"
    )
    times = [0, 1, 20, 21, 11]
    world.feed("s", *(("k", row, time) for row, time in zip(ROWS, times, strict=True)))
    assert world.runner.errors() == []
    latest = {record.key: record.value for record in world.topics.records["X"]}
    [value] = [json.loads(value)["V"] for value in latest.values() if value is not None]
    if name != "STDDEV_SAMP" and name != "STDDEV_SAMPLE":
        assert value == pytest.approx(model(name), nan_ok=True)
    else:
        assert value == pytest.approx(model(name), rel=1e-9)


@pytest.mark.slow
@ALL
def test_over_a_join_of_a_stream_with_a_table(name):
    rows = queried(name, "S JOIN D ON S.K = D.ID", "GROUP BY S.G")
    assert rows == [pytest.approx(model(name), nan_ok=True)]


@pytest.mark.slow
@ALL
def test_over_a_join_of_streams(name):
    rows = queried(name, "S JOIN S2 WITHIN 1 DAY ON S.K = S2.K", "GROUP BY S.G")
    assert rows == [pytest.approx(model(name), nan_ok=True)]


ON_TABLES = [name for name, call in CALLS.items() if call[-1]]


def changed(name, source, alias, clauses=""):
    """The last value for the rows of a table after rows came, changed and went."""
    world = World(SOURCES, **{"cache.max.bytes.buffering": "0"})
    call = CALLS[name][0].format(alias)
    world.run(
        f"CREATE TABLE X AS SELECT {alias}.G AS G, {call} AS V FROM {source} {clauses} "
        f"GROUP BY {alias}.G;"
    )
    world.feed("d", *((f"k{n}", {"X": n}, 0) for n in range(9)))
    other = {"G": "g", "I": 8, "J": 7, "T": "other", "A": [9]}
    for place, row in enumerate(ROWS):
        world.feed("r", (f"k{place}", other if place == 1 else row, place))
    world.feed("r", ("k7", other, 8), ("k1", ROWS[1], 9), ("k7", None, 10))
    assert world.runner.errors() == []
    return world.out("X")[-1][1]["V"]


def as_listed(value):
    return sorted(value, key=str) if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_TABLES)
@pytest.mark.parametrize("source", ["R", "R JOIN D ON R.ID = D.ID", "R LEFT JOIN D ON R.J = D.ID"])
def test_over_tables_and_their_joins(name, source):
    if "R.J" in source:
        source = source.replace("R.J", "CONCAT('k', CAST(R.J AS STRING))")
    rows = as_listed(changed(name, source, "R"))
    assert rows == pytest.approx(as_listed(model(name)), nan_ok=True)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ON_TABLES])
def test_aggregates_without_undo_are_refused_on_tables(name):
    error = World(SOURCES).refuse(
        f"CREATE TABLE X AS SELECT G, {CALLS[name][0].format('R')} AS V FROM R GROUP BY G;"
    )
    assert error.message == (
        f"The aggregation function {name} cannot be applied to a table source, only to a stream "
        "source."
    )


# --- Python's own, and failures


PYTHON = '''
from ksql.functions.udf import udaf


class Plain:
    def init(self):
        return []

    def step(self, state, value):
        if value == 13:
            raise ValueError("step")
        return [*state, value]

    def undo(self, state, value):
        if value == 26:
            raise ValueError("undo")
        return [each for each in state if each != value]

    def merge(self, first, second):
        if 39 in second:
            raise ValueError("merge")
        return first + second


class Growing(Plain):
    """Changes its states, whether that is declared or not."""

    def step(self, state, value):
        state.append(value)
        return state

    def undo(self, state, value):
        state.remove(value)
        return state

    def merge(self, first, second):
        first.extend(second)
        return first


given = {"params": ("INT v",), "returns": "ARRAY<INT>"}


@udaf(name="fussy", **given)
class Fussy(Plain):
    pass


@udaf(name="quiet", **given)
class Quiet(Growing):
    pass


@udaf(name="open_one", in_place=True, **given)
class OpenOne(Growing):
    pass


@udaf(name="picky", **given)
class Picky(Growing):
    """Shows only what has an even sum; counts 13 and its like as the others do."""

    def step(self, state, value):
        return [*state, value]

    def result(self, state):
        total = sum(state)
        state.clear()
        if total % 2:
            raise ValueError("odd")
        return [total]


@udaf(**given)
class No_undo:
    def init(self):
        return []

    def step(self, state, value):
        return [value]

    def merge(self, first, second):
        return second or first
'''
BESIDE = "QUIET(I) AS Q, OPEN_ONE(I) AS O, COLLECT_LIST(I) AS L, COUNT(*) AS C"


def python():
    library, problems = load_sources({"mine.py": PYTHON})
    assert not problems
    return Functions([*BUILTINS.all(), *library])


def rows_of(*numbers):
    return [{"G": "g", "I": number} for number in numbers]


def beside(*numbers):
    listed = list(numbers)
    return {"Q": listed, "O": listed, "L": listed, "C": len(listed), "F": listed}


@pytest.mark.parametrize("every", ["0", "1"])
@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 DAY)", "WINDOW SESSION (1 DAY)"])
@pytest.mark.parametrize("first", [True, False])
def test_a_step_that_fails_leaves_no_trace(every, window, first):
    world = World(SOURCES, functions=python(), **{"cache.max.bytes.buffering": every})
    items = f"FUSSY(I) AS F, {BESIDE}" if first else f"{BESIDE}, FUSSY(I) AS F"
    world.run(f"CREATE TABLE X AS SELECT G, {items} FROM S {window} GROUP BY G;")
    world.feed("s", *(("k", row, n) for n, row in enumerate(rows_of(13, 1, 13, 2, 13))))
    values = [json.loads(r.value) for r in world.topics.records["X"] if r.value is not None]
    assert values == [beside(1), beside(1, 2)]
    assert [message for _, message in world.runner.errors()] == ["step"] * 3


@pytest.mark.parametrize(
    ("changes", "messages", "left"),
    [
        ([("a", 13)], ["step"], (2, 26)),
        ([("a", 13), ("a", 5)], ["step"], (2, 26, 5)),
        ([("a", 13), ("a", 13), ("a", None)], ["step"] * 2, (2, 26)),
        ([("c", 13), ("c", 5)], ["step"], (1, 2, 26, 5)),
        ([("c", 13), ("c", None)], ["step"], (1, 2, 26)),
    ],
)
def test_a_row_of_a_table_whose_step_fails_does_not_count(changes, messages, left):
    """It is not taken back either: the neighbours count as if it had not been."""
    world = World(SOURCES, functions=python(), **{"cache.max.bytes.buffering": "0"})
    world.run(
        f"CREATE TABLE X AS SELECT G, {BESIDE}, SUM(I) AS S, FUSSY(I) AS F FROM R GROUP BY G;"
    )
    changed_last(world, [("a", 1), ("b", 2), ("u", 26), *changes])
    assert [text for _, text in world.runner.errors()] == messages
    assert world.out("X")[-1][1] == {**beside(*left), "S": sum(left)}
    without = [number for number in left if number != 2]
    assert changed_last(world, [("b", None)]) == {**beside(*without), "S": sum(without)}


@pytest.mark.parametrize(
    ("changes", "messages", "left", "kept"),
    [
        ([("u", None)], ["undo"], (1, 2), (1, 2, 26)),
        ([("u", 3)], ["undo"], (1, 2, 3), (1, 2, 26, 3)),
        ([("u", 3), ("u", 4), ("u", None)], ["undo"], (1, 2), (1, 2, 26)),
        ([("u", 13), ("u", 4)], ["undo", "step"], (1, 2, 4), (1, 2, 26, 4)),
    ],
)
def test_row_that_one_aggregate_cannot_undo_is_undone_by_the_others(changes, messages, left, kept):
    world = World(SOURCES, functions=python(), **{"cache.max.bytes.buffering": "0"})
    world.run(
        f"CREATE TABLE X AS SELECT G, {BESIDE}, SUM(I) AS S, FUSSY(I) AS F FROM R GROUP BY G;"
    )
    last = changed_last(world, [("a", 1), ("b", 2), ("u", 26), *changes])
    assert [text for _, text in world.runner.errors()] == messages
    assert last == {**beside(*left), "S": sum(left), "F": list(kept)}


def test_value_beyond_a_full_histogram_is_undone_by_the_others():
    world = World(SOURCES, **{"cache.max.bytes.buffering": "0"})
    world.run("CREATE TABLE X AS SELECT G, COUNT(*) AS C, HISTOGRAM(T) AS H FROM R GROUP BY G;")
    world.feed("r", *((f"k{n}", {"G": "g", "T": f"t{n}"}, 0) for n in range(1001)))
    for text in ("t2000", "t2001"):
        world.feed("r", ("k1000", {"G": "g", "T": text}, 1))
    world.feed("r", ("k1000", None, 1))
    last = world.out("X")[-1][1]
    assert (last["C"], len(last["H"])) == (1000, 1000)


def changed_last(world, changes):
    """Feed the changes, and give the last row."""
    for key, number in changes:
        world.feed("r", (key, None if number is None else rows_of(number)[0], 0))
    return world.out("X")[-1][1]


def test_row_that_failed_in_another_group_is_not_undone_from_it():
    world = World(SOURCES, functions=python(), **{"cache.max.bytes.buffering": "0"})
    world.run(
        "CREATE TABLE X AS SELECT G, SUM(I) AS S, COUNT(*) AS C, FUSSY(I) AS F FROM R GROUP BY G;"
    )
    for key, group, number in (("a", "g", 1), ("b", "h", 2), ("a", "h", 13), ("a", "g", 5)):
        world.feed("r", (key, {"G": group, "I": number}, 0))
    assert world.last("X") == {
        "g": {"S": 5, "C": 1, "F": [5]},
        "h": {"S": 2, "C": 1, "F": [2]},
    }


def test_a_merge_that_fails_leaves_no_trace():
    world = World(SOURCES, functions=python(), **{"cache.max.bytes.buffering": "0"})
    world.run(
        f"CREATE TABLE X AS SELECT G, {BESIDE}, FUSSY(I) AS F FROM S "
        "WINDOW SESSION (10 MILLISECONDS) GROUP BY G;"
    )
    rows = [(1, 0), (39, 20), (5, 10), (6, 25)]
    world.feed("s", *(("k", rows_of(number)[0], time) for number, time in rows))
    values = [json.loads(r.value) for r in world.topics.records["X"] if r.value is not None]
    assert values == [beside(1), beside(39), beside(39, 6)]
    assert [text for _, text in world.runner.errors()] == ["merge"]


def batchwise(world, batches):
    """Feed S with batches; the values of X and the messages logged.

    It is the mode that emits one change per group and batch.
    """
    program, log = program_of(plan_of(world.query("X")), world.engine.functions), []
    stores, values = [MemoryStore()], []
    for batch in batches:
        rows = [json.dumps(row).encode() for row in batch]
        count = len(rows)
        given = ["s"] * count, [0] * count, list(range(count)), [0] * count, [b"k"] * count, rows
        results = through(program, RawBatch(*given), stores, lambda *entry: log.append(entry[1]))
        values += [json.loads(value) for _, value, _, _ in results]
    return values, log


def test_a_failure_costs_one_record_however_many_come_in_a_batch():
    """Records of a batch are not merged."""
    world = World(SOURCES, functions=python())
    world.run(f"CREATE TABLE X AS SELECT G, {BESIDE}, FUSSY(I) AS F FROM S GROUP BY G;")
    batches = [rows_of(*numbers) for numbers in ((1, 13, 2), (39, 5, 13, 6), (39, 39))]
    values, log = batchwise(world, batches)
    assert values == [beside(1, 2), beside(1, 2, 39, 5, 6), beside(1, 2, 39, 5, 6, 39, 39)]
    assert log == ["step", "step"]


def test_a_decimal_sum_overflows_by_its_records_not_by_its_batches():
    world = World(SOURCES)
    world.run(
        "CREATE TABLE X AS SELECT G, SUM(CAST(I AS DECIMAL(3, 1))) AS S, COUNT(*) AS C "
        "FROM S GROUP BY G;"
    )
    values, log = batchwise(world, [rows_of(-95), rows_of(60, 60)])
    assert values == [{"S": -95.0, "C": 1}, {"S": 25.0, "C": 3}]
    assert log == []


def shows(*numbers):
    return {**beside(*numbers), "F": [sum(numbers)]}


def picky(window, every, having="", final=""):
    world = World(SOURCES, functions=python(), **{"cache.max.bytes.buffering": every})
    world.run(
        f"CREATE TABLE X AS SELECT G, {BESIDE}, PICKY(I) AS F FROM S {window} GROUP BY G "
        f"{having} {final};"
    )
    return world


def written(world):
    records = world.topics.records.get("X", [])
    return [None if each.value is None else json.loads(each.value) for each in records]


@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 DAY)", "WINDOW SESSION (1 DAY)"])
def test_a_row_whose_result_fails_is_left_out_and_its_record_counts(window):
    world = picky(window, "0")
    for numbers in ((2, 1), (3,), (1,), (1,)):
        world.feed("s", *(("k", row, 0) for row in rows_of(*numbers)))
    assert written(world) == [shows(2), shows(2, 1, 3), shows(2, 1, 3, 1, 1)]
    assert [message for _, message in world.runner.errors()] == ["odd"] * 2


@pytest.mark.parametrize("every", ["0", "1"])
@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 DAY)", "WINDOW SESSION (1 DAY)"])
def test_under_having_a_row_whose_result_fails_does_not_pass(every, window):
    """What passed before is deleted once; then nobody knows a row of the group."""
    world = picky(window, every, having="HAVING COUNT(*) < 5")
    for number in (2, 1, 2, 1, 2):
        world.feed("s", ("k", rows_of(number)[0], 0))
    assert written(world) == [shows(2), None, shows(2, 1, 2, 1), None]
    assert [message for _, message in world.runner.errors()] == ["odd"] * 2


@pytest.mark.parametrize("having", ["", "HAVING COUNT(*) > 0"])
@pytest.mark.parametrize(
    "window",
    [
        "WINDOW TUMBLING (SIZE 10 MILLISECONDS, RETENTION 1 DAY, GRACE PERIOD 0 MILLISECONDS)",
        "WINDOW SESSION (10 MILLISECONDS, RETENTION 1 DAY, GRACE PERIOD 0 MILLISECONDS)",
    ],
)
def test_a_window_whose_result_fails_closes_without_a_row(window, having):
    world = picky(window, "0", having, "EMIT FINAL")
    for number, time in ((2, 0), (1, 0), (4, 20), (2, 40), (2, 40), (1, 60)):
        world.feed("s", ("k", rows_of(number)[0], time))
    assert written(world) == [shows(4), shows(2, 2)]
    assert [message for _, message in world.runner.errors()] == ["odd"]


def test_an_aggregate_of_python_without_undo_is_refused_on_tables():
    world = World(SOURCES, functions=python())
    error = world.refuse("CREATE TABLE X AS SELECT G, NO_UNDO(I) AS V FROM R GROUP BY G;")
    assert error.message == (
        "The aggregation function NO_UNDO cannot be applied to a table source, only to a stream "
        "source."
    )
