"""Cuts over the candidates of rebuilds that have caught up; drops former versions in time."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.control.engine.catch_up import Candidate, CatchUp, CatchUpSpeed
from ksql.control.engine.rebuild_progress import present_problem, seconds_behind
from ksql.control.planning.rebuild import is_over
from ksql.control.room_watch import RoomWatch
from ksql.core import KsqlError
from ksql.core.process import PeriodicWorker, RepeatedFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ksql.control.engine.engine import Engine
    from ksql.core import QueryId, QueryVersion, Settings
    from ksql.exec import BuildProgress
    from ksql.sql.catalog import FormerVersion, Rebuild

MAX_LAG: Final = "ksql.upgrade.cutover.max.lag.ms"
WAIT: Final = "ksql.upgrade.wait.ms"

_log = logging.getLogger(__name__)
_TURN_S: Final = 1.0
_LOOK_S: Final = 0.05
_MOST_WAITING: Final = 8
"""So many statements may wait at a time: each takes one of the threads of all statements."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_UNAVAILABLE: Final = 503


class _Failed(NamedTuple):
    """The failed tries to cut a candidate over: how many, when the next may be, why the last."""

    tries: int = 0
    next_try_s: float = 0.0
    problem: str = ""


@contextmanager
def _noted(problems: list[KsqlError]) -> Iterator[None]:
    """Note a problem of the block, and let the others have their turn."""
    try:
        yield
    except KsqlError as problem:
        problems.append(problem)


class RebuildSupervisor:
    """The supervisor of one server; it acts only while that one leads.

    A cut-over that fails leaves both versions running. It is tried again, after growing pauses.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        leads: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take ``clock`` and ``sleep``, in seconds."""
        self._engine = engine
        self._settings = settings
        self._leads = leads
        self._clock = clock
        self._sleep = sleep
        self._worker = PeriodicWorker(
            "rebuilds", _TURN_S, self.step, RepeatedFailure(_log, "rebuilds_not_looked_at")
        )
        self._room = RoomWatch(engine, settings, leads)
        self._turn = threading.Lock()
        self._waiting = threading.BoundedSemaphore(_MOST_WAITING)
        self._stepped = threading.Condition()
        self._catch_up = CatchUp(clock)
        self._failed: dict[Candidate, _Failed] = {}
        self.progress: Mapping[QueryId, BuildProgress] = {}
        """How far the candidates were at the last look, as far as it was known, by query."""

    def start(self) -> None:
        """Look at them, and at the room that they leave, from now on."""
        self._room.start()
        self._worker.start()

    def close(self) -> None:
        """Look no more."""
        self._room.close()
        self._worker.end()

    def step(self) -> None:
        """Look at all rebuilds and former versions once.

        Raises: the first problem, once all others were looked at: one keeps no other.
        """
        problems: list[KsqlError] = []
        if not self._leads() or not self._turn.acquire(blocking=False):
            return
        try:
            rebuilds = tuple(self._engine.catalog.rebuilds.values())
            self._keep([Candidate.of(rebuild) for rebuild in rebuilds])
            self.progress = {
                rebuild.candidate.id: progress
                for rebuild in rebuilds
                if (progress := self.progress.get(rebuild.candidate.id)) is not None
            }
            for rebuild in rebuilds:
                with _noted(problems):
                    self._look_at(rebuild)
            catalog = self._engine.catalog
            for former in tuple(catalog.former_versions.values()):
                with _noted(problems):
                    if is_over(former, catalog, self._engine.now_ms()) and self._is_left(former):
                        self._engine.forget_former(former.query.id, self._settings)
        finally:
            self._turn.release()
            with self._stepped:
                self._stepped.notify_all()
        if problems:
            raise problems[0]

    def _is_left(self, former: FormerVersion) -> bool:
        """Return whether the cut-over from a former version writes to its topic no more.

        That may take longer than the version is kept: a topic that is deleted meanwhile would be
        made once more, and nobody would delete that.
        """
        query = self._engine.catalog.queries.get(former.query.id)
        try:
            if query is not None:
                self._engine.runner.check_former(query)
        except KsqlError as problem:  # after any other problem the rows are lost anyway
            return problem.code // 100 != _UNAVAILABLE
        return True

    def _look_at(self, rebuild: Rebuild) -> None:
        progress = self._progress(rebuild)
        if progress is not None and self._is_due(rebuild, progress):
            self._cut_over(rebuild)

    def _keep(self, candidates: Collection[Candidate]) -> None:
        """Forget all candidates but these: the others were cut over or given up."""
        self._catch_up.keep(candidates)
        for gone in self._failed.keys() - set(candidates):
            del self._failed[gone]

    def growth(self, version: QueryVersion) -> CatchUpSpeed | None:
        """Return the speeds of a candidate that does not catch up; None if it does."""
        candidate = self._candidate(version)
        return None if candidate is None else self._catch_up.growth(candidate)

    def problem(self, version: QueryVersion) -> str:
        """Return why the last try to cut a candidate over failed; empty if none did."""
        candidate = self._candidate(version)
        failed = None if candidate is None else self._failed.get(candidate)
        return "" if failed is None else failed.problem

    def wait(self, version: QueryVersion, timeout_s: float) -> str:
        """Wait until a candidate was cut over or given up; not if too many wait already.

        Returns: what keeps it, if it is still built after that time; else nothing.
        """
        if not self._waiting.acquire(blocking=False):
            return f"{_MOST_WAITING} other statements wait for rebuilds."
        try:
            return self._wait(version, timeout_s)
        finally:
            self._waiting.release()

    def _wait(self, version: QueryVersion, timeout_s: float) -> str:
        deadline = self._clock() + timeout_s
        candidate = self._candidate(version)
        while candidate is not None and self._candidate(version) == candidate:
            if self._clock() >= deadline:
                return self._kept_by(version)
            if self._worker.alive:
                with self._stepped:
                    self._stepped.wait(min(max(deadline - self._clock(), 0.0), _TURN_S))
            else:
                self._step_and_rest(version)
        self._await_turn(deadline)
        return ""

    def _step_and_rest(self, version: QueryVersion) -> None:
        """Take the step that no thread takes: the query tests have none."""
        self.step()
        if self._candidate(version) is not None:
            self._sleep(_LOOK_S)

    def _await_turn(self, deadline: float) -> None:
        """Wait for a step of another thread: it ends once the new plan has had its first batch."""
        if self._turn.acquire(timeout=max(deadline - self._clock(), 0.0)):
            self._turn.release()

    def _kept_by(self, version: QueryVersion) -> str:
        progress = self._engine.runner.progress(version)
        growth = self.growth(version)
        problem = present_problem(progress, self.problem(version))
        return problem or (f"it {growth}" if growth else "it reads what is there")

    def _candidate(self, version: QueryVersion) -> Candidate | None:
        """Return the candidate that a version is; None if it is none any more."""
        rebuild = self._engine.catalog.rebuilds.get(version.query_id)
        candidate = None if rebuild is None else Candidate.of(rebuild)
        return candidate if candidate is not None and candidate.version == version else None

    def _progress(self, rebuild: Rebuild) -> BuildProgress | None:
        """Return how far a candidate is, and note it; None if it does not run."""
        version, candidate = rebuild.candidate.version, Candidate.of(rebuild)
        progress = None
        if self._engine.catalog.running(version) is not None:
            progress = self._engine.runner.progress(version)
        if progress is None or progress.problem:
            self._catch_up.forget(candidate)
            return None
        self._catch_up.observe(candidate, progress, self._most_s())
        self.progress = {**self.progress, version.query_id: progress}
        return progress

    def _is_due(self, rebuild: Rebuild, progress: BuildProgress) -> bool:
        """Return whether a candidate has caught up, and is not resting after a failed try."""
        if self._clock() < self._failed.get(Candidate.of(rebuild), _Failed()).next_try_s:
            return False
        behind_s = seconds_behind(progress)
        if behind_s is None:
            return False
        most_s = self._most_s()
        # the position of a version is that of its last batch: the running one has a lag as well
        query_id = rebuild.candidate.id
        return behind_s <= most_s or behind_s <= most_s + self._running_behind_s(query_id)

    def _most_s(self) -> float:
        return self._settings.number(MAX_LAG) / 1000

    def _running_behind_s(self, query_id: QueryId) -> float:
        version = self._engine.catalog.version_of(query_id)
        progress = self._engine.runner.progress(version)
        return (seconds_behind(progress) or 0.0) if progress is not None else 0.0

    def _cut_over(self, rebuild: Rebuild) -> None:
        version, candidate = rebuild.candidate.version, Candidate.of(rebuild)
        try:
            self._engine.cut_over(version.query_id, self._settings)
        except KsqlError as problem:
            tries = self._failed.get(candidate, _Failed()).tries
            next_try_s = self._clock() + min(_FIRST_PAUSE_S * 2**tries, _LONGEST_PAUSE_S)
            self._failed[candidate] = _Failed(tries + 1, next_try_s, problem.text())
            _log.warning("cut_over_failed", extra={"query": version.name, "why": problem.text()})
