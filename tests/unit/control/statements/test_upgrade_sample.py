"""EXPLAIN of a replacement with a sample: the old and the new plan over the last records."""

from __future__ import annotations

import pytest

from ksql.control.access import Grants, Pattern, Requester, Right, Rule, acting
from ksql.control.statements import upgrade_sample
from ksql.control.statements.services import Request
from ksql.control.statements.upgrade_sample import LONGEST_S, MOST_SHOWN, SAMPLE, sampled
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.exec.dataflow import muted
from tests.unit.world import StillMonitor, World

RIDES = "CREATE STREAM R (B STRING KEY, D STRING, M INT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);"
COUNT = "CREATE TABLE T AS SELECT B, COUNT(*) AS N FROM R GROUP BY B;"
FAR = "CREATE STREAM F AS SELECT B, M FROM R WHERE M > 10;"


class Ends(StillMonitor):
    """Knows where the topics of a world end."""

    def __init__(self, topics):
        self._topics = topics

    def ends(self, topics):
        return {(topic, 0): (0, len(self._topics.records.get(topic, ()))) for topic in topics}


def world_of(*scripts, rides=3):
    world = World(RIDES, *scripts)
    world.services.monitor = Ends(world.topics)
    world.feed("r", *(("ab"[n % 2], {"D": f"d{n}", "M": n * 10}, n) for n in range(rides)))
    return world


def sample(world, text, count=100):
    [answer] = world.run(f"EXPLAIN {text}", **{SAMPLE: str(count)})
    return answer.query_description.upgrade.sample


def rows(report):
    return [(row.key, row.old, row.new) for row in report.rows]


def replaced(select, kind="TABLE T", mode="rebuild"):
    return f"CREATE OR REPLACE {kind} WITH (REPLACE_MODE='{mode}') AS SELECT {select};"


SUM = replaced("B, SUM(CAST(M AS BIGINT)) AS N FROM R GROUP BY B")


def test_no_sample_unless_it_is_wanted():
    assert sample(world_of(COUNT), SUM, 0) is None


@pytest.mark.parametrize(("rights", "seen"), [(["define"], False), (["define", "read"], True)])
def test_who_may_define_a_table_and_not_read_it_sees_no_rows_of_it(rights, seen):
    world = world_of(COUNT, "CREATE STREAM P (B STRING KEY) WITH (KAFKA_TOPIC='p', PARTITIONS=1);")
    table, public = Pattern("source", "T"), Pattern("source", "P")
    rules = [Rule(Right(right), (table,)) for right in rights]
    grants = Grants((*rules, Rule(Right.READ, (public,))))
    with acting(Requester("ada", grants)):
        report = sample(world, replaced("B, COUNT(*) AS N FROM P GROUP BY B"))
    assert bool(report.rows) is seen
    assert ("may not read T" in (report.trouble or "")) is not seen


def test_rows_of_a_table_that_differ():
    report = sample(world_of(COUNT), SUM)
    assert rows(report) == [
        ({"B": "a"}, {"N": "2"}, {"N": "20"}),
        ({"B": "b"}, {"N": "1"}, {"N": "10"}),
    ]
    assert (report.records, report.complete, report.different) == (3, True, 2)
    assert (report.old_rows, report.new_rows) == (3, 3)


def test_only_the_last_records_count():
    report = sample(world_of(COUNT), SUM, 1)
    assert rows(report) == [({"B": "a"}, {"N": "1"}, {"N": "20"})]


def test_equal_rows_do_not_differ():
    report = sample(world_of(COUNT), replaced("B, COUNT(*) AS N FROM R GROUP BY B"))
    assert (report.different, report.rows, report.complete) == (0, (), True)


def test_keys_of_another_grouping():
    report = sample(world_of(COUNT, rides=1), replaced("D AS B, COUNT(*) AS N FROM R GROUP BY D"))
    assert rows(report) == [({"B": "a"}, {"N": "1"}, None), ({"B": "d0"}, None, {"N": "1"})]


def test_columns_of_one_plan_are_shown_and_not_compared():
    text = replaced("B, COUNT(*) AS N, MAX(M) AS X FROM R GROUP BY B", mode="in_place")
    assert sample(world_of(COUNT), text).different == 0
    text = replaced("B, COUNT(*) AS N, MAX(M) AS X FROM R WHERE M > 5 GROUP BY B")
    assert rows(sample(world_of(COUNT), text)) == [({"B": "a"}, {"N": "2"}, {"N": "1", "X": "20"})]


def test_results_of_a_stream_are_compared_record_by_record():
    text = replaced("B, M + 1 AS M FROM R WHERE M < 15", "STREAM F")
    assert rows(sample(world_of(FAR), text)) == [
        ({"B": "a"}, None, {"M": "1"}),
        ({"B": "b"}, None, {"M": "11"}),
        ({"B": "a"}, {"M": "20"}, None),
    ]


def test_windows_are_parts_of_the_key():
    hourly = "B, COUNT(*) AS N FROM R WINDOW TUMBLING (SIZE {} MILLISECONDS) {} GROUP BY B"
    world = world_of(f"CREATE TABLE W AS SELECT {hourly.format(2, '')};")
    text = replaced(hourly.format(2, "WHERE M > 5"), "TABLE W")
    window = {"WINDOWSTART": "0", "WINDOWEND": "2"}
    assert rows(sample(world, text)) == [({"B": "a", **window}, {"N": "1"}, None)]


def test_no_more_than_some_rows_are_shown():
    report = sample(world_of(FAR, rides=50), replaced("B, -M AS M FROM R WHERE M > 10", "STREAM F"))
    assert (report.different, len(report.rows)) == (48, MOST_SHOWN)


def test_a_refused_replacement_is_compared_as_the_rebuild_that_it_could_be():
    in_place = SUM.replace("'rebuild'", "'in_place'")
    assert sample(world_of(COUNT), in_place).different == 2


def test_no_sample_where_no_mode_is_possible():
    assert (
        sample(world_of(COUNT), replaced("B, MAX(D) AS N FROM R GROUP BY B", mode="in_place"))
        is None
    )


def test_nothing_is_written_or_kept():
    world = world_of(COUNT)
    before = {name: list(records) for name, records in world.topics.records.items()}
    running = world.runner.running[world.query("T").version]
    state, catalog = repr(running.stores[0].__dict__), world.catalog
    sample(world, SUM)
    assert world.topics.records == before
    assert repr(running.stores[0].__dict__) == state
    assert world.catalog == catalog


def prepared(world, text=SUM):
    return world.engine.dry_run(world.parse(text), text, world.settings)


def request_of(world, count=100):
    return Request(world.services, Settings({**world.settings.server, SAMPLE: str(count)}))


def test_the_time_is_bounded():
    world = world_of(COUNT)
    now = iter([0.0, 0.0, LONGEST_S, LONGEST_S + 1])
    report = sampled(prepared(world), request_of(world), lambda: next(now))
    assert (report.records, report.complete) == (2, False)


def test_records_that_could_not_all_be_read_are_no_whole_sample():
    world = world_of(COUNT)
    world.services.records.read_some = lambda spans: (world.services.records.read(spans)[:2], False)
    report = sample(world, SUM)
    assert (report.records, report.complete) == (2, False)


def test_results_of_other_keys_are_shown_under_their_own():
    world = world_of("CREATE STREAM K AS SELECT B, M FROM R PARTITION BY B;", rides=1)
    text = replaced("UCASE(B) AS B, M FROM R PARTITION BY UCASE(B)", "STREAM K")
    assert rows(sample(world, text)) == [
        ({"B": "a"}, {"M": "0"}, None),
        ({"B": "A"}, None, {"M": "0"}),
    ]


def test_the_rows_are_bounded(monkeypatch):
    monkeypatch.setattr(upgrade_sample, "MOST_ROWS", 3)
    report = sample(world_of(COUNT), SUM)
    assert (report.records, report.complete) == (2, False)


@pytest.mark.parametrize(
    ("query", "text", "read"),
    [
        (COUNT, replaced("B, COUNT(*) AS N, MAX(RPAD(B, 9000, 'x')) AS X FROM R GROUP BY B"), 1),
        (FAR, replaced("B, M, RPAD(B, 30000, 'x') AS X FROM R WHERE M > 10", "STREAM F"), 2),
        (FAR, replaced("B, M, RPAD(B, 9000, 'x') AS X FROM R WHERE M > 10", "STREAM F"), 3),
    ],
)
def test_the_bytes_of_rows_are_bounded(monkeypatch, query, text, read):
    """Those of all keys of a table, and those of one record of a stream."""
    monkeypatch.setattr(upgrade_sample, "ROW_BYTES", 15_000)
    report = sample(world_of(query), text)
    assert (report.records, report.complete, report.trouble) == (read, read == 3, "")


def test_results_of_a_stream_are_not_kept(monkeypatch):
    held = []
    shown = upgrade_sample._SampleRun._shown

    def looked_at(walk, old, new):
        held.append(walk.read)
        return shown(walk, old, new)

    monkeypatch.setattr(upgrade_sample._SampleRun, "_shown", looked_at)
    sample(world_of(FAR, rides=5), replaced("B, -M AS M FROM R WHERE M > 10", "STREAM F"))
    assert held == [3, 4, 5]  # each as soon as its record was read


def test_a_plan_that_fails_ends_the_sample(monkeypatch):
    world = world_of(COUNT)

    def overrun(*_given):
        raise KsqlError("it took too long")

    monkeypatch.setattr(upgrade_sample, "through", overrun)
    report = sample(world, SUM)
    assert (report.records, report.complete, report.trouble) == (0, False, "it took too long")


def test_a_plan_that_cannot_run_is_reported(monkeypatch):
    world = world_of(COUNT)

    def broken(*_given):
        raise KsqlError("no such function")

    monkeypatch.setattr(muted, "answering_program", broken)
    assert sample(world, SUM).trouble == "no such function"


@pytest.mark.parametrize("times", [(1, 5, 3), (5, 1, 3)])
def test_records_of_a_partition_keep_their_order(times):
    """The last row of a key is that of the last offset, whatever the times are."""
    world = World(RIDES.replace("STREAM", "TABLE").replace("KEY", "PRIMARY KEY"))
    world.run("CREATE TABLE L AS SELECT B, M FROM R;")
    world.services.monitor = Ends(world.topics)
    world.feed("r", *(("a", {"M": n}, time) for n, time in enumerate(times)))
    text = replaced("B, M + 1 AS M FROM R", "TABLE L")
    assert rows(sample(world, text)) == [({"B": "a"}, {"M": "2"}, {"M": "3"})]
