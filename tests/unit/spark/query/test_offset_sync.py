"""An offset sync: each exit leaves both versions running, or both ended at the same offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ksql.core import KsqlError
from ksql.spark.query.offset_sync import (
    OffsetsNotReached,
    OffsetSync,
    OffsetSyncFailed,
    OffsetSyncState,
    Side,
    SyncInProgress,
)
from ksql.spark.session.running import SparkRestarting
from tests.waits import await_true


class Clock:
    """Time that only passes when somebody waits; ``meanwhile`` is what happens then."""

    def __init__(self):
        self.now = 100.0
        self.meanwhile: list[Any] = []

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds
        for happens in self.meanwhile:
            happens()


class Version:
    """A version; ``at`` is its position in the topic ``s``, ``until`` where it ends."""

    query_id = "CTAS_N_1"

    def __init__(self, clock, name, at):
        self.clock, self.version, self.at = clock, name, at
        self.runs, self.held, self.retired, self.disabled = True, False, False, False
        self.ends, self.open_batch, self.finishes = True, False, True
        self.why = ""
        self.interrupts = True
        self.raises: dict[str, Exception] = {}
        self.said: list[str] = []
        self.until: int | None = None

    def _called(self, name):
        self.said.append(name)
        if name in self.raises:
            raise self.raises[name]

    def position(self):
        self._called("position")
        return 3, {"s": {0: self.at}, f"only {self.version}": {0: 99}}

    def lock_start(self):
        self._called("hold")
        self.held = True

    def end_between_batches(self, timeout_s):
        self._called("end_between_batches")
        if self.ends or not self.runs:
            self.runs = False
            return True
        self.clock.now += timeout_s
        return False

    def interrupt(self):
        self._called("interrupt")
        self.runs = not self.interrupts
        return self.interrupts

    def half_done(self):
        return self.open_batch

    def finish_batch(self, timeout_s):
        self._called("finish_batch")
        self.open_batch = not self.finishes
        return self.finishes

    def start(self):
        self._called("start")
        self.runs = True

    def resume(self):
        self.said.append("resume")
        self.held, self.runs = False, not self.disabled

    def disable(self):
        self.disabled = True

    def retire(self):
        self.retired = True

    def problem(self):
        return self.why

    def read(self, most=3):
        """Read some records, if it runs."""
        if self.runs:
            self.at += most
            if self.until is not None:
                self.at = min(self.at, self.until)


@dataclass
class Room:
    clock: Clock
    old: Version
    candidate: Version
    bounds: list[Any]
    sync: OffsetSync

    def goes_on(self):
        return [
            (side.runs, side.held, side.retired, side.until) for side in (self.old, self.candidate)
        ] == [(True, False, False, None)] * 2

    def state_after(self, error):
        with pytest.raises(error) as caught:
            self.sync.stop_both()
        assert self.goes_on()
        assert "both versions continue" in caught.value.text()
        return caught.value


@pytest.fixture
def room():
    clock = Clock()
    old, candidate = Version(clock, "v0", 10), Version(clock, "v7", 25)
    clock.meanwhile += [old.read, candidate.read]
    bounds: list[Any] = []

    def bound(offsets):
        bounds.append(offsets)
        candidate.until = None if offsets is None else offsets["s"][0]

    sync = OffsetSync(
        Side(old, old.position),
        Side(candidate, candidate.position),
        {"s"},
        bound,
        60.0,
        clock=clock,
        pause=clock.pause,
    )
    return Room(clock, old, candidate, bounds, sync)


def test_both_end_at_the_same_offsets(room):
    _, offsets = room.sync.stop_both()
    assert offsets == {"s": {0: 25}, "only v0": {0: 99}}
    assert room.sync.state is OffsetSyncState.SYNCED
    assert (room.old.at, room.candidate.at) == (25, 25)
    assert [(side.runs, side.held) for side in (room.old, room.candidate)] == [(False, True)] * 2


def test_the_candidate_reads_what_the_other_one_has_read_meanwhile(room):
    room.old.read(9)
    room.old.at += 1  # 20, then 23 and 26
    room.sync.stop_both()
    assert (room.old.at, room.candidate.at) == (26, 26)
    assert room.bounds == [{"s": {0: 25}}, {"s": {0: 26}}, None]


def test_the_candidate_is_up_before_the_running_version_ends(room):
    running = []
    room.clock.meanwhile.append(lambda: running.append((room.old.runs, room.candidate.runs)))
    room.sync.stop_both()
    assert set(running) == {(True, True)}
    assert room.candidate.said.count("start") == 1
    assert room.bounds == [{"s": {0: 25}}, {"s": {0: 25}}, None]


def test_a_candidate_that_has_ended_meanwhile_is_started_once_more(room):
    room.old.at = 24
    ended = room.candidate.end_between_batches
    room.old.lock_start = lambda: setattr(room.candidate, "why", "a wire came loose")

    def start():
        room.candidate.why, room.candidate.runs = "", True

    room.candidate.start = start
    room.sync.stop_both()
    assert (room.old.at, room.candidate.at) == (27, 27)
    assert ended(0.0)


def test_the_running_version_runs_until_it_has_come_to_the_candidate(room):
    room.sync.stop_both()
    ended = room.old.said.index("hold")
    assert room.old.said[:ended].count("position") == 6
    assert room.candidate.said[:2] == ["hold", "end_between_batches"]


def test_they_part_after_they_have_met(room):
    room.sync.stop_both()
    room.sync.release()
    assert room.goes_on()


def test_a_cut_over_ends_both_for_good(room):
    room.sync.stop_both()
    room.sync.cut_over()
    assert room.old.retired
    assert room.candidate.retired
    assert not room.old.runs
    assert not room.candidate.runs


def test_a_candidate_whose_batch_does_not_end_continues(room):
    room.candidate.ends = False
    error = room.state_after(OffsetsNotReached)
    assert OffsetSyncState.CANDIDATE_ENDS.value in error.text()
    assert "Within 60 s: its batch still runs" in error.text()
    assert "hold" not in room.old.said


def test_a_running_version_that_does_not_come_up_is_reported_with_its_trouble(room):
    room.clock.meanwhile.clear()
    room.old.why = "a wire came loose"
    error = room.state_after(OffsetsNotReached)
    assert OffsetSyncState.OLD_CATCHES_UP.value in error.text()
    assert "it has not read the offsets from 10 to 25 of s-0\na wire came loose" in error.text()
    assert "ksql.query.replace.timeout.ms" in error.text()
    assert "hold" not in room.old.said
    assert room.clock.now == pytest.approx(160, abs=0.1)


def test_a_running_version_whose_batch_does_not_end_continues(room):
    room.old.ends = False
    error = room.state_after(OffsetsNotReached)
    assert OffsetSyncState.OLD_ENDS.value in error.text()


def test_a_candidate_that_fails_meanwhile_is_not_waited_for(room):
    room.old.at = 24
    room.candidate.start = lambda: setattr(room.candidate, "why", "a wire came loose")
    error = room.state_after(OffsetsNotReached)
    assert OffsetSyncState.CANDIDATE_CATCHES_UP.value in error.text()
    assert "Within 60 s: a wire came loose" in error.text()
    assert room.clock.now < 101
    assert room.bounds == [{"s": {0: 25}}, {"s": {0: 27}}, None]


def test_a_candidate_that_does_not_come_up_continues_without_an_end(room):
    room.old.at = 24
    room.clock.meanwhile.remove(room.candidate.read)
    error = room.state_after(OffsetsNotReached)
    assert "it has not read the offsets from 25 to 27 of s-0" in error.text()
    assert room.candidate.said[-2:] == ["end_between_batches", "resume"]


def test_a_candidate_that_cannot_be_started_continues(room):
    room.old.at = 24
    room.candidate.raises = {"start": SparkRestarting("gone")}
    assert room.state_after(OffsetSyncFailed).code == SparkRestarting.code


@pytest.mark.parametrize("side", ["old", "candidate"])
def test_a_batch_left_half_done_is_finished_first(room, side):
    version = getattr(room, side)
    version.open_batch = True
    room.sync.stop_both()
    assert version.said.count("finish_batch") == 1
    assert (room.old.at, room.candidate.at) == (25, 25)


@pytest.mark.parametrize("side", ["old", "candidate"])
def test_a_batch_that_cannot_be_finished_lets_both_continue(room, side):
    version = getattr(room, side)
    version.open_batch, version.finishes, version.why = True, False, "a wire came loose"
    assert "Within 60 s: a wire came loose" in room.state_after(OffsetsNotReached).text()


@pytest.mark.parametrize("call", ["hold", "end_between_batches", "position"])
@pytest.mark.parametrize("side", ["old", "candidate"])
def test_whatever_else_fails_lets_both_continue(room, side, call):
    getattr(room, side).raises = {call: OSError("disk")}
    assert "disk" in room.state_after(OffsetSyncFailed).text()


def test_a_version_that_is_ended_meanwhile_ends_the_offset_sync(room):
    under_way = SyncInProgress(room.sync, room.old, room.candidate)
    room.clock.meanwhile[:] = [lambda: under_way.end("v0")]
    with pytest.raises(OffsetSyncFailed, match="was not cut over"):
        room.sync.stop_both()
    assert (room.old.runs, room.old.held) == (False, False)
    assert (room.candidate.runs, room.candidate.held) == (True, False)


@pytest.mark.parametrize(("ended", "other"), [("v0", "v7"), ("v7", "v0")])
def test_a_version_that_is_ended_after_they_have_met_leaves_the_other_one(room, ended, other):
    room.sync.stop_both()
    sides = {"v0": room.old, "v7": room.candidate}
    for side in sides.values():
        side.version = Named(side.version)
    under_way = SyncInProgress(room.sync, room.old, room.candidate)
    assert under_way.end(sides[ended].version) is sides[ended]
    await_true("the other one continues", lambda: sides[other].runs)
    assert sides[ended].disabled
    assert not sides[ended].runs


class Named(str):
    """A version, by its name."""

    __slots__ = ()

    @property
    def name(self):
        return str(self)


def backfilled(room, done_at=101.0):
    """Let the candidate take state over in a batch that is finished at a time."""
    room.sync.stop_both()
    room.candidate.said.clear()
    room.sync.backfill(lambda: lambda: room.clock.now >= done_at)


def test_a_backfill_is_a_batch_at_the_offsets_where_they_have_met(room):
    backfilled(room)
    assert room.sync.state is OffsetSyncState.SYNCED
    assert (room.old.at, room.candidate.at) == (25, 25)
    assert room.bounds[-2:] == [{"s": {0: 25}}, None]
    assert room.candidate.said.count("start") == 1
    assert not room.candidate.runs
    assert room.candidate.held


def test_a_backfill_that_takes_too_long_lets_both_continue(room):
    with pytest.raises(OffsetsNotReached, match="was not cut over") as caught:
        backfilled(room, done_at=1e9)
    assert OffsetSyncState.BACKFILLS.value in caught.value.text()
    assert room.goes_on()


def test_a_backfill_that_cannot_be_prepared_lets_both_continue(room):
    def fail():
        raise OSError("the disk is full")

    room.sync.stop_both()
    with pytest.raises(OffsetSyncFailed) as caught:
        room.sync.backfill(fail)
    assert "the disk is full" in caught.value.text()
    assert room.goes_on()


def test_a_version_that_is_ended_during_a_backfill_ends_it(room):
    room.sync.stop_both()
    under_way = SyncInProgress(room.sync, room.old, room.candidate)
    room.clock.meanwhile[:] = [lambda: under_way.end("v7")]
    with pytest.raises(KsqlError):
        room.sync.backfill(lambda: lambda: False)
    assert (room.old.runs, room.old.held) == (True, False)
    assert not room.candidate.runs


@pytest.fixture
def table(room):
    """A room whose running version writes a table."""
    room.sync._may_leave = True
    return room


def left_behind(room, because):
    _, offsets = room.sync.stop_both()
    assert offsets == {"s": {0: room.candidate.at}, "only v7": {0: 99}}
    assert room.sync.state is OffsetSyncState.SYNCED
    assert because in room.sync.left_behind
    assert not room.old.runs
    assert not room.candidate.runs
    assert room.bounds == [{"s": {0: 25}}, {"s": {0: 25}}, None]
    return room


def test_version_of_a_table_that_fails_is_left_behind(table):
    table.clock.meanwhile.remove(table.old.read)
    table.old.runs, table.old.why = False, "a wire came loose"
    left_behind(table, "a wire came loose")
    assert (table.old.at, table.candidate.at) == (10, 25)
    assert table.clock.now == pytest.approx(110, abs=0.1)
    table.sync.cut_over()
    assert table.old.retired


def test_version_that_recovers_is_not_left_behind(table):
    table.old.why = "a wire came loose"
    table.clock.meanwhile.append(lambda: setattr(table.old, "why", ""))
    table.sync.stop_both()
    assert table.sync.left_behind == ""
    assert (table.old.at, table.candidate.at) == (25, 25)


def test_version_of_a_table_whose_batch_does_not_end_is_interrupted(table):
    table.clock.meanwhile.remove(table.old.read)
    table.old.ends = False
    left_behind(table, "its batch does not end")
    assert "interrupt" in table.old.said


def test_version_that_cannot_be_interrupted_lets_both_continue(table):
    table.clock.meanwhile.remove(table.old.read)
    table.old.ends = table.old.interrupts = False
    assert OffsetSyncState.OLD_ENDS.value in table.state_after(OffsetsNotReached).text()


def test_batch_that_a_version_of_a_table_cannot_finish_is_left(table):
    table.old.at = 25
    table.old.open_batch, table.old.finishes, table.old.why = True, False, "a wire came loose"
    left_behind(table, "a wire came loose")


def test_version_whose_position_cannot_be_read_is_left_behind(table):
    table.clock.meanwhile.remove(table.old.read)
    table.old.runs, table.old.why = False, "the checkpoint is damaged"
    table.old.raises = {"position": SparkRestarting("damaged")}
    left_behind(table, "the checkpoint is damaged")


def test_candidate_that_is_behind_still_comes_to_where_the_other_one_has_ended(table):
    table.old.at = 27
    table.old.open_batch, table.old.finishes, table.old.why = True, False, "a wire came loose"
    table.clock.meanwhile.remove(table.old.read)
    table.sync.stop_both()
    assert table.candidate.at == 27
    assert table.bounds == [{"s": {0: 25}}, {"s": {0: 27}}, None]
    assert "a wire came loose" in table.sync.left_behind


def test_versions_part_after_one_was_left_behind(table):
    table.clock.meanwhile.remove(table.old.read)
    table.old.runs, table.old.why = False, "a wire came loose"
    left_behind(table, "a wire came loose")
    table.sync.release()
    assert table.goes_on()
