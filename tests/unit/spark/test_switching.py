"""The switch's state machine: every exit leaves exactly one plan with the query, and says so."""

from __future__ import annotations

import pytest

from ksql.spark.revival import SparkRestarting
from ksql.spark.switching import (
    BatchUnfinished,
    SwitchFailed,
    Switching,
    SwitchRefused,
    SwitchState,
)


class Clock:
    """Time that only passes when somebody waits."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Old:
    """The plan that is to go; ``script`` says how its batches do."""

    query_id = "CSAS_A_1"

    def __init__(self, clock, *, runs=True, open_batch=False, ends=True, finishes=True):
        self.clock = clock
        self.runs = runs
        self.open_batch = open_batch
        self.ends = ends
        self.finishes = finishes
        self.retired = False
        self.held = False
        self.said = []
        self.raises = {}
        self.stays_down = False

    def _called(self, name):
        self.said.append(name)
        if name in self.raises:
            raise self.raises[name]

    def hold(self):
        self._called("hold")
        self.held = True

    def end_between_batches(self, timeout_s):
        self._called("end_between_batches")
        if not self.runs:
            return True
        if not self.ends:
            self.clock.now += timeout_s
            return False
        self.clock.now += 1
        self.runs = False
        return True

    def half_done(self):
        self._called("half_done")
        return self.open_batch

    def finish_batch(self, timeout_s):
        self._called("finish_batch")
        self.runs = self.finishes
        self.open_batch = not self.finishes
        return self.finishes

    def go_on(self):
        self.said.append("go_on")
        self.held = False
        self.runs = not self.stays_down

    def retire(self):
        self._called("retire")
        self.retired = True

    def trouble(self):
        return "" if self.runs else "a wire came loose"


class New:
    """The plan that is to come."""

    def __init__(self, clock, fails=None):
        self.clock = clock
        self.fails = fails
        self.runs = False
        self.undo_fails = False
        self.unready = None

    def prepare(self):
        if self.unready is not None:
            raise self.unready

    def start(self):
        self.clock.now += 0.25
        self.runs = True
        if self.fails is not None:
            raise self.fails

    def undo(self):
        self.runs = False
        if self.undo_fails:
            raise OSError("no answer")


@pytest.fixture
def clock():
    return Clock()


def switching(old, new, limit_s=60.0):
    return Switching(old, new, limit_s, old.clock)


def test_a_switch_leaves_the_new_plan_and_tells_where_and_how_long(clock):
    old, new = Old(clock), New(clock)
    it = switching(old, new)
    assert it.run(lambda: "there") == ("there", 250)
    assert it.state is SwitchState.NEW_RUNS
    assert (old.runs, old.retired, new.runs) == (False, True, True)


def test_a_batch_that_does_not_end_keeps_the_old_plan_which_is_not_interrupted(clock):
    old, new = Old(clock, ends=False), New(clock)
    with pytest.raises(BatchUnfinished) as caught:
        switching(old, new, 7.0).run(lambda: None)
    assert clock.now == 107.0
    assert (old.runs, old.held, old.retired, new.runs) == (True, False, False, False)
    text = caught.value.text()
    assert "CSAS_A_1 was not replaced: a batch that its running plan began did not end" in text
    assert "within 7 s" in text
    assert "the running plan goes on unchanged" in text
    assert "ksql.query.replace.timeout.ms" in text


def test_a_batch_left_half_done_is_finished_by_the_plan_that_began_it(clock):
    old, new = Old(clock, runs=False, open_batch=True), New(clock)
    switching(old, new).run(lambda: old.said.append("position"))
    assert old.said[1:] == [
        "end_between_batches",
        "half_done",
        "finish_batch",
        "end_between_batches",
        "half_done",
        "position",
        "retire",
    ]
    assert new.runs


def test_a_batch_that_fails_again_keeps_the_old_plan_and_says_why(clock):
    old, new = Old(clock, runs=False, open_batch=True, finishes=False), New(clock)
    with pytest.raises(BatchUnfinished) as caught:
        switching(old, new).run(lambda: None)
    assert old.said[-1] == "go_on"
    assert not new.runs
    assert "The batch fails: a wire came loose" in caught.value.text()


ANY = [OSError("disk"), RuntimeError("odd"), ValueError("x"), BatchUnfinished("q", 1, "")]


@pytest.mark.parametrize("problem", ANY, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("call", ["end_between_batches", "half_done"])
def test_whatever_fails_while_the_old_plan_ends_keeps_it(clock, call, problem):
    old, new = Old(clock), New(clock)
    old.raises = {call: problem}
    with pytest.raises((SwitchRefused, BatchUnfinished)) as caught:
        switching(old, new).run(lambda: None)
    assert (old.runs, old.held, new.runs) == (True, False, False)
    assert "the running plan goes on unchanged" in caught.value.text()


@pytest.mark.parametrize("problem", ANY[:3], ids=lambda p: type(p).__name__)
def test_whatever_fails_between_the_plans_brings_the_old_one_back(clock, problem):
    old, new = Old(clock), New(clock)

    def position():
        raise problem

    with pytest.raises(SwitchFailed) as caught:
        switching(old, new).run(position)
    assert (old.runs, old.retired, new.runs) == (True, False, False)
    assert "the old one runs again" in caught.value.text()
    assert str(problem) in caught.value.text()


@pytest.mark.parametrize("undo_fails", [False, True])
@pytest.mark.parametrize("problem", ANY[:3], ids=lambda p: type(p).__name__)
def test_a_new_plan_that_does_not_come_up_is_ended_and_the_old_one_runs(clock, problem, undo_fails):
    old, new = Old(clock), New(clock, problem)
    new.undo_fails = undo_fails
    with pytest.raises(SwitchFailed) as caught:
        switching(old, new).run(lambda: None)
    assert (old.runs, old.held, new.runs) == (True, False, False)
    assert str(problem) in caught.value.text()


@pytest.mark.parametrize("problem", ANY[:3], ids=lambda p: type(p).__name__)
def test_a_new_plan_that_cannot_be_prepared_asks_nothing_of_the_old_one(clock, problem):
    old, new = Old(clock), New(clock)
    new.unready = problem
    with pytest.raises(SwitchRefused) as caught:
        switching(old, new).run(str)
    assert (old.runs, new.runs) == (True, False)
    assert old.said == ["go_on"]
    assert str(problem) in caught.value.text()


def test_an_order_to_end_is_not_swallowed(clock):
    old, new = Old(clock), New(clock, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        switching(old, new).run(lambda: None)
    assert (old.runs, new.runs) == (True, False)


@pytest.mark.parametrize("unready", [True, False])
def test_a_service_that_is_not_ready_is_that_for_a_replacement_too(clock, unready):
    old, new = Old(clock), New(clock)
    problem = SparkRestarting("killed")
    if unready:
        new.unready = problem
    else:
        new.fails = problem
    old.stays_down = True
    with pytest.raises((SwitchRefused, SwitchFailed)) as caught:
        switching(old, new).run(str)
    assert caught.value.code == SparkRestarting.code == 50303
    assert "the query does not run at present and is tried again" in caught.value.text()
    assert "goes on unchanged" not in caught.value.text()
    assert "runs again" not in caught.value.text()
