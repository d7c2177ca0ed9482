"""Executes one command as a state machine: make topics, start queries, log it, or undo it.

    PREPARED -> MAKING -> STARTING -> WRITING -> exit

A replacement that waits for its query's batches does so in STARTING, without the engine's lock.
Other commands may come in between, and a command that ends the query cancels it
(``cancelled_by``). Its new plan was tried without an effect then. It runs only once the log names
it.

It leaves by one of three exits:

- *done*: the command is in the log. The queries that it started run, a replaced one under its new
  plan. The engine ends the queries that it terminates.
- *taken back* (from every state): it is not in the log, and all is as it was before. Each query
  runs under its old plan. Only topics, subjects and versions of schemas that this command made are
  gone again.
- *in doubt* (from WRITING): Kafka did not say whether the command counts. All stays as it is,
  nothing is deleted, a replaced query rests, until ``settled`` knows from the log; then it is done
  or taken back.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from ksql.control.engine.changes import BeginRebuild, CutOverQuery, EndQuery, EndRebuild, PutQuery
from ksql.control.engine.context import Prepared, runs_otherwise
from ksql.control.engine.ports import CommandInDoubt
from ksql.control.planning import schemas
from ksql.core import KsqlError, ServerError
from ksql.exec import AwaitFirst, Runner, Switch, Topics
from ksql.formats import Registry
from ksql.sql.catalog import Catalog, PersistentQuery, Rebuild, Topic
from ksql.sql.upgrade import ReplacementKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ksql.core import QueryVersion

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """One attempt to replace a query.

    ``offset`` is its command's, None if it was refused. ``mode`` is how it was to be replaced,
    ``user`` who requested it; empty without users.
    """

    old: PersistentQuery
    statement: str
    verdict: Verdict
    plan: str | None = None
    offset: int | None = None
    mode: ReplacementKind = "in_place"
    user: str = ""


class UpgradeHistory:
    """Where upgrades are recorded; never raises. This one records nothing."""

    def begun(self, upgrade: Upgrade) -> object:
        """Record an attempt that starts; the answer is given back at its end."""
        return None

    def moved(self, token: object, offset: int) -> None:
        """Note that its command has another offset than it had when it was begun."""

    def switched(self, token: object, switch: Switch | None) -> None:
        """End an attempt whose command counts; ``switch`` is None if nothing had to be switched."""

    def rolled_back(self, token: object, error: str) -> None:
        """Note that it does not count, because of that error."""

    def refused(self, upgrade: Upgrade) -> None:
        """Record an attempt that the validator refused."""

    def replayed(self, upgrade: Upgrade) -> None:
        """Record an upgrade that the command topic knows of."""

    def rebuild_begun(
        self, upgrade: Upgrade, candidate: QueryVersion, *, rollback: bool = False
    ) -> None:
        """Record a rebuild whose command counts."""

    def rebuilt(self, candidate: QueryVersion, switch: Switch | None) -> None:
        """End a rebuild whose cut-over counts; ``switch`` is None if its place is not known."""

    def rebuild_ended(self, candidate: QueryVersion, reason: str) -> None:
        """End a rebuild that was given up, for that reason."""

    def rebuild_replayed(
        self, upgrade: Upgrade, candidate: QueryVersion, *, rollback: bool = False
    ) -> None:
        """Note a rebuild that the command topic knows of, before it knows how it ended."""

    def rebuild_end_replayed(self, candidate: QueryVersion, *, switched: bool) -> None:
        """Note how a rebuild of the command topic ended."""


class State(Enum):
    """The state of a command."""

    PREPARED = "nothing was done yet"
    MAKING = "its topics and schemas are made"
    STARTING = "its queries are started and switched"
    WRITING = "it is written to the log"
    DONE = "it counts"
    TAKEN_BACK = "it does not count and has left nothing"
    IN_DOUBT = "nobody knows whether it counts"


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """The catalog and the services that a command acts upon."""

    catalog: Catalog
    topics: Topics
    registry: Registry | None
    runner: Runner
    history: UpgradeHistory


class CommandExecution:
    """One command on its way; used once."""

    def __init__(
        self,
        context: ExecutionContext,
        prepared: Prepared,
        text: str,
        offset: int,
        *,
        half_written: bool = False,
        user: str = "",
    ) -> None:
        """Take the ``offset`` that the command will get.

        ``half_written`` allows a new plan to run a batch of which a part is written. ``user`` is
        who has sent the statement.
        """
        self.state = State.PREPARED
        self.switch: Switch | None = None
        self.left = ""
        """What it means that a batch of a paused query is left to its new plan."""
        self.unlike: set[QueryVersion] = set()
        """The versions that may not run as the log says, as a call of a step has failed."""
        self.prepared = prepared
        self.offset = offset
        self.cancelled_by = ""
        """The command that has come in between and ends what this one replaces."""
        self._context = context
        self._text = text
        self._half_written = half_written
        self._user = user
        self._undo: list[Callable[[], object]] = []
        self._attempts: list[object] = []
        self._await_first: AwaitFirst | None = None

    def run(self, append: Callable[[], None]) -> None:
        """Carry it out; ``append`` writes it to the log.

        Raises: CommandInDoubt; KsqlError, and nothing has changed then.
        """
        with self.or_taken_back():
            self.make()
            self.start()
            self.commit(append)

    @contextmanager
    def or_taken_back(self) -> Iterator[None]:
        """Take the command back if something fails before it counts, or may count.

        Raises: CommandInDoubt; KsqlError, and nothing has changed then.
        """
        try:
            yield
        except BaseException as problem:
            if self.state in (State.IN_DOUBT, State.DONE):
                raise
            self.rollback(problem)
            if isinstance(problem, KsqlError) or not isinstance(problem, Exception):
                raise
            raise NotExecuted(problem) from problem

    @property
    def replaced(self) -> QueryVersion | None:
        """The running version that gets another plan, or runs otherwise, if there is one."""
        switched = (old.version for old, _ in (*self._switched(), *self._cut_over()))
        return next(switched, None)

    def moved(self, prepared: Prepared, offset: int) -> None:
        """Give it another place in the log, and what was prepared for that place."""
        self.prepared = prepared
        if offset != self.offset:
            self.offset = offset
            for attempt in self._attempts:
                self._context.history.moved(attempt, offset)

    def commit(self, append: Callable[[], None]) -> None:
        """Write it to the log; then it is done.

        Raises: CommandInDoubt; whatever kept it from the log.
        """
        self.state = State.WRITING
        if self._registers_last():
            self._register()
        try:
            append()
        except CommandInDoubt:
            self.state = State.IN_DOUBT
            raise
        self.done()

    def done(self) -> None:
        """Finish a command that is in the log: a replaced query runs under its new plan."""
        self.state = State.DONE
        if self.switch is not None:
            try:
                self._start_new_plans()
            except Exception:  # noqa: BLE001 - the command counts; the engine tries it again
                _log.exception("query_not_brought", extra={"query_id": str(self.replaced)})
                changed = (*self._switched(), *self._cut_over())
                self.unlike = {query.version for pair in changed for query in pair}
        self._note_rebuilds()

    def _start_new_plans(self) -> None:
        for _, new in self._switched():
            self._await_first = self._context.runner.commit_switch(new)
        for old, new in self._cut_over():
            self._await_first = self._context.runner.cut_over(old, new)

    def _note_rebuilds(self) -> None:
        """Have the beginnings and the ends of rebuilds recorded."""
        catalog, history = self._context.catalog, self._context.history
        for change in self.prepared.changes:
            match change:
                case BeginRebuild(rebuild):
                    upgrade = Upgrade(
                        old=catalog.queries[rebuild.candidate.id],
                        statement=rebuild.candidate.statement,
                        verdict=self.prepared.verdict or Verdict.of_rollback(),
                        plan=rebuild.candidate.plan,
                        offset=self.offset,
                        mode=rebuild.mode,
                        user=self._user,
                    )
                    version = rebuild.candidate.version
                    history.rebuild_begun(upgrade, version, rollback=rebuild.rollback)
                case EndRebuild(query_id) | EndQuery(query_id) if query_id in catalog.rebuilds:
                    version = catalog.rebuilds[query_id].candidate.version
                    history.rebuild_ended(version, self._text)
                case _:
                    continue

    def finish(self, timeout_s: float) -> None:
        """Wait for a new plan's first batch, and have it recorded; for a command that counts."""
        if self.switch is not None and self._await_first is not None:
            first = self._await_first(timeout_s)
            self.switch = replace(
                self.switch,
                gap_ms=first.gap_ms,
                problem=first.problem,
                difference=first.difference,
            )
        for attempt in self._attempts:
            self._context.history.switched(attempt, self.switch)
        self._attempts.clear()
        if self.switch is not None:
            for _, new in self._cut_over():
                self._context.history.rebuilt(new.version, self.switch)

    def rollback(self, problem: BaseException) -> None:
        """Undo all that was done, the last first; what cannot be undone is logged."""
        for undo in reversed(self._undo):
            try:
                undo()
            except Exception:  # noqa: BLE001 - the rest must be undone all the same
                extra = {"command": self.prepared.command_id, "state": self.state.name}
                _log.exception("not_taken_back", extra=extra)
        message = problem.text() if isinstance(problem, KsqlError) else str(problem)
        for attempt in self._attempts:
            self._context.history.rolled_back(attempt, message)
        self.state = State.TAKEN_BACK

    def make(self) -> None:
        """Make its topics, and its schemas if it replaces nothing."""
        self.state = State.MAKING
        topics = self._context.topics
        for topic in self.prepared.new_topics:
            if topics.create(topic) or self._recreated(topic):
                self._undo.append(lambda name=topic.name: topics.delete([name]))  # type: ignore[misc] # bound now
        schemas.check(self.prepared.later_registrations, self._context.registry)
        if not self._registers_last():
            self._register()

    def _recreated(self, topic: Topic) -> bool:
        """Empty the topic of a candidate, if one that never counted has left it."""
        begun = [c.rebuild for c in self.prepared.changes if isinstance(c, BeginRebuild)]
        if not begun or begun[0].rollback:
            return False
        self._context.topics.delete([topic.name])
        return self._context.topics.create(topic)

    def _registers_last(self) -> bool:
        """Return whether its schemas are the last that may refuse it: none is left if it fails."""
        return any(True for _ in (*self._replacements(), *self._cut_over()))

    def _register(self) -> None:
        registry = self._context.registry
        added = schemas.register(self.prepared.registrations, registry)
        self._undo.append(lambda: schemas.rollback(added, registry))

    def start(self) -> None:
        """Start its new queries, and switch the one that it replaces."""
        self.state = State.STARTING
        for change in self.prepared.changes:
            match change:
                case PutQuery(query) if query.id not in self._context.catalog.queries:
                    self._start_new(query)
                case BeginRebuild(rebuild):
                    self._start_candidate(rebuild)
                case _:
                    continue
        for old, new in self._replacements():
            self._replace(old, new)
        for old, _ in self._cut_over():
            self._stop_both(old)

    def _replacements(self) -> Iterator[tuple[PersistentQuery, PersistentQuery]]:
        """Yield the queries that are stated again, before and after."""
        for change in self.prepared.changes:
            if isinstance(change, PutQuery):
                old = self._context.catalog.queries.get(change.query.id)
                if old is not None:
                    yield old, change.query

    def _switched(self) -> Iterator[tuple[PersistentQuery, PersistentQuery]]:
        """Yield those that run and must run otherwise."""
        for old, new in self._replacements():
            if not old.paused and runs_otherwise(old, new):
                yield old, new

    def _start_new(self, query: PersistentQuery) -> None:
        runner = self._context.runner
        self._undo.append(lambda: runner.forget(query.version))
        self._undo.append(lambda: runner.stop(query.version))
        runner.start(query)

    def _start_candidate(self, rebuild: Rebuild) -> None:
        """Start a candidate, or let a former version continue as one."""
        if not rebuild.rollback:
            self._start_new(rebuild.candidate)
            return
        runner, candidate = self._context.runner, rebuild.candidate
        runner.check_former(self._context.catalog.queries[candidate.id])
        self._undo.append(lambda: runner.stop_soon([candidate.version]))
        runner.resume_async([candidate])

    def _cut_over(self) -> Iterator[tuple[PersistentQuery, PersistentQuery]]:
        """Yield a query that runs and its candidate as it will run."""
        for change in self.prepared.changes:
            if isinstance(change, CutOverQuery):
                old = self._context.catalog.queries.get(change.query.id)
                if old is not None and old.version != change.query.version:
                    yield old, change.query

    def _stop_both(self, old: PersistentQuery) -> None:
        """Bring a query and its candidate to one position, and end both there."""
        runner, rebuild = self._context.runner, self._context.catalog.rebuilds[old.id]
        candidate = rebuild.candidate
        self.switch = runner.stop_at_same_offsets(old, candidate, may_leave=not rebuild.backfill)
        self._undo.append(lambda: self._resume_both(old, candidate))
        if rebuild.backfill:
            runner.backfill(old, candidate)

    def _resume_both(self, old: PersistentQuery, candidate: PersistentQuery) -> None:
        """Let both continue; if one was ended meanwhile, the engine starts the other again."""
        if self.cancelled_by:
            self._context.runner.stop_soon([old.version, candidate.version])
        else:
            self._context.runner.resume_both(old, candidate)

    def _replace(self, old: PersistentQuery, new: PersistentQuery) -> None:
        verdict, runner = self.prepared.verdict, self._context.runner
        if verdict is None:
            raise ServerError(f"the upgrade of {old.id} was not validated")
        upgrade = Upgrade(
            old=old,
            statement=self._text,
            verdict=verdict,
            plan=new.plan,
            offset=self.offset,
            user=self._user,
        )
        self._attempts.append(self._context.history.begun(upgrade))
        if not runs_otherwise(old, new):
            return
        if old.paused:
            self.left = runner.check_replaceable(old, half_written=self._half_written)
            return
        self.switch = runner.prepare_switch(old, new, half_written=self._half_written)
        self._undo.append(lambda: self._rollback_switch(old))

    def _rollback_switch(self, old: PersistentQuery) -> None:
        """Let a query continue under its old plan; one that was ended meanwhile just ends."""
        if self.cancelled_by:
            self._context.runner.stop_soon([old.version])
        else:
            self._context.runner.rollback_switch(old)


class NotExecuted(ServerError):
    """A statement met an error of the system; it was taken back."""

    def __init__(self, problem: Exception) -> None:
        first = (str(problem) or type(problem).__name__).strip().splitlines()[0]
        super().__init__(
            "the statement could not be carried out; nothing has changed",
            detail=first,
            hint="The server's log has the whole error.",
        )
