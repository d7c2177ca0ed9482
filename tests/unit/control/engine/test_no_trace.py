"""A replacement that does not succeed has never been: no row, record or schema is left of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ksql.control.engine.ports import MemoryLog
from ksql.control.engine.replacement_locks import ChangedMeanwhile
from ksql.core.errors import KsqlError, ServerError
from ksql.exec.memory.driver import MemoryRunner
from ksql.formats.schema_registry import MemoryRegistry
from tests.unit.world import World

PATIENCE_S = 30
SOURCES = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""
STREAM = "CREATE STREAM U AS SELECT K, A FROM S;"
FILTERED_STREAM = "CREATE OR REPLACE STREAM U AS SELECT K, A FROM S WHERE A > 2;"
TABLE = "CREATE TABLE U AS SELECT ID, A FROM T WHERE A > 5;"
NARROW_TABLE = "CREATE OR REPLACE TABLE U AS SELECT ID, A FROM T WHERE A > 50;"
WIDE_TABLE = "CREATE OR REPLACE TABLE U AS SELECT ID, A FROM T WHERE A > 0;"


class StrikingLog(MemoryLog):
    """A log before whose next append something happens; then the append may fail."""

    def __init__(self):
        super().__init__()
        self.strike = None
        self.fails = False

    @contextmanager
    def begin(self):
        with super().begin() as transaction:
            usual = transaction.append

            def append(command):
                strike, self.strike = self.strike, None
                if strike is not None:
                    strike()
                if self.fails:
                    self.fails = False
                    raise ServerError("Kafka went away")
                usual(command)

            transaction.append = append  # type: ignore[method-assign]  # a stand-in
            yield transaction


class SlowRunner(MemoryRunner):
    """A runner that waits when the old plan has ended."""

    def __init__(self, topics):
        super().__init__(topics)
        self.waits, self.may_go_on = threading.Event(), threading.Event()

    def prepare_switch(self, old, new, *, half_written=False):
        switch = super().prepare_switch(old, new)
        self.waits.set()
        assert self.may_go_on.wait(PATIENCE_S)
        return switch


def lost_at_the_append(script, text, meanwhile, **settings):
    """A world in which records came while the statement was written, which failed."""
    log = StrikingLog()
    world = World(SOURCES, script, log=log, **settings)
    log.fails = True
    log.strike = lambda: meanwhile(world)
    with pytest.raises(ServerError, match="Kafka went away"):
        world.execute(text)
    world.drain()
    return world


def test_no_record_that_only_the_new_plan_drops_is_lost():
    def meanwhile(world):
        world.feed("s", *(("k", {"A": a}, a) for a in (1, 2, 3)))

    world = lost_at_the_append(STREAM, FILTERED_STREAM, meanwhile)
    world.feed("s", ("k", {"A": 4}, 4))
    assert [value["A"] for _, value, _ in world.out("U")] == [1, 2, 3, 4]


def test_no_row_that_only_the_new_plan_lets_pass_stays():
    world = lost_at_the_append(
        TABLE, WIDE_TABLE, lambda it: it.feed("t", ("a", {"A": 3}, 1), ("b", {"A": 9}, 1))
    )
    world.feed("t", ("a", None, 2), ("b", None, 2))
    assert {key: value for key, value in world.last("U").items() if value is not None} == {}


def test_no_row_that_only_the_new_plan_deletes_is_gone():
    world = lost_at_the_append(TABLE, NARROW_TABLE, lambda it: it.feed("t", ("a", {"A": 9}, 2)))
    assert world.last("U") == {"a": {"A": 9}}


def test_an_alter_while_it_waits_leaves_the_table_whole():
    world = World(SOURCES, TABLE, runner=SlowRunner)
    rows = [(f"k{n}", {"A": 10 + n}, 1) for n in range(30)]
    world.feed("t", *rows)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(world.execute, NARROW_TABLE.replace("50", "5000"))
        assert world.runner.waits.wait(PATIENCE_S)
        world.execute("ALTER TABLE T ADD COLUMN B BIGINT;")
        world.feed("t", *((key, {"A": value["A"] + 1}, 2) for key, value, _ in rows))
        world.runner.may_go_on.set()
        assert isinstance(future.exception(PATIENCE_S), ChangedMeanwhile)
    world.drain()
    assert world.last("U") == {f"k{n}": {"A": 11 + n} for n in range(30)}


def test_a_plan_that_fails_over_what_waits_is_refused_and_the_old_one_runs_over_it(monkeypatch):
    world = World(SOURCES, STREAM)
    world.write("s", b"k", b'{"A": 1}', 1)

    def fail(*_args):
        raise ServerError("it cannot be written")

    monkeypatch.setattr("ksql.exec.memory.driver.muted.results", fail)
    with pytest.raises(KsqlError, match="it cannot be written"):
        world.execute(FILTERED_STREAM)
    world.drain()
    assert [value for _, value, _ in world.out("U")] == [{"A": 1}]


# --- schemas


AVRO = "CREATE STREAM U WITH (VALUE_FORMAT='AVRO') AS SELECT K, A FROM S;"
AGAIN = "CREATE OR REPLACE STREAM U WITH (VALUE_FORMAT='AVRO') AS SELECT K, A, {} AS C FROM S;"
WITH_TEXT, WITH_NUMBER = AGAIN.format("K + 'x'"), AGAIN.format("1")


@pytest.mark.parametrize("paused", [False, True])
def test_an_attempt_that_fails_leaves_no_version_of_a_schema(paused):
    registry, log = MemoryRegistry(), StrikingLog()
    world = World(SOURCES, AVRO, registry=registry, log=log)
    if paused:
        world.execute("PAUSE CSAS_U_2;")
    before = registry.latest("U-value")
    log.fails = True
    with pytest.raises(ServerError, match="Kafka went away"):
        world.execute(WITH_TEXT)
    assert registry.latest("U-value") == before
    world.execute(WITH_NUMBER)
    assert registry.latest("U-value").version == before.version + 1
    assert '"C","type":["null","int"]' in registry.latest("U-value").schema.text


def test_a_trial_registers_nothing(monkeypatch):
    registry = MemoryRegistry()
    world = World(SOURCES, AVRO, registry=registry)
    before = registry.latest("U-value")
    world.write("s", b"k", b'{"A": 1}', 1)
    seen = []
    usual = world.runner.prepare_switch

    def prepare_switch(old, new, *, half_written=False):
        switch = usual(old, new)
        seen.append(registry.latest("U-value"))
        return switch

    monkeypatch.setattr(world.runner, "prepare_switch", prepare_switch)
    world.execute(WITH_TEXT)
    assert seen == [before]
    assert registry.latest("U-value").version == before.version + 1


def test_a_version_that_somebody_has_added_behind_it_keeps_it():
    registry, log = MemoryRegistry(), StrikingLog()
    world = World(SOURCES, AVRO, registry=registry, log=log)
    first = registry.latest("U-value")
    log.fails = True

    def add():
        other = first.schema.text.replace('"A"', '"B"')
        registry.register("U-value", type(first.schema)("AVRO", other))

    log.strike = add
    with pytest.raises(ServerError, match="Kafka went away"):
        world.execute(WITH_TEXT)
    assert [registry.version("U-value", n).version for n in (1, 2, 3)] == [1, 2, 3]


# --- how a query is run


def test_the_same_text_with_other_run_settings_starts_the_query_with_them(monkeypatch):
    world = World(SOURCES, STREAM)
    made_way = []
    usual = world.runner.prepare_switch

    def prepare_switch(old, new, *, half_written=False):
        made_way.append(dict(new.properties)["ksql.query.trigger.interval.ms"])
        return usual(old, new)

    monkeypatch.setattr(world.runner, "prepare_switch", prepare_switch)
    again = STREAM.replace("CREATE", "CREATE OR REPLACE")
    outcome = world.execute(again, **{"ksql.query.trigger.interval.ms": "250"})
    assert made_way == ["250"]
    assert outcome.switch is not None
    assert outcome.prepared.verdict.classes == ("configuration",)
    [change] = outcome.prepared.verdict.changes
    assert str(change) == (
        "ksql.query.trigger.interval.ms: the server's value became 250 (configuration)"
    )
    assert world.execute(again, **{"ksql.query.trigger.interval.ms": "250"}).switch is None
    assert made_way == ["250"]


def test_a_setting_of_a_store_is_reported_and_needs_no_new_start():
    world = World(SOURCES, "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;")
    outcome = world.execute(
        "CREATE OR REPLACE TABLE N WITH (STORE_TYPE='in_memory') "
        "AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
    )
    assert outcome.switch is None
    assert [change.clause for change in outcome.prepared.verdict.changes] == ["STORE_TYPE"]
