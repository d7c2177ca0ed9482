"""Every transition of a command: what is left behind at each of its exits."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from ksql.control.engine.pending_deletions import MemoryAppliedOffset
from ksql.control.engine.ports import CommandInDoubt, MemoryLog
from ksql.core.errors import KsqlError, ServerError
from ksql.exec.memory.driver import MemoryRunner
from ksql.formats.schema_registry import MemoryRegistry
from ksql.sql.catalog.model import Topic
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COUNT = "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
MORE = "CREATE OR REPLACE TABLE N AS SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K;"
COPY = "CREATE STREAM D WITH (VALUE_FORMAT='AVRO') AS SELECT K, A FROM S;"


class Odd(Exception):
    """What nobody expects; in place of Py4J's and the system's errors."""


ERRORS = [ServerError("Kafka went away"), OSError("disk full"), RuntimeError("odd"), Odd("py4j")]


class Strikes:
    """Raises once at the calls that it is told."""

    def __init__(self):
        self.at = {}

    def __call__(self, name):
        problem = self.at.pop(name, None)
        if problem is not None:
            raise problem


class Log(MemoryLog):
    """A log whose append may fail, or be in doubt: then ``written`` says how it ended."""

    def __init__(self, strikes):
        super().__init__()
        self.strikes = strikes
        self.doubtful = False
        self.written = True
        self._held = None

    @contextmanager
    def begin(self):
        with super().begin() as transaction:
            usual = transaction.append

            def append(command):
                self.strikes("append")
                if self.doubtful:
                    self._held = command
                    raise CommandInDoubt(command.id, "no answer")
                usual(command)

            transaction.append = append  # type: ignore[method-assign]  # a stand-in
            yield transaction

    def settle(self):
        self.strikes("settle")
        self.doubtful = False
        if self.written:
            self.commands.append(self._held)
        return self.written


class Runner(MemoryRunner):
    """A runner that may fail anywhere."""

    def __init__(self, topics, strikes, registry):
        super().__init__(topics, registry=registry)
        self.strikes = strikes
        self.forgotten = []

    def start(self, query):
        self.strikes("start")
        super().start(query)

    def resume(self, queries):
        self.strikes("resume")
        super().resume(queries)

    def stop(self, version):
        self.strikes("stop")
        super().stop(version)

    def forget(self, version):
        self.strikes("forget")
        self.forgotten.append(version.query_id)
        super().forget(version)

    def prepare_switch(self, old, new, *, half_written=False):
        self.strikes("prepare_switch")
        return super().prepare_switch(old, new)

    def commit_switch(self, new):
        self.strikes("commit_switch")
        return super().commit_switch(new)


class Book:
    """Upgrades as they are told."""

    def __init__(self):
        self.recorded = []
        self.placed = []

    def begun(self, upgrade):
        self.recorded.append(("begun", upgrade.statement))
        return len(self.recorded)

    def moved(self, token, offset):
        self.placed.append((token, offset))

    def switched(self, token, switch):
        self.recorded.append(("switched", token, switch is not None))

    def rolled_back(self, token, error):
        self.recorded.append(("rolled back", token, error))

    def refused(self, upgrade):
        pass

    def replayed(self, upgrade):
        pass


class Scene:
    """A world that can be struck, and started again on the same log, topics and mark."""

    def __init__(self, *scripts):
        self.strikes = Strikes()
        self.registry = MemoryRegistry()
        self.mark = MemoryAppliedOffset(0)
        self.history = Book()
        self.world = self._make(Log(self.strikes))
        for script in scripts:
            self.world.run(script)

    def _make(self, log, topics=None):
        world = World(
            log=log,
            runner=lambda topics: Runner(topics, self.strikes, self.registry),
            registry=self.registry,
            history=self.history,
            topics=topics,
            applied_offset=self.mark,
        )
        delete, create = world.topics.delete, world.topics.create
        world.topics.delete = lambda names: self._failing("delete", delete, list(names))  # type: ignore[method-assign]  # a stand-in
        world.topics.create = lambda topic: self._failing("create", create, topic)  # type: ignore[method-assign]  # a stand-in
        return world

    def _failing(self, name, call, argument):
        if argument:
            self.strikes(name)
        return call(argument)

    def again(self):
        """The server is started again after a kill -9."""
        world = self._make(self.world.log, replace(self.world.topics))
        for offset, command in enumerate(world.log.commands):
            world.engine.replay(offset, command)
        world.engine.start_queries()
        self.world = world
        return world

    def runs(self):
        """The queries that run, and the plan that each of them has."""
        running = self.world.runner.running
        columns = {}
        if running:
            self.world.topics.append("s", b"probe", b'{"A": 1}', 1)
        self.world.drain()
        for version in running:
            columns[version.query_id] = tuple(sorted(self.world.last("N").get("probe") or ()))
        return columns


def taken(it):
    return (it.world.catalog, set(it.world.topics.known), list(it.world.log.commands))


@pytest.mark.parametrize("problem", ERRORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("call", ["create", "start", "append"])
def test_a_creation_that_fails_anywhere_leaves_nothing(call, problem):
    it = Scene(S)
    before = taken(it)
    it.strikes.at = {call: problem}
    with pytest.raises(KsqlError) as caught:
        it.world.execute(COPY)
    assert str(problem) in caught.value.text()
    assert taken(it) == before
    assert it.world.runner.running == {}
    assert it.registry.latest("D-value") is None
    it.world.execute(COPY)
    assert len(it.world.runner.running) == 1


@pytest.mark.parametrize("problem", ERRORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("call", ["prepare_switch", "append"])
def test_a_replacement_that_fails_anywhere_leaves_the_old_plan(call, problem):
    it = Scene(S, COUNT)
    before = taken(it)
    it.strikes.at = {call: problem}
    with pytest.raises(KsqlError) as caught:
        it.world.execute(MORE)
    assert taken(it) == before
    assert it.runs() == {"CTAS_N_1": ("C",)}
    assert it.history.recorded[0] == ("begun", MORE)
    assert it.history.recorded[1][:2] == ("rolled back", 1)
    assert str(problem) in it.history.recorded[1][2]
    assert "Odd" not in caught.value.text()


def test_a_step_that_cannot_be_undone_does_not_keep_the_others_from_it(caplog):
    it = Scene(S)
    it.strikes.at = {"append": OSError("x"), "stop": RuntimeError("y")}
    with pytest.raises(KsqlError, match="nothing has changed"):
        it.world.execute(COPY)
    assert set(it.world.topics.known) == {"s"}
    assert it.world.runner.forgotten == ["CSAS_D_1"]
    assert "not_taken_back" in caplog.text


def test_a_topic_that_somebody_else_made_meanwhile_is_not_deleted():
    it = Scene(S)
    it.strikes.at = {"append": OSError("x")}
    usual = it.world.topics.create

    def late(topic):
        usual(Topic(topic.name, 7))
        return usual(topic)

    it.world.topics.create = late
    with pytest.raises(KsqlError):
        it.world.execute(COPY)
    assert it.world.topics.known["D"].partitions == 7


# --- in doubt


def in_doubt(*scripts, text):
    it = Scene(*scripts)
    it.world.log.doubtful = True
    woken = []
    it.world.engine.on_doubt = lambda: woken.append(1)
    with pytest.raises(CommandInDoubt) as caught:
        it.world.execute(text)
    assert "nothing was deleted" in caught.value.text()
    assert woken == [1]
    return it


def test_in_doubt_nothing_is_deleted_and_a_replaced_query_rests():
    """Neither plan may write: nobody knows which of them the log names."""
    it = in_doubt(S, COUNT, text=MORE)
    assert it.runs() == {}
    assert "A" not in [c.name for c in it.world.catalog.source("N").schema.columns]
    assert it.world.engine.statuses["table/`N`/create"].status == "EXECUTING"
    assert it.history.recorded == [("begun", MORE)]


def test_in_doubt_other_statements_are_refused_as_long_as_kafka_is_away():
    it = in_doubt(S, text=COPY)
    for _ in range(2):
        it.strikes.at = {"settle": ServerError("Kafka cannot be reached")}
        with pytest.raises(CommandInDoubt) as caught:
            it.world.execute(COUNT)
        assert caught.value.code == 50300
        assert "stream/`D`/create" in caught.value.text()
    assert not it.world.engine.settled
    assert set(it.world.topics.known) == {"s", "D"}


@pytest.mark.parametrize("text", [MORE, COPY])
def test_in_doubt_and_committed_is_done(text):
    it = in_doubt(S, COUNT, text=text)
    it.world.engine.settle()
    assert it.world.engine.settled
    other = it.again()
    assert len(other.log.commands) == 3
    assert {s.status for s in it.world.engine.statuses.values()} == {"SUCCESS"}
    if text == MORE:
        assert it.history.recorded[1] == ("switched", 1, True)
        assert it.runs() == {"CTAS_N_1": ("A", "C")}


@pytest.mark.parametrize("text", [MORE, COPY])
def test_lost_command_in_doubt_is_rolled_back(text):
    it = in_doubt(S, COUNT, text=text)
    it.world.log.written = False
    it.world.execute("CREATE TYPE T AS STRUCT<A INT>;")
    assert set(it.world.topics.known) == {"s", "N"}
    assert [version.name for version in it.world.runner.running] == ["CTAS_N_1"]
    assert it.runs() == {"CTAS_N_1": ("C",)}
    status = it.world.engine.statuses[f"{'table/`N`' if text == MORE else 'stream/`D`'}/create"]
    assert status.status == "ERROR"
    assert "does not count" in status.message
    it.world.execute(text)


def test_in_doubt_the_prepared_query_ends_with_the_server():
    it = in_doubt(S, text=COPY)
    assert len(it.world.runner.running) == 1
    it.world.engine.stop()
    assert it.world.runner.running == {}


# --- behind the commit

AFTER = {
    "TERMINATE CTAS_N_1;": ("stop", "forget"),
    "DROP TABLE N;": ("stop", "forget"),
    "DROP TABLE N DELETE TOPIC;": ("stop", "forget", "delete"),
    "PAUSE CTAS_N_1;": ("stop",),
}


@pytest.mark.parametrize("problem", ERRORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize(("text", "call"), [(t, c) for t, calls in AFTER.items() for c in calls])
def test_memory_is_never_behind_the_log_and_what_failed_is_done_later(text, call, problem):
    it = Scene(S, COUNT)
    it.strikes.at = {call: problem}
    it.world.execute(text)
    before = it.world.catalog
    assert not it.world.engine.settled
    it.world.engine.settle()
    assert it.world.engine.settled
    assert it.world.runner.running == {}
    assert ("N" in it.world.topics.known) == ("DELETE" not in text)
    assert it.again().catalog == before


@pytest.mark.parametrize("problem", ERRORS, ids=lambda p: type(p).__name__)
def test_memory_has_a_new_plan_that_is_logged_and_could_not_be_started(problem):
    """Else the next statement would be planned on a catalog that the log contradicts."""
    it = Scene(S, COUNT)
    it.strikes.at = {"commit_switch": problem}
    it.world.execute(MORE)
    assert it.world.engine.settled
    assert it.runs() == {"CTAS_N_1": ("A", "C")}
    before = it.world.catalog
    assert it.again().catalog == before


def test_a_command_that_counts_is_answered_though_the_disk_is_full(monkeypatch, caplog):
    """The answer was an error of the system before, and the query was gone."""
    it = Scene(S, COUNT)
    strikes, usual = [OSError("disk full")], it.mark.write

    def write(offset):
        if strikes:
            raise strikes.pop()
        usual(offset)

    monkeypatch.setattr(it.mark, "write", write)
    it.world.execute("TERMINATE CTAS_N_1;")
    assert it.world.catalog.queries == {}
    assert [r.message for r in caplog.records] == ["applied_offset_not_written"]
    late = it.mark.read()
    it.world.execute("DROP TABLE N;")
    assert (late, it.mark.read()) == (2, 4)


@pytest.mark.parametrize("problem", ERRORS, ids=lambda p: type(p).__name__)
def test_a_resume_that_fails_is_tried_until_it_runs(problem):
    it = Scene(S, COUNT, "PAUSE CTAS_N_1;")
    it.strikes.at = {"resume": problem}
    it.world.execute("RESUME CTAS_N_1;")
    assert not it.world.query("N").paused
    assert it.world.runner.running == {}
    it.world.engine.settle()
    assert [version.name for version in it.world.runner.running] == ["CTAS_N_1"]


def test_settling_follows_the_latest_command():
    it = Scene(S, COUNT, "PAUSE CTAS_N_1;")
    it.strikes.at = {"resume": OSError("x")}
    it.world.execute("RESUME CTAS_N_1;")
    it.strikes.at = {"resume": OSError("x")}
    it.world.execute("PAUSE CTAS_N_1;")
    it.world.engine.settle()
    assert it.world.runner.running == {}


# --- what a command promises


def killed_before_deleting(text):
    it = Scene(S, COPY)
    it.strikes.at = {"delete": OSError("killed")}
    it.world.execute(text)
    assert "D" in it.world.topics.known
    return it


def test_a_topic_that_was_to_be_deleted_is_deleted_at_the_next_start_and_once():
    it = killed_before_deleting("DROP STREAM D DELETE TOPIC;")
    world = it.again()
    assert set(world.topics.known) == {"s"}
    assert it.registry.latest("D-value") is None
    world.topic("D")
    it.again()
    it.again()
    assert set(it.world.topics.known) == {"s", "D"}


def test_a_topic_made_again_before_the_next_start_is_another_one_and_stays():
    it = killed_before_deleting("DROP STREAM D DELETE TOPIC;")
    it.world.topics.known.pop("D")
    it.world.topic("D")
    it.again()
    assert set(it.world.topics.known) == {"s", "D"}
    assert it.mark.offset == 3


def test_without_a_mark_nothing_is_deleted():
    it = killed_before_deleting("DROP STREAM D DELETE TOPIC;")
    it.mark.offset = None
    it.again()
    assert set(it.world.topics.known) == {"s", "D"}
    assert it.mark.offset == 3


def test_recreated_command_topic_has_its_own_pending_deletions():
    it = Scene(S, COPY)
    it.mark.offset = 100  # of the topic before
    it.again()
    assert it.mark.offset == 2
    it.strikes.at = {"delete": OSError("killed")}
    it.world.execute("DROP STREAM D DELETE TOPIC;")
    assert it.mark.offset == 2
    assert set(it.again().topics.known) == {"s"}


def test_a_new_source_over_a_topic_that_was_not_deleted_in_time_keeps_it():
    it = killed_before_deleting("DROP STREAM D DELETE TOPIC;")
    it.strikes.at = {"delete": OSError("still away")}
    it.world.execute("CREATE STREAM E (K STRING KEY) WITH (KAFKA_TOPIC='D');")
    it.world.engine.settle()
    it.again()
    assert set(it.world.topics.known) == {"s", "D"}


def test_a_subject_registered_again_stays():
    it = Scene(S, COPY)
    gone = it.registry.latest("D-value")
    it.world.execute("DROP STREAM D DELETE TOPIC;")
    assert it.registry.latest("D-value") is None
    it.registry.register("D-value", gone.schema)
    it.again()
    assert it.registry.latest("D-value") is not None


def test_a_replacement_of_a_paused_query_is_in_the_book():
    it = Scene(S, COUNT, "PAUSE CTAS_N_1;")
    it.world.execute(MORE)
    assert it.history.recorded == [("begun", MORE), ("switched", 1, False)]
