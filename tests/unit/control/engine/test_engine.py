"""The order of a command's steps, and what is left when one of them fails."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest

from ksql.control.engine import ports
from ksql.control.engine.command_execution import CommandExecution, ExecutionContext
from ksql.control.engine.ports import Command, MemoryLog
from ksql.control.planning.prepare import DISTRIBUTED, prepare
from ksql.control.statements.execute import HANDLERS, RequestFailed
from ksql.core.errors import KsqlError, ServerError
from ksql.exec.memory.driver import MemoryRunner
from ksql.sql.syntax import ast
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COUNT = "CREATE TABLE N AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;"
MORE = "CREATE OR REPLACE TABLE N AS SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K;"


class Broken(ServerError):
    """What the fakes raise."""


class FailingRunner(MemoryRunner):
    """Notes what it is told; refuses the calls named in ``fails``."""

    def __init__(self, topics):
        super().__init__(topics)
        self.calls = []
        self.fails = set()

    def _called(self, name, query_id):
        self.calls.append((name, query_id))
        if name in self.fails:
            raise Broken(f"{name} failed")

    def start(self, query):
        self._called("start", query.id)
        super().start(query)

    def resume(self, queries):
        for query in queries:
            self._called("resume", query.id)
            super().start(query)

    def stop(self, version):
        self._called("stop", version.query_id)
        super().stop(version)

    def forget(self, version):
        self._called("forget", version.query_id)
        super().forget(version)

    def prepare_switch(self, old, new, *, half_written=False):
        self._called("prepare_switch", old.id)
        return super().prepare_switch(old, new)

    def check_replaceable(self, paused, *, half_written=False):
        self._called("check_replaceable", paused.id)
        return ""


class FailingLog(MemoryLog):
    """A log that can lose its broker between two statements."""

    def __init__(self):
        super().__init__()
        self.broken = False

    @contextmanager
    def begin(self):
        with super().begin() as transaction:
            if self.broken:
                transaction.append = self._refuse  # type: ignore[method-assign]  # a stand-in
            yield transaction

    def _refuse(self, command):
        raise Broken("not written")


class Book:
    """Upgrades as they are told."""

    def __init__(self):
        self.entries = []

    def begun(self, upgrade):
        self.entries.append(["begun", upgrade.old.id, upgrade.offset])
        return len(self.entries)

    def switched(self, token, switch):
        self.entries.append(["switched", token, switch is not None])

    def rolled_back(self, token, error):
        self.entries.append(["rolled back", token, error])

    def refused(self, upgrade):
        self.entries.append(["refused", upgrade.old.id, upgrade.verdict.classes])

    def replayed(self, upgrade):
        self.entries.append(["replayed", upgrade.old.id, upgrade.offset])


def world(*scripts):
    return World(*scripts, runner=FailingRunner, log=FailingLog(), history=Book())


def test_a_replacement_continues_with_the_state_under_the_same_id():
    it = world(S, COUNT)
    it.feed("s", ("k", {"A": 5}, 1))
    outcome = it.execute(MORE)
    assert outcome.prepared.query_id == "CTAS_N_1"
    assert outcome.switch.offsets == {"s": {0: 1}}
    assert outcome.prepared.verdict.classes == ("schema evolution",)
    assert (it.query("N").offset, it.query("N").started_at_offset) == (2, 1)
    it.feed("s", ("k", {"A": 7}, 2))
    assert it.out("N") == [("k", {"C": 1}, 1), ("k", {"C": 2, "A": 7}, 2)]
    assert it.engine.history.entries == [["begun", "CTAS_N_1", 2], ["switched", 1, True]]
    assert [c.name for c in it.catalog.source("N").schema.columns] == ["K", "C", "A"]


def test_the_same_again_switches_nothing():
    it = world(S, COUNT)
    outcome = it.execute(COUNT.replace("CREATE", "CREATE OR REPLACE"))
    assert outcome.switch is None
    assert outcome.prepared.verdict.classes == ("transparent",)
    assert ("prepare_switch", "CTAS_N_1") not in it.runner.calls
    assert it.engine.history.entries == [["begun", "CTAS_N_1", 2], ["switched", 1, False]]


def test_a_refused_replacement_leaves_the_running_query_alone():
    it = world(S, COUNT)
    it.feed("s", ("k", {"A": 5}, 1))
    calls = list(it.runner.calls)
    error = it.refuse("CREATE OR REPLACE TABLE N AS SELECT B, COUNT(*) AS C FROM S GROUP BY B;")
    assert it.runner.calls == calls
    assert error.verdict.classes == ("topology", "unsupported")
    it.engine.note_refusal(it.catalog.writers("N")[0], error, "..")
    assert it.engine.history.entries == [["refused", "CTAS_N_1", ("topology", "unsupported")]]
    it.feed("s", ("k", {"A": 7}, 2))
    assert it.last("N") == {"k": {"C": 2}}


REFUSALS = {
    "CREATE OR REPLACE TABLE N AS SELECT B, COUNT(*) AS C FROM S GROUP BY B;": ("topology",),
    "CREATE OR REPLACE TABLE N AS SELECT K, COUNT(*) AS C FROM N GROUP BY K;": ("unsupported",),
    "CREATE OR REPLACE TABLE N AS SELECT NOWHERE FROM S GROUP BY K;": ("unsupported",),
}


@pytest.mark.parametrize(("text", "classes"), REFUSALS.items())
def test_each_refused_attempt_is_in_the_book_whoever_refuses_it(text, classes):
    it = world(S, COUNT)
    with pytest.raises(RequestFailed):
        it.run(text)
    [(what, query_id, noted)] = it.engine.history.entries
    assert (what, query_id) == ("refused", "CTAS_N_1")
    assert set(classes) <= set(noted)


def test_a_refused_creation_is_no_attempt_to_replace():
    it = world(S, COUNT)
    with pytest.raises(RequestFailed):
        it.run("CREATE OR REPLACE TABLE M AS SELECT NOWHERE FROM S GROUP BY K;")
    with pytest.raises(RequestFailed):
        it.run(COUNT)
    assert it.engine.history.entries == []


def test_a_query_that_does_not_start_leaves_nothing():
    it = world(S)
    it.runner.fails = {"start"}
    assert it.refuse(COUNT).message == "start failed"
    assert [name for name, _ in it.runner.calls] == ["start", "stop", "forget"]
    assert set(it.topics.known) == {"s"}


def test_a_switch_that_fails_is_reported_and_changes_nothing():
    it = world(S, COUNT)
    it.runner.fails = {"prepare_switch"}
    assert it.refuse(MORE).message == "prepare_switch failed"
    assert it.engine.history.entries == [
        ["begun", "CTAS_N_1", 2],
        ["rolled back", 1, "prepare_switch failed"],
    ]


def test_a_new_query_whose_command_is_not_written_ends_again():
    it = world(S)
    it.log.broken = True
    assert it.refuse(COUNT).message == "not written"
    assert it.runner.running == {}
    assert it.runner.calls == [
        ("start", "CTAS_N_1"),
        ("stop", "CTAS_N_1"),
        ("forget", "CTAS_N_1"),
    ]
    assert set(it.topics.known) == {"s"}


def test_a_switch_whose_command_is_not_written_is_rolled_back():
    it = world(S, COUNT)
    it.feed("s", ("k", {"A": 5}, 1))
    it.log.broken = True
    assert it.refuse(MORE).message == "not written"
    it.feed("s", ("k", {"A": 7}, 2))
    assert it.out("N")[-1] == ("k", {"C": 2}, 2)
    assert it.engine.history.entries == [
        ["begun", "CTAS_N_1", 2],
        ["rolled back", 1, "not written"],
    ]


@pytest.mark.parametrize("text", ["TERMINATE CTAS_N_1;", "PAUSE CTAS_N_1;", "DROP TABLE N;"])
def test_an_end_whose_command_is_not_written_does_not_happen(text):
    it = world(S, COUNT)
    it.log.broken = True
    assert it.refuse(text).message == "not written"
    it.feed("s", ("k", {"A": 5}, 1))
    assert it.last("N") == {"k": {"C": 1}}


def test_a_paused_query_gets_its_new_plan_when_it_continues():
    it = world(S, COUNT, "PAUSE CTAS_N_1;")
    outcome = it.execute(MORE)
    assert outcome.switch is None
    assert it.query("N").paused
    it.feed("s", ("k", {"A": 5}, 1))
    assert it.out("N") == []
    it.execute("RESUME CTAS_N_1;")
    it.drain()
    assert it.out("N") == [("k", {"C": 1, "A": 5}, 1)]


def test_a_paused_query_whose_plan_left_a_batch_half_done_keeps_its_plan():
    it = world(S, COUNT, "PAUSE CTAS_N_1;")
    it.runner.fails = {"check_replaceable"}
    assert it.refuse(MORE).message == "check_replaceable failed"


def test_a_restart_gives_the_same_catalog_and_starts_what_survived():
    it = world(
        S,
        COUNT,
        MORE,
        "CREATE STREAM C AS SELECT * FROM S;",
        "CREATE STREAM D AS SELECT * FROM S;",
        "PAUSE CSAS_D_4;",
        "TERMINATE CSAS_C_3;",
    )
    again = world()
    for _ in range(2):
        for offset, command in enumerate(it.log.commands):
            again.engine.replay(offset, command)
    assert again.catalog == it.catalog
    assert again.runner.calls == []
    again.engine.start_queries()
    assert again.runner.calls == [("resume", "CTAS_N_1")]
    assert again.engine.history.entries[0] == ["replayed", "CTAS_N_1", 2]
    statuses = again.engine.statuses
    assert {status.status for status in statuses.values()} == {"SUCCESS"}
    assert set(statuses) == {command.id for command in it.log.commands}
    again.engine.stop()
    assert again.runner.running == {}


def test_a_stop_ends_all_queries_together():
    """One after another took longer than a stop may, with sixty of them."""
    it = world(S, COUNT, "CREATE STREAM O AS SELECT * FROM S;")
    together = []
    it.runner.stop_soon = lambda versions, batch_s: together.append((set(versions), batch_s))
    it.engine.stop()
    assert together == [(set(it.catalog.versions), 30.0)]
    assert len(it.catalog.versions) == 2


def test_watchers_are_reported_of_every_command():
    it = world()
    seen = []
    it.engine.on_change = lambda catalog: seen.append(sorted(catalog.sources))
    it.execute(S)
    it.execute(COUNT)
    assert seen == [["S"], ["N", "S"]]
    assert it.engine.statuses["table/`N`/create"].query_id == "CTAS_N_1"


def test_a_dry_run_changes_nothing():
    it = world(S, COUNT)
    before = (it.catalog, len(it.log.commands), list(it.runner.calls))
    prepared = it.engine.dry_run(it.parse(MORE), MORE, it.settings)
    assert prepared.verdict.accepted
    assert set(prepared.plans) == {"old", "new"}
    assert (it.catalog, len(it.log.commands), it.runner.calls) == before


def test_an_upgrade_without_a_verdict_is_never_carried_out():
    it = world(S, COUNT)
    unchecked = replace(it.engine.dry_run(it.parse(MORE), MORE, it.settings), verdict=None)
    context = ExecutionContext(
        catalog=it.catalog,
        topics=it.topics,
        registry=None,
        runner=it.runner,
        history=it.engine.history,
    )
    with pytest.raises(ServerError, match="the upgrade of CTAS_N_1 was not validated"):
        CommandExecution(context, unchecked, MORE, 2).run(pytest.fail)
    assert ("prepare_switch", "CTAS_N_1") not in it.runner.calls


def test_only_distributed_statements_go_through_the_log():
    it = world()
    with pytest.raises(ServerError, match="Define is not a distributed statement"):
        prepare(it.parse("DEFINE x = 'y';"), "", it.engine.context(it.settings))
    assert set(DISTRIBUTED) <= set(HANDLERS)


def test_every_statement_has_a_handler():
    missing = [
        cls.__name__
        for cls in vars(ast).values()
        if isinstance(cls, type)
        and cls in getattr(ast.Statement, "__args__", ())
        and cls not in HANDLERS
    ]
    assert missing == []


def test_a_command_holds_the_properties_it_was_issued_with():
    it = world(S)
    it.execute(COUNT, **{"ksql.streams.commit.interval.ms": "3", "auto.offset.reset": "latest"})
    [command] = it.log.commands[1:]
    assert isinstance(command, Command)
    assert command.properties == (("auto.offset.reset", "latest"), ("commit.interval.ms", "3"))


def test_or_replace_may_be_forbidden():
    it = World(S, COUNT)
    it.settings = type(it.settings)({"ksql.create.or.replace.enabled": "false"})
    assert isinstance(it.refuse(MORE), KsqlError)
    assert it.refuse(MORE).message.endswith("already exists")


def test_a_command_that_cannot_be_written_makes_nothing(monkeypatch):
    def refuse(_transaction, _command):
        raise Broken("too large")

    world = World("CREATE STREAM S (A INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);")
    monkeypatch.setattr(ports._MemoryWriter, "check", refuse)
    with pytest.raises(RequestFailed, match="too large"):
        world.run("CREATE STREAM D AS SELECT * FROM S;")
    assert world.engine.topics.describe("D") is None
    assert world.engine.catalog.query("CSAS_D_1") is None
