"""Ends a query's running version and its candidate at the same offsets: a state machine.

    CANDIDATE_ENDS -> OLD_CATCHES_UP -> OLD_ENDS -> CANDIDATE_CATCHES_UP -> SYNCED
    SYNCED -> BACKFILLS -> SYNCED, for a backfill

Both end between two batches, and have read the same records then. The candidate is started again
at once, with its end where it is, so that it is up when that is moved. The running version rests
only while the candidate reads what the other has read since. For a backfill the candidate runs one
more batch, without records, in which it takes kept state over.

A running version that is in ERROR, or whose batch does not end, may come to no position. If its
result is a table, it is **left behind**: it is ended where it is, and writes no more. The
difference is right all the same, as it is computed from what the topic has. A stream's results
before the candidate's position would be lost, so there it must come along. So it must for a
backfill, as its kept aggregates know what the running version has read.

It leaves by one of two exits:

- *cut over*: the running version rests for good, the candidate's version is started as the query.
- *released* (from every state): both continue from their checkpoints, and nothing has changed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core import CUT_OVER_CANCELLED, KsqlError, ServerError
from ksql.core.process import in_background_or_here
from ksql.exec import LEFT_BEHIND
from ksql.spark.checkpoint.checkpoint import Offsets, reached
from ksql.spark.query import failures
from ksql.spark.query.query_supervisor import QuerySupervisor

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ksql.core import QueryVersion
    from ksql.spark.query.spec import QuerySpec
    from ksql.spark.task.kept_state import KeptState

_log = logging.getLogger(__name__)
_LOOK_S: Final = 0.02
_TRANSIENT_S: Final = 10.0
"""How long a running version may fail before it is left behind: most failures pass."""
_STUCK: Final = "its batch does not end"
_UNAVAILABLE: Final = 503
_STILL_RUNS: Final = "its batch still runs"


class OffsetSyncState(Enum):
    """The state of an offset sync, by what did not come about if it ends there."""

    CANDIDATE_ENDS = "the candidate was not ended between two batches"
    OLD_CATCHES_UP = "the running version did not come to where the candidate has ended"
    OLD_ENDS = "the running version was not ended between two batches"
    CANDIDATE_CATCHES_UP = "the candidate did not come to where the running version has ended"
    BACKFILLS = "the candidate did not take the state of the kept aggregates over"
    SYNCED = "the versions were not cut over"


@dataclass(frozen=True)
class Side:
    """A version and its last finished batch: number and offsets; -1 and where it begins."""

    version: QuerySupervisor
    position: Callable[[], tuple[int, Offsets]]

    def offsets(self) -> Offsets:
        """Return the offsets of its last finished batch, or where it begins."""
        return self.position()[1]


class OffsetSync:
    """Brings two versions of a query to the same offsets; used once."""

    def __init__(
        self,
        old: Side,
        candidate: Side,
        common: Collection[str],
        bound: Callable[[Offsets | None], None],
        limit_s: float,
        *,
        may_leave: bool = False,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the topics that both read, and ``limit_s``: how long all of it may take.

        ``bound`` sets the offsets at which later launches of the candidate end; None: nowhere. It
        moves the end of one that runs and has one. ``may_leave``: a running
        version that does not come along is left behind.
        """
        self.state = OffsetSyncState.CANDIDATE_ENDS
        self.since = 0.0
        """When the running version has ended."""
        self.left_behind = ""
        """Why the running version was left behind, if it was."""
        self._old = old.version
        self._candidate = candidate.version
        self._old_side = old
        self._candidate_side = candidate
        self._common = common
        self._bound = bound
        self._limit_s = limit_s
        self._may_leave = may_leave
        self._clock = clock
        self._pause = pause
        self._deadline = 0.0
        self._is_bound = False
        self._cancelled = False

    def cancel(self) -> None:
        """Have it go no further; for another thread. Ending a version is the caller's part."""
        self._cancelled = True

    def stop_both(self) -> tuple[int, Offsets]:
        """End both versions at the same offsets.

        Returns: the last batch of the running version, or of the candidate if that is alone there.

        Raises: OffsetsNotReached and OffsetSyncFailed; both versions continue then.
        """
        try:
            self._deadline = self._clock() + self._limit_s
            self._candidate.lock_start()
            self._end(OffsetSyncState.CANDIDATE_ENDS, self._candidate)
            goal = self._shared(self._candidate_side.offsets())
            self._enter(OffsetSyncState.OLD_CATCHES_UP)
            self._bind(goal)
            self._candidate.start()
            self._let_old_catch_up(goal)
            self._old.lock_start()
            self._end_old()
            self.since = self._clock()
            # the candidate has read to its goal, and one that was left behind may be before it
            self._let_candidate_catch_up(_farther(goal, self._shared(self._old_at())))
            side = self._candidate_side if self.left_behind else self._old_side
            position = side.position()
            self._enter(OffsetSyncState.SYNCED)
            return position
        except BaseException as problem:
            self._end_bound()
            extra = {"state": self.state.name, "reason": failures.cause(problem)}
            _log.info("versions_not_synced", extra={"query_id": self._old.query_id, **extra})
            if not isinstance(problem, Exception) or isinstance(problem, OffsetsNotReached):
                raise
            raise OffsetSyncFailed(self._old.query_id, self.state, problem) from problem

    def backfill(self, prepare: Callable[[], Callable[[], bool]]) -> None:
        """Have the candidate run a batch without records; both have ended at the same offsets.

        ``prepare`` comes first, and returns what says whether the batch is finished.

        Raises: OffsetsNotReached, OffsetSyncFailed and what ``prepare`` does; both continue then.
        """
        try:
            self._enter(OffsetSyncState.BACKFILLS)
            self._deadline = self._clock() + self._limit_s
            is_finished = prepare()
            self._bind(self._shared(self._old_side.offsets()))
            self._candidate.start()
            self._await_candidate(lambda: "" if is_finished() else _STILL_RUNS)
            self._enter(OffsetSyncState.SYNCED)
        except BaseException as problem:
            self._end_bound()
            if not isinstance(problem, Exception) or isinstance(problem, KsqlError):
                raise
            raise OffsetSyncFailed(self._old.query_id, self.state, problem) from problem

    def _end_bound(self) -> None:
        """End a candidate that has an end, and let both continue."""
        try:
            if self._is_bound:
                self._candidate.end_between_batches(0.0)
        finally:
            self.release()

    def release(self) -> None:
        """Let both continue."""
        self._bound(None)
        self._old.resume()
        self._candidate.resume()

    def cut_over(self) -> None:
        """End both for good: the candidate's version becomes the query."""
        self._old.retire()
        self._candidate.retire()

    def _shared(self, position: Offsets) -> Offsets:
        return {topic: ends for topic, ends in position.items() if topic in self._common}

    def _end(self, state: OffsetSyncState, version: QuerySupervisor) -> None:
        """End a version between two batches; one that was left half done is finished, once."""
        self._enter(state)
        if not version.end_between_batches(self._left_s()):
            raise self._not_reached(_STILL_RUNS)
        if version.half_done():
            version.finish_batch(self._left_s())
            problem = version.problem()
            if not version.end_between_batches(self._left_s()) or version.half_done():
                raise self._not_reached(problem or _STILL_RUNS)

    def _bind(self, goal: Offsets) -> None:
        self._is_bound = True
        self._bound(goal)

    def _let_old_catch_up(self, goal: Offsets) -> None:
        begun = self._clock()
        first: Offsets | None = None
        while not reached(position := self._old_at(), goal):
            first = position if first is None else first
            problem = self._old.problem()
            over = self._clock() >= self._deadline
            lasting = problem if self._clock() >= begun + _TRANSIENT_S else ""
            stuck = _STUCK if over and not problem else ""
            if position == first and self._leaves(lasting or stuck):
                return
            self._wait(_missing(position, goal), self._old)

    def _leaves(self, problem: str) -> bool:
        """Return whether the running version is left behind, because of that problem."""
        if not problem or not self._may_leave:
            return False
        self.left_behind = LEFT_BEHIND.format(problem=problem)
        self._deadline = self._clock() + self._limit_s
        return True

    def _end_old(self) -> None:
        """End the running version: between two batches, or where it is if it is left behind."""
        if not self.left_behind:
            try:
                self._end(OffsetSyncState.OLD_ENDS, self._old)
                return
            except OffsetsNotReached:
                if not self._leaves(self._old.problem() or _STUCK):
                    raise
        self._enter(OffsetSyncState.OLD_ENDS)
        if not self._old.interrupt():
            raise self._not_reached(_STILL_RUNS)

    def _old_at(self) -> Offsets:
        """Return where the running version is; nowhere if that cannot be read and it may be left.

        Raises: KsqlError.
        """
        try:
            return self._old_side.offsets()
        except KsqlError as unreadable:
            if not self._may_leave:
                raise
            extra = {"query_id": self._old.query_id, "reason": unreadable.text()}
            _log.info("position_unreadable", extra=extra)
            return {}

    def _let_candidate_catch_up(self, goal: Offsets) -> None:
        self._enter(OffsetSyncState.CANDIDATE_CATCHES_UP)
        self._bind(goal)
        if self._candidate.problem():  # it has ended meanwhile
            self._candidate.start()
        self._await_candidate(lambda: _missing(self._candidate_side.offsets(), goal))

    def _await_candidate(self, lacking: Callable[[], str]) -> None:
        """Wait until a candidate that has an end lacks nothing, and end it there."""
        while lacks := lacking():
            if problem := self._candidate.problem():
                raise self._not_reached(problem)
            self._wait(lacks, self._candidate)
        if not self._candidate.end_between_batches(self._left_s()):
            raise self._not_reached(_STILL_RUNS)
        self._bound(None)
        self._is_bound = False

    def _wait(self, lacks: str, version: QuerySupervisor) -> None:
        self._check_cancelled()
        if self._clock() >= self._deadline:
            raise self._not_reached("\n".join(filter(None, (lacks, version.problem()))))
        self._pause(_LOOK_S)

    def _left_s(self) -> float:
        return max(self._deadline - self._clock(), 0.0)

    def _not_reached(self, detail: str) -> OffsetsNotReached:
        return OffsetsNotReached(self._old.query_id, self.state, self._limit_s, detail)

    def _check_cancelled(self) -> None:
        if self._cancelled:
            raise cancelled(self._old.query_id)

    def _enter(self, state: OffsetSyncState) -> None:
        self._check_cancelled()
        self.state = state
        _log.debug("offset_sync", extra={"query_id": self._old.query_id, "state": state.name})


class SyncInProgress(NamedTuple):
    """An offset sync and its two versions."""

    sync: OffsetSync
    old: QuerySupervisor
    candidate: QuerySupervisor

    def end(self, version: QueryVersion) -> QuerySupervisor:
        """Have it go no further, as a version is about to be stopped; return that version.

        The other one continues.
        """
        sides = (self.old, self.candidate)
        ended, other = sides if self.old.version == version else sides[::-1]
        ended.disable()
        self.sync.cancel()
        if self.sync.state is OffsetSyncState.SYNCED:  # else the sync itself lets it continue
            in_background_or_here(f"resume {other.version.name}", other.resume)
        return ended


class OffsetSyncs:
    """The offset syncs that are under way, and where candidates end because of them."""

    def __init__(
        self,
        space: str = "",
        move: Callable[[str, Offsets | None], None] = lambda _name, _offsets: None,
    ) -> None:
        """Take ``move``, which moves the end of a version that runs, by its name in Spark."""
        self._under_way: dict[QueryVersion, SyncInProgress] = {}
        self._untils: dict[QueryVersion, Offsets] = {}
        self._kept: dict[QueryVersion, KeptState] = {}
        self._space = space
        self._move = move

    def begin(self, sync: SyncInProgress) -> None:
        """Note that one has begun."""
        versions = (sync.old.version, sync.candidate.version)
        self._under_way |= dict.fromkeys(versions, sync)

    def of(self, version: QueryVersion) -> SyncInProgress | None:
        """Return the sync of either version, if there is one."""
        return self._under_way.get(version)

    def end(self, version: QueryVersion) -> SyncInProgress | None:
        """Forget the sync of either version, if there is one, and return it."""
        sync = self.of(version)
        if sync is not None:
            for side in (sync.old, sync.candidate):
                self._under_way.pop(side.version, None)
        return sync

    def end_at(self, version: QueryVersion, offsets: Offsets | None) -> None:
        """Have a version that has an end, and later launches, end there; None: these nowhere.

        Then they take over no state either.
        """
        self._untils.pop(version, None)
        if offsets is not None:
            self._untils[version] = offsets
        else:
            self._kept.pop(version, None)
        self._move(version.spark_name(self._space), offsets)

    def adopt_state(self, version: QueryVersion, kept: KeptState) -> None:
        """Have the next launch of a version take over kept state."""
        self._kept[version] = kept

    def kept(self, version: QueryVersion) -> KeptState | None:
        """Return the state that a launch of a version takes over, if any."""
        return self._kept.get(version)

    def fits(self, spec: QuerySpec) -> bool:
        """Return whether a launch ends where it should, and takes over what it should."""
        return spec.until == self.until(spec.version) and spec.kept == self.kept(spec.version)

    def until(self, version: QueryVersion) -> Offsets | None:
        """Return the offsets at which a launch of a version ends; None: it has no end."""
        return self._untils.get(version)


def cancelled(query_id: str) -> KsqlError:
    """Return the error of a cut-over that goes no further, as one of its versions was stopped."""
    return CUT_OVER_CANCELLED(query_id=query_id)


def _farther(one: Offsets, other: Offsets) -> Offsets:
    """Return for each partition the larger of both offsets."""
    return {
        topic: {
            partition: max(_at(one, topic, partition), _at(other, topic, partition))
            for partition in one.get(topic, {}).keys() | other.get(topic, {}).keys()
        }
        for topic in one.keys() | other.keys()
    }


def _missing(position: Offsets, goal: Offsets) -> str:
    """Return what a version has not read of its goal; empty if it has reached it."""
    for topic, ends in goal.items():
        for partition, end in ends.items():
            if (at := _at(position, topic, partition)) < end:
                return f"it has not read the offsets from {at} to {end} of {topic}-{partition}"
    return ""


def _at(position: Mapping[str, Mapping[int, int]], topic: str, partition: int) -> int:
    return position.get(topic, {}).get(partition, 0)


class OffsetsNotReached(ServerError):
    """The running version and its candidate were not brought to one position."""

    def __init__(self, query_id: str, state: OffsetSyncState, limit_s: float, detail: str) -> None:
        super().__init__(
            f"the rebuilt version of {query_id} was not cut over: {state.value}; "
            "both versions continue",
            detail=f"Within {limit_s:g} s: {detail}",
            hint="Raise ksql.query.replace.timeout.ms if batches take longer than that, or remove "
            "the cause of the failure. The cut-over is tried again.",
        )


class OffsetSyncFailed(ServerError):
    """The offset sync of two versions failed for a reason that is not theirs."""

    def __init__(self, query_id: str, state: OffsetSyncState, cause: BaseException) -> None:
        super().__init__(
            f"the rebuilt version of {query_id} was not cut over: {state.value}; "
            "both versions continue",
            detail=failures.cause(cause),
            hint="Remove the cause of the failure. The cut-over is tried again.",
        )
        if isinstance(cause, KsqlError) and cause.code // 100 == _UNAVAILABLE:
            self.code = cause.code
