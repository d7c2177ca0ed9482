"""The switch's state machine: every exit leaves exactly one plan with the query, and says so."""

from __future__ import annotations

import pytest

from ksql.exec.ports import FirstBatch
from ksql.spark.query.switching import (
    BatchUnfinished,
    Switching,
    SwitchRefused,
    SwitchState,
)
from ksql.spark.session.running import SparkRestarting


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

    def lock_start(self):
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

    def resume(self):
        self.said.append("resume")
        self.held = False
        self.runs = not self.stays_down

    def retire(self):
        self._called("retire")
        self.retired = True

    def problem(self):
        return "" if self.runs else "a wire came loose"


class New:
    """The plan that is to come; ``fails`` is why its first batch does."""

    def __init__(self, clock, fails=""):
        self.clock = clock
        self.fails = fails
        self.runs = False
        self.ahead = False
        self.unready = None

    def prepare(self):
        if self.unready is not None:
            raise self.unready

    def start_ahead(self):
        self.ahead = True

    def withdraw(self):
        self.ahead = False

    def start(self):
        self.runs = True

    def await_first(self, timeout_s):
        self.clock.now += 0.25
        return self.fails


@pytest.fixture
def clock():
    return Clock()


def switching(old, new, limit_s=60.0, leave=None):
    return Switching(old, new, limit_s, old.clock, leave)


def test_a_switch_leaves_no_plan_until_the_log_names_one(clock):
    old, new = Old(clock), New(clock)
    it = switching(old, new)
    assert it.prepare(lambda: "there") == "there"
    assert it.state is SwitchState.BETWEEN
    assert (old.runs, old.held, old.retired, new.runs) == (False, True, False, False)
    assert new.ahead


def test_a_switch_leaves_the_new_plan_and_reports_how_long_none_ran(clock):
    old, new = Old(clock), New(clock)
    it = switching(old, new)
    it.prepare(str)
    clock.now += 1
    it.commit()
    assert it.state is SwitchState.NEW_RUNS
    assert (old.runs, old.retired, new.runs) == (False, True, True)
    assert it.first_batch(30) == FirstBatch(1250)


def test_a_switch_for_which_no_command_was_written_leaves_the_old_plan(clock):
    old, new = Old(clock), New(clock)
    it = switching(old, new)
    it.prepare(str)
    it.rollback()
    assert (old.runs, old.held, old.retired, new.runs) == (True, False, False, False)
    assert not new.ahead


def test_a_first_batch_that_fails_is_the_new_plans_and_is_reported(clock):
    old, new = Old(clock), New(clock, "a wire came loose")
    it = switching(old, new)
    it.prepare(str)
    it.commit()
    first = it.first_batch(30)
    assert "CSAS_A_1 has its new plan" in first.problem
    assert "first batch fails: a wire came loose" in first.problem
    assert (old.runs, old.retired, new.runs) == (False, True, True)


def test_a_batch_that_does_not_end_keeps_the_old_plan_which_is_not_interrupted(clock):
    old, new = Old(clock, ends=False), New(clock)
    with pytest.raises(BatchUnfinished) as caught:
        switching(old, new, 7.0).prepare(str)
    assert clock.now == 107.0
    assert (old.runs, old.held, old.retired, new.runs) == (True, False, False, False)
    text = caught.value.text()
    assert "CSAS_A_1 was not replaced: a batch that its running plan began did not end" in text
    assert "within 7 s" in text
    assert "the running plan goes on unchanged" in text
    assert "ksql.query.replace.timeout.ms" in text


def test_a_batch_left_half_done_is_finished_by_the_plan_that_began_it(clock):
    old, new = Old(clock, runs=False, open_batch=True), New(clock)
    it = switching(old, new)
    it.prepare(lambda: old.said.append("position"))
    it.commit()
    assert it.left == ""
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
        switching(old, new).prepare(str)
    assert old.said[-1] == "resume"
    assert not new.runs
    assert "The batch fails: a wire came loose" in caught.value.text()


ANY = [OSError("disk"), RuntimeError("odd"), ValueError("x"), BatchUnfinished("q", 1, "")]


@pytest.mark.parametrize("problem", ANY, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("call", ["end_between_batches", "half_done"])
def test_failure_while_the_old_plan_ends_keeps_it(clock, call, problem):
    old, new = Old(clock), New(clock)
    old.raises = {call: problem}
    with pytest.raises((SwitchRefused, BatchUnfinished)) as caught:
        switching(old, new).prepare(str)
    assert (old.runs, old.held, new.runs) == (True, False, False)
    assert "the running plan goes on unchanged" in caught.value.text()


@pytest.mark.parametrize("problem", ANY[:3], ids=lambda p: type(p).__name__)
def test_failure_between_the_plans_keeps_the_old_one(clock, problem):
    old, new = Old(clock), New(clock)

    def position():
        raise problem

    with pytest.raises(SwitchRefused) as caught:
        switching(old, new).prepare(position)
    assert (old.runs, old.held, old.retired, new.runs) == (True, False, False, False)
    assert "the running plan goes on unchanged" in caught.value.text()
    assert str(problem) in caught.value.text()


def test_a_batch_that_fails_again_may_be_left_to_the_new_plan(clock):
    old, new = Old(clock, runs=False, open_batch=True, finishes=False), New(clock)
    it = switching(old, new, leave=lambda problem: f"left as {problem}")
    assert it.prepare(lambda: "there") == "there"
    assert it.left == "left as a wire came loose"
    it.commit()
    assert (old.runs, old.retired, new.runs) == (False, True, True)


def test_a_batch_that_runs_on_is_left_to_nobody(clock):
    old, new = Old(clock, runs=False, open_batch=True), New(clock)

    def finish_batch(_timeout_s):
        old.runs = True
        return False

    old.finish_batch = finish_batch  # type: ignore[method-assign]  # a stand-in
    with pytest.raises(BatchUnfinished, match="did not end within"):
        switching(old, new, leave=lambda _trouble: pytest.fail("it was asked")).prepare(str)
    assert (old.runs, old.held, new.runs) == (True, False, False)


def test_a_switch_that_was_cancelled_goes_no_further(clock):
    old, new = Old(clock), New(clock)
    it = switching(old, new)
    new.prepare = it.cancel  # type: ignore[method-assign]  # a stand-in
    with pytest.raises(SwitchRefused, match="was not replaced"):
        it.prepare(str)
    assert old.said == ["resume"]


@pytest.mark.parametrize("problem", ANY[:3], ids=lambda p: type(p).__name__)
def test_a_new_plan_that_cannot_be_prepared_asks_nothing_of_the_old_one(clock, problem):
    old, new = Old(clock), New(clock)
    new.unready = problem
    with pytest.raises(SwitchRefused) as caught:
        switching(old, new).prepare(str)
    assert (old.runs, new.runs) == (True, False)
    assert old.said == ["resume"]
    assert str(problem) in caught.value.text()


def test_an_order_to_end_is_not_swallowed(clock):
    old, new = Old(clock), New(clock)
    new.unready = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        switching(old, new).prepare(str)
    assert (old.runs, new.runs) == (True, False)


def test_a_service_that_is_not_ready_is_that_for_a_replacement_too(clock):
    old, new = Old(clock), New(clock)
    new.unready = SparkRestarting("killed")
    old.stays_down = True
    with pytest.raises(SwitchRefused) as caught:
        switching(old, new).prepare(str)
    assert caught.value.code == SparkRestarting.code == 50303
    assert "the query does not run at present and is tried again" in caught.value.text()
    assert "goes on unchanged" not in caught.value.text()
