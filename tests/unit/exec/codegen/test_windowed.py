"""Records of windows combined before the exchange: nobody can tell from the results or the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.records import Headers
from ksql.exec.codegen.windowed import WindowedIngest
from ksql.exec.dataflow import stages
from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.ingest import KeyedIngest
from ksql.exec.dataflow.stages import Combining
from ksql.exec.operators import panes
from ksql.functions.registry import BUILTINS
from ksql.spark.task.tasklog import TaskLog
from tests.cuts.cases import Event, pieces
from tests.cuts.run import Results, ingested, raw, staged
from tests.unit.spark.task.test_pages import DictBackend
from tests.unit.world import World

PARTITIONS = 3
SETUP = f"""
CREATE STREAM S (K STRING KEY, G STRING, V INT, D DOUBLE, A ARRAY<INT>)
  WITH (KAFKA_TOPIC='S', PARTITIONS={PARTITIONS});
CREATE STREAM TIMED (K STRING KEY, G STRING, V INT, D DOUBLE, A ARRAY<INT>, T BIGINT)
  WITH (KAFKA_TOPIC='TIMED', PARTITIONS={PARTITIONS}, TIMESTAMP='T');
"""
MANY = (
    "COUNT(*) AS C, SUM(V) AS S, MIN(V) AS L, MAX(G) AS H, AVG(V) AS M, COUNT_DISTINCT(G) AS N, "
    "CORRELATION(V, V) AS R"
)


def tumbling(grace, more=""):
    return f"WINDOW TUMBLING (SIZE 4 SECONDS{more}, GRACE PERIOD {grace})"


def hopping(grace):
    return f"WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 4 SECONDS, GRACE PERIOD {grace})"


QUERIES = {
    "tumbling": f"SELECT K, {MANY} FROM S {tumbling('4 SECONDS')} GROUP BY K",
    "no grace": f"SELECT K, COUNT(*) AS C FROM S {tumbling('0 SECONDS')} GROUP BY K",
    "uneven grace": f"SELECT K, SUM(V) AS C FROM S {tumbling('3500 MILLISECONDS')} GROUP BY K",
    "hopping": f"SELECT K, {MANY} FROM S {hopping('4 SECONDS')} GROUP BY K",
    "uneven hops": f"SELECT K, COUNT(V) AS C FROM S {hopping('2500 MILLISECONDS')} GROUP BY K",
    "moved": f"SELECT G, {MANY} FROM S {tumbling('1 SECOND')} GROUP BY G",
    "moved hops": f"SELECT G, COUNT(*) AS C FROM S {hopping('0 SECONDS')} GROUP BY G",
    "two columns": f"SELECT G, V, COUNT(*) AS C FROM S {tumbling('1 SECOND')} GROUP BY G, V",
    "doubles": f"SELECT D, COUNT(*) AS C FROM S {tumbling('1 SECOND')} GROUP BY D",
    "packed": f"SELECT A, SUM(V) AS C FROM S {tumbling('1 SECOND')} GROUP BY A",
    "where": f"SELECT G, COUNT(*) AS C FROM S {tumbling('2 SECONDS')} WHERE V > 0 GROUP BY G",
    "having": (
        f"SELECT K, SUM(V) AS C FROM S {tumbling('2 SECONDS')} GROUP BY K HAVING SUM(V) > 1"
    ),
    "timed": f"SELECT K, COUNT(*) AS C FROM TIMED {tumbling('2 SECONDS')} GROUP BY K",
    "final": f"SELECT K, {MANY} FROM S {tumbling('4 SECONDS')} GROUP BY K EMIT FINAL",
    "final hops": f"SELECT K, SUM(V) AS C FROM S {hopping('1 SECOND')} GROUP BY K EMIT FINAL",
    "final moved": (
        f"SELECT G, COUNT(*) AS C FROM S {tumbling('500 MILLISECONDS')} GROUP BY G EMIT FINAL"
    ),
    "final forgotten": (
        "SELECT K, COUNT(*) AS C FROM S "
        f"{tumbling('4 SECONDS', ', RETENTION 8 SECONDS')} GROUP BY K EMIT FINAL"
    ),
}


def apart(*_given):
    return Combining("")


@cache
def planned(name):
    options = " WITH (KEY_FORMAT='JSON')" if name in ("two columns", "packed", "doubles") else ""
    return World(SETUP, f"CREATE TABLE X{options} AS {QUERIES[name]};").plan("X")


@cache
def programs(name):
    """The program of a query, and one that combines nothing."""
    combined = writing(planned(name), BUILTINS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "combining", apart)
        return combined, writing(planned(name), BUILTINS)


@st.composite
def events(draw, topic):
    """Records out of order; times are often those at which something begins or closes."""
    drawn = []
    partitions = draw(st.sampled_from((1, 2, PARTITIONS + 2)))
    now = [draw(st.integers(0, 12)) * 500 for _ in range(partitions)]
    for _ in range(draw(st.integers(20, 60))):
        partition = draw(st.integers(0, partitions - 1))
        now[partition] += draw(st.sampled_from((0, 0, 0, 500, 500, 1000, 3000)))
        back = draw(st.sampled_from((0, 0, 500, 1000, 2500, 4000, 7000, 12000)))
        time = max(0, now[partition] - back + draw(st.sampled_from((0, 0, -1, 1))))
        row = {
            "G": draw(st.sampled_from(("a", "a", "b", "cd", None))),
            "V": draw(st.sampled_from((-1, 1, 2, None, 2**31 - 1))),
            "D": draw(st.sampled_from((0.0, -0.0, 1.5, None))),
            "A": draw(st.sampled_from(([1], [1, 2], None))),
        }
        if topic == "TIMED":
            row["T"] = time
        kind = draw(st.sampled_from(("row",) * 20 + ("dead", "broken")))
        drawn.append(
            Event(
                topic,
                partition,
                draw(st.sampled_from(("a", "a", "a", "b", None))),
                None if kind == "dead" else row,
                time,
                broken=kind == "broken",
                cut=draw(st.integers(0, 14)) == 0,
            )
        )
    return drawn


def road(program, batches, buckets):
    """What each micro-batch gives, by way of chunks as on Spark."""
    backends = [DictBackend() for _ in range(buckets)]
    positions: Counter[tuple[str, int]] = Counter()
    for batch in batches:
        results = Results()
        chunks = list(ingested(program, raw(batch, positions), buckets, results))
        assert not list(staged(program, 0, backends, chunks, results))
        yield results


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
def test_the_path_without_combining_gives_the_same(name, data):
    combined, plain = programs(name)
    batches = list(pieces(data.draw(events(combined.topics[0]))))
    buckets = data.draw(st.integers(1, PARTITIONS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panes, "_ENOUGH", data.draw(st.sampled_from((1, 6, 5000))))
        for one, other in zip(
            road(combined, batches, buckets), road(plain, batches, buckets), strict=True
        ):
            assert Counter(one.records) == Counter(other.records)
            assert rows_of(one) == rows_of(other)


def rows_of(results):
    return Counter((operator, message) for operator, message, _ in results.errors)


@pytest.mark.parametrize("name", QUERIES)
def test_these_queries_are_combined(name):
    combined, plain = programs(name)
    assert isinstance(combined.ingest(), WindowedIngest)
    assert isinstance(plain.ingest(), KeyedIngest)
    assert combined.combined_windows
    assert not plain.combined_windows


def windowed(text, *events):
    """What the ingest of a query gives for the records of one partition."""
    world = World(SETUP, f"CREATE TABLE X AS {text};")
    ingest, log = writing(world.plan("X"), BUILTINS).ingest(), Results()
    out = list(ingest.add(raw(events, Counter()), log.log))
    return [*out, *ingest.finish()], log


def at(time, key="a", group="g"):
    return Event("S", 0, key, {"G": group, "V": 2}, time)


def test_records_of_a_group_and_window_are_one_state_in_the_place_of_the_first():
    results, _ = windowed(QUERIES["uneven grace"], at(4100), at(5000, "b"), at(4300), at(4200))
    assert [(r.row, r.old, r.timestamp, r.offset, r.sequence_key) for r in results] == [
        (None, (4300, 6, 3), 4300, 0, 4100),
        (None, (5000, 2, 1), 5000, 1, 5000),
    ]


def test_times_by_which_other_windows_close_are_states_of_their_own():
    """With 3.5 seconds of grace a window closes half a second before the next one ends."""
    results, _ = windowed(QUERIES["uneven grace"], at(7400), at(7499), at(7500), at(7600))
    assert [(r.old, r.offset) for r in results] == [((7499, 4, 2), 0), ((7600, 4, 2), 2)]


def test_records_that_the_batch_may_make_late_stay_uncombined():
    results, _ = windowed(QUERIES["no grace"], at(3000), at(4000, None), at(3999), at(4001))
    assert [(r.row, r.old, r.offset, r.sequence_key) for r in results] == [
        ((), None, 2, 4000),
        (None, (3000, 1, 1), 0, 3000),
        (None, (4001, 1, 1), 3, 4001),
    ]


def test_where_most_records_have_a_state_of_their_own_the_others_leave_as_they_are(monkeypatch):
    monkeypatch.setattr(panes, "_ENOUGH", 3)
    ingest, log = programs("tumbling")[0].ingest(), Results()
    positions: Counter[tuple[str, int]] = Counter()
    blocks = [[at(0), at(1)], [at(2, "b"), at(3, "c")], [at(4), at(5)]]
    out = [list(ingest.add(raw(block, positions), log.log)) for block in blocks]
    assert [[(r.offset, r.old is None) for r in records] for records in out] == [
        [],
        [(0, False), (2, False), (3, False)],
        [(4, True), (5, True)],
    ]
    assert list(ingest.finish()) == []


def test_a_state_that_is_late_counts_as_all_of_its_records():
    program, _ = programs("hopping")
    late = [at(8000), at(8001), at(8002, "b")]
    *_, results = road(program, [[at(40_000)], late], 1)
    log = TaskLog()
    for entry in results.errors:
        log(*entry)
    windows = [f"late record for the window starting at {start}" for start in (0, 4000, 8000)]
    assert [(message, row) for _, message, row in results.errors] == [
        (message, (key,)) for key in "aab" for message in windows
    ]
    assert log.untold() == 3
    count, worst = log.late_untold()
    assert (count, worst.behind_ms) == (3, 40_000 - 8001)  # a state has its latest record's time


def test_records_without_arguments_that_are_late_count_each():
    _, plain = programs("no grace")
    *_, results = road(plain, [[at(40_000)], [at(0), at(1)]], 1)
    log = TaskLog()
    for entry in results.errors:
        log(*entry)
    assert log.untold() == 2


def test_from_headers_on_each_record_goes_by_itself():
    """A result has the headers of the last record of its group."""
    ingest, log = programs("tumbling")[0].ingest(), Results()
    given: Headers = [("h", b"x")]
    positions: Counter[tuple[str, int]] = Counter()
    plain = raw([at(4000), at(4001)], positions)
    headed = raw([at(4002), at(4003)], positions)._replace(headers=[given, None])
    after = raw([at(4004)], positions)
    out = [record for each in (plain, headed, after) for record in ingest.add(each, log.log)]
    assert [(r.offset, r.headers, r.old) for r in out] == [
        (2, given, None),
        (3, None, None),
        (4, None, None),
    ]
    assert [record.old[-1] for record in ingest.finish()] == [2]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND)", "combined by window"),
        ("COUNT(*) AS C FROM S", "combined by group"),
        ("LATEST_BY_OFFSET(V) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND)", "LATEST_BY_OFFSET(V)"),
        ("SUM(D) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND)", "not combined"),
        ("COUNT(*) AS C FROM S WINDOW SESSION (1 SECOND)", "sessions grow record by record"),
    ],
)
def test_explain_says_whether_records_are_combined(query, words):
    world = World(SETUP, f"CREATE TABLE X AS SELECT K, {query} GROUP BY K;")
    [explained] = world.run(f"EXPLAIN {world.query('X').id};")
    [line] = [
        line
        for line in explained.query_description.topology.split("\n")
        if "before the exchange" in line
    ]
    assert words in line
    assert ("not combined" in line) != words.startswith("combined")


def test_plans_of_earlier_versions_are_not_combined():
    old = writing(replace(planned("tumbling"), lanes=0), BUILTINS)
    assert isinstance(old.ingest(), KeyedIngest)
