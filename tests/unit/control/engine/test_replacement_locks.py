"""What comes in while a replacement waits for its query's batches, and what becomes of both."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from ksql.control.engine.ports import CommandInDoubt
from ksql.control.engine.replacement_locks import (
    ChangedMeanwhile,
    ReplacementCancelled,
)
from ksql.core.error_table import BEING_REPLACED
from ksql.core.errors import KsqlError, ServerError
from tests.unit.control.engine.test_command_execution import COPY, COUNT, MORE, Runner, S, Scene

PATIENCE_S = 30
OTHER = MORE.replace("SUM(A) AS A", "SUM(A) AS A, MAX(A) AS M")
ALL = "CREATE STREAM F AS SELECT * FROM S;"
ALL_AGAIN = "CREATE OR REPLACE STREAM F AS SELECT * FROM S WHERE A > 0;"


class Slow(Runner):
    """A runner whose switches wait, before or behind the point where the old plan has ended."""

    def __init__(self, *given):
        super().__init__(*given)
        self.waits = threading.Event()
        self.may_switch = threading.Event()
        self.late = False
        self.returned: list[str] = []

    def prepare_switch(self, old, new, *, half_written=False):
        switch = super().prepare_switch(old, new) if self.late else None
        self.waits.set()
        assert self.may_switch.wait(PATIENCE_S)
        if switch is None and old.version not in self.running:
            raise ServerError("its query was stopped")
        return switch or super().prepare_switch(old, new)

    def rollback_switch(self, old):
        self.returned.append(old.id)
        super().rollback_switch(old)


@pytest.fixture(params=["before", "behind"])
def it(request, monkeypatch):
    """A scene whose replacements wait, before or behind their switch."""
    monkeypatch.setattr("tests.unit.control.engine.test_command_execution.Runner", Slow)
    scene: Any = Scene(S, COUNT)
    scene.world.runner.late = request.param == "behind"
    return scene


@contextmanager
def replacing(it, text=MORE):
    """The future of a replacement that waits until the end of the block."""
    runner = it.world.runner
    with ThreadPoolExecutor(1) as other:
        future = other.submit(it.world.execute, text)
        try:
            assert runner.waits.wait(PATIENCE_S)
            yield future
        finally:
            runner.may_switch.set()


def lost(future):
    error = future.exception(PATIENCE_S)
    assert isinstance(error, KsqlError)
    return error


def test_others_are_carried_out_while_it_waits(it):
    with replacing(it) as future:
        it.world.execute(COPY)
        assert not future.done()
    outcome = future.result(PATIENCE_S)
    assert [command.id for command in it.world.log.commands][2:] == [
        "stream/`D`/create",
        "table/`N`/create",
    ]
    assert outcome.offset == it.world.query("N").offset == 3
    assert it.history.recorded[-1] == ("switched", 1, True)
    assert it.history.placed == [(1, 3)]
    assert it.runs()["CTAS_N_1"] == ("A", "C")


@pytest.mark.parametrize("text", ["TERMINATE CTAS_N_1;", "DROP TABLE N;", "TERMINATE ALL;"])
def test_replacement_is_ended_by_the_end_of_its_query(it, text):
    with replacing(it) as future:
        it.world.execute(text)
        assert it.world.runner.running == {}
    error = lost(future)
    assert isinstance(error, ReplacementCancelled)
    assert "CTAS_N_1 was not replaced" in error.message
    assert it.world.runner.running == {}
    assert it.world.runner.returned == []
    assert it.world.catalog.query("CTAS_N_1") is None
    assert it.history.recorded[-1][0] == "rolled back"
    assert it.again().runner.running == {}


def test_failed_ending_is_retried(it):
    woken = []
    with replacing(it) as future:
        it.world.execute("TERMINATE CTAS_N_1;")
        it.world.engine.on_doubt = lambda: woken.append(1)
        it.strikes.at = {"forget": ServerError("Kafka is away")}
    assert isinstance(lost(future), ReplacementCancelled)
    assert woken
    it.world.engine.settle()
    assert it.world.engine.settled


def test_a_pause_leaves_the_old_plan_for_its_resumption(it):
    with replacing(it) as future:
        it.world.execute("PAUSE CTAS_N_1;")
    assert isinstance(lost(future), ReplacementCancelled)
    assert it.world.runner.running == {}
    assert it.world.query("N").paused
    it.world.execute("RESUME CTAS_N_1;")
    assert it.runs() == {"CTAS_N_1": ("C",)}


def test_a_resumption_of_what_runs_is_no_matter(it):
    with replacing(it) as future:
        it.world.execute("RESUME ALL;")
    future.result(PATIENCE_S)
    assert it.runs() == {"CTAS_N_1": ("A", "C")}


def test_the_end_of_another_query_is_no_matter(it):
    it.world.execute(COPY)
    with replacing(it) as future:
        it.world.execute("TERMINATE CSAS_D_2;")
    future.result(PATIENCE_S)
    assert it.runs() == {"CTAS_N_1": ("A", "C")}


def test_a_second_replacement_is_refused_until_the_first_is_over(it):
    with replacing(it) as future:
        with pytest.raises(
            BEING_REPLACED.base, match="is being replaced by another statement"
        ) as error:
            it.world.execute(OTHER)
        assert error.value.code == 50300
    future.result(PATIENCE_S)
    it.world.execute(OTHER)
    assert it.runs() == {"CTAS_N_1": ("A", "C", "M")}


def test_it_is_judged_by_what_holds_when_it_is_written(it):
    """A second query that writes its result is a reason against it."""
    it.world.execute(ALL)
    with replacing(it, ALL_AGAIN) as future:
        it.world.execute("INSERT INTO F SELECT * FROM S;")
    assert "there are multiple queries writing into it" in lost(future).message
    assert it.world.runner.returned == ["CSAS_F_2"]
    assert it.world.catalog.query("CSAS_F_2").plan == plan_in_the_log(it, "CSAS_F_2")


def test_it_is_not_written_as_another_one_than_was_switched_to(it):
    it.world.execute(ALL)
    with replacing(it, ALL_AGAIN) as future:
        it.world.execute("ALTER STREAM S ADD COLUMN B INT;")
    assert isinstance(lost(future), ChangedMeanwhile)
    assert it.world.runner.returned == ["CSAS_F_2"]
    assert it.world.catalog.query("CSAS_F_2").plan == plan_in_the_log(it, "CSAS_F_2")
    it.world.runner.may_switch.set()
    it.world.execute(ALL_AGAIN)
    assert [c.name for c in it.world.catalog.source("F").schema.columns] == ["K", "A", "B"]


def plan_in_the_log(it, query_id):
    changes = [change for command in it.world.log.commands for change in command.changes]
    return next(
        c.query.plan
        for c in reversed(changes)
        if getattr(c, "query", None) is not None and c.query.id == query_id
    )


def test_a_switch_that_fails_releases_its_query(it):
    it.strikes.at = {"prepare_switch": ServerError("its batch did not end")}
    it.world.runner.may_switch.set()
    with pytest.raises(ServerError, match="did not end"):
        it.world.execute(MORE)
    it.world.execute(MORE)
    assert it.runs() == {"CTAS_N_1": ("A", "C")}


def test_while_another_command_is_in_doubt_it_is_rolled_back(it):
    with replacing(it) as future:
        it.world.log.doubtful = True
        with pytest.raises(CommandInDoubt):
            it.world.execute(COPY)
        it.strikes.at = {"settle": ServerError("Kafka is away")}
    assert "stream/`D`/create" in lost(future).text()
    assert it.world.runner.returned == ["CTAS_N_1"]
    it.world.engine.settle()
    assert {command.id for command in it.world.log.commands[2:]} == {"stream/`D`/create"}
    assert it.runs()["CTAS_N_1"] == ("C",)


def test_the_end_of_the_server_starts_nothing_again(it):
    with replacing(it) as future:
        it.world.engine.stop()
    assert isinstance(lost(future), ReplacementCancelled)
    assert it.world.runner.running == {}
    assert [version.name for version in it.again().runner.running] == ["CTAS_N_1"]
    assert it.runs() == {"CTAS_N_1": ("C",)}


@pytest.mark.parametrize("between", ["", COPY, "TERMINATE CTAS_N_1;"])
def test_a_server_that_dies_while_it_waits_leaves_the_old_plan(it, between):
    """Only the log counts: what ran, or was asked for, is no matter."""
    with replacing(it) as future:
        if between:
            it.world.execute(between)
        dead = list(it.world.log.commands)
    future.exception(PATIENCE_S)
    it.world.log.commands[:] = dead
    it.again()
    expected = {} if between.startswith("TERMINATE") else {"CTAS_N_1": ("C",)}
    assert {k: v for k, v in it.runs().items() if k == "CTAS_N_1"} == expected
