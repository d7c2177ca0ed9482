"""Carries out commands one at a time: prepares, starts, logs, applies them to the catalog."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from ksql.control.engine.changes import (
    BeginRebuild,
    Change,
    CutOverQuery,
    EndQuery,
    EndRebuild,
    IdsFrom,
    PauseQuery,
    PutQuery,
    applied,
)
from ksql.control.engine.command_execution import (
    CommandExecution,
    ExecutionContext,
    Upgrade,
    UpgradeHistory,
)
from ksql.control.engine.context import PlanningContext, Prepared, with_settings
from ksql.control.engine.errors import UpgradeRefused
from ksql.control.engine.pending_deletions import (
    AppliedOffset,
    MemoryAppliedOffset,
    PendingDeletions,
)
from ksql.control.engine.ports import Command, CommandInDoubt, CommandLog, CommandStatus, StatusName
from ksql.control.engine.rebuild_progress import check_room
from ksql.control.engine.replacement_locks import (
    ReplacementLocks,
    check_present,
    check_same,
    start_replacement,
)
from ksql.control.engine.replayed_upgrades import Replayed, note_rebuild
from ksql.control.planning import abort_rollback, cut_over, rebuild
from ksql.control.planning.prepare import prepare
from ksql.core import KsqlError, QueryVersion, ServerError, StatementError, note, noting
from ksql.exec import HALF_WRITTEN, Runner, Switch, Topics
from ksql.formats import Registry
from ksql.functions import Functions
from ksql.sql.catalog import Catalog, PersistentQuery
from ksql.sql.plan import codec
from ksql.sql.upgrade import ReplacementKind, Verdict, validate_upgrade

if TYPE_CHECKING:
    from ksql.core import QueryId, Settings
    from ksql.sql.syntax import ast

_log = logging.getLogger(__name__)
MOST_GENERATIONS = 2**32 - 1
KEEP: Final = "ksql.upgrade.keep.ms"
_FIRST_BATCH_S: Final = 30.0
_LAST_BATCH_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a distributed statement; ``offset`` -1 means that nothing was written.

    ``left`` is what ``Switch`` has, for a query that is paused.
    """

    prepared: Prepared
    offset: int
    switch: Switch | None = None
    left: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences that a user must know of a replacement that counts."""
        switch = self.switch
        messages = (self.left, switch.left, switch.problem) if switch is not None else (self.left,)
        return tuple(filter(None, messages))


@dataclass(kw_only=True)
class Engine:
    """The engine of one server.

    Statements are prepared against the catalog as it is once the log has been read to its end. They
    are carried out as ``CommandExecution`` says, one at a time but for what ``replacement_locks``
    waits for. A crash before the command is in the log leaves the old plan, after it the new one.
    ``on_doubt`` is called when ``settle`` is to be repeated until ``settled``.
    """

    functions: Functions
    topics: Topics
    log: CommandLog
    runner: Runner
    history: UpgradeHistory = field(default_factory=UpgradeHistory)
    parallelism: int = 2
    registry: Registry | None = None
    new_generation: Callable[[], int] = lambda: 1 + secrets.randbelow(MOST_GENERATIONS)
    now_ms: Callable[[], int] = lambda: 0
    on_change: Callable[[Catalog], None] = lambda _catalog: None
    on_doubt: Callable[[], None] = lambda: None
    applied_offset: AppliedOffset = field(default_factory=MemoryAppliedOffset)
    catalog: Catalog = field(default_factory=Catalog)
    statuses: dict[str, CommandStatus] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _doubt: CommandExecution | None = None
    _unlike: set[QueryVersion] = field(default_factory=set)
    _ids: IdsFrom | None = None
    _ended: bool = False

    def __post_init__(self) -> None:
        self._replacements = ReplacementLocks()
        self._pending_deletions = PendingDeletions(self.topics, self.registry, self.applied_offset)

    def exclusive(self) -> threading.RLock:
        """Return the lock under which commands are carried out; readers of the log take it, too."""
        return self._lock

    def context(
        self, settings: Settings, offset: int = -1, generation: int | None = None
    ) -> PlanningContext:
        """Return the present state of the server, against which a statement is prepared."""
        return PlanningContext(
            catalog=self.catalog,
            functions=self.functions,
            settings=settings,
            topics=self.topics,
            offset=offset,
            parallelism=self.parallelism,
            registry=self.registry,
            generation=self.new_generation() if generation is None else generation,
            ids=self._ids,
            now_ms=self.now_ms(),
        )

    def dry_run(self, statement: ast.Statement, text: str, settings: Settings) -> Prepared:
        """Return the effects that the statement would have.

        Raises: StatementError.
        """
        return prepare(statement, text, self.context(settings, 0))

    def execute(
        self, statement: ast.Statement, text: str, settings: Settings, user: str = ""
    ) -> Outcome:
        """Carry a distributed statement out, for the user who has sent it.

        Raises: KsqlError, and nothing has changed then; CommandInDoubt: that is not known yet.
        """
        generation = self.new_generation()

        def prepared(offset: int) -> Prepared:
            return prepare(statement, text, self.context(settings, offset, generation))

        return self._carry_out(prepared, text, settings, user)

    def cut_over(self, query_id: QueryId, settings: Settings) -> Outcome:
        """Cut a query over to its candidate, unless it has none any more, or is paused.

        Raises: KsqlError, and both versions run on then; CommandInDoubt: that is not known yet.
        """
        keep_ms = settings.number(KEEP)

        def prepared(offset: int) -> Prepared:
            return cut_over.prepared(query_id, self.context(settings, offset), keep_ms)

        return self._carry_out(prepared, rebuild.CUT_OVER, settings)

    def forget_former(self, query_id: QueryId, settings: Settings) -> Outcome:
        """Give up a query's former version whose time is over, if it has one.

        Raises: as ``execute``.
        """

        def prepared(offset: int) -> Prepared:
            return rebuild.forgotten(query_id, self.context(settings, offset))

        return self._carry_out(prepared, rebuild.FORGET, settings)

    def end_rebuild(self, query_id: QueryId, reason: str, settings: Settings) -> Outcome:
        """Give up a query's candidate, if it has one, for a reason that is no statement's.

        Raises: as ``execute``.
        """

        def prepared(offset: int) -> Prepared:
            return abort_rollback.ended(query_id, self.context(settings, offset))

        return self._carry_out(prepared, reason, settings)

    def _carry_out(
        self, prepared: Callable[[int], Prepared], text: str, settings: Settings, user: str = ""
    ) -> Outcome:
        """Carry out what is ``prepared`` for its command's offset; for other commands, too."""
        with noting():
            return self._log_and_run(prepared, text, settings, user)

    def _log_and_run(
        self, prepared: Callable[[int], Prepared], text: str, settings: Settings, user: str
    ) -> Outcome:

        def command(prepared: Prepared) -> Command:
            properties = tuple(sorted(settings.overrides.items()))
            by = user if prepared.upgrades else ""
            return Command(prepared.command_id, text, prepared.changes, properties, by)

        with self._lock:
            self.settle()
            with self.log.begin() as transaction:
                first = prepared(transaction.offset)
                note(statement_id=first.command_id)
                if first.warning is not None:
                    return Outcome(first, -1)
                self._replacements.refuse(first.changes)
                check_room(first, self.catalog, self.runner, settings)
                transaction.check(command(first))
                allowed = settings.flag(HALF_WRITTEN)
                execution = CommandExecution(
                    self._execution_context(),
                    first,
                    text,
                    transaction.offset,
                    half_written=allowed,
                    user=user,
                )
                waiting = execution.replaced
                if waiting is None:
                    append = partial(transaction.append, command(first))
                    self._count(execution, partial(execution.run, append))
                else:
                    with execution.or_taken_back():
                        execution.make()
                    self._replacements.reserve(waiting.query_id, execution)
        if waiting is not None:
            self._replace(waiting, execution, prepared, command)
        execution.finish(_FIRST_BATCH_S)
        self._await_resumed(first.changes)
        return Outcome(execution.prepared, execution.offset, execution.switch, execution.left)

    def _execution_context(self) -> ExecutionContext:
        return ExecutionContext(
            catalog=self.catalog,
            topics=self.topics,
            registry=self.registry,
            runner=self.runner,
            history=self.history,
        )

    def _replace(
        self,
        version: QueryVersion,
        execution: CommandExecution,
        prepared: Callable[[int], Prepared],
        command: Callable[[Prepared], Command],
    ) -> None:
        """Make way for a reserved query's plan, without the lock; then write its command.

        The new plan runs only after that. Nothing runs while the last check and the command are
        waited for.

        Raises: KsqlError, and nothing has changed then; CommandInDoubt: that is not known yet.
        """
        query_id = version.query_id
        try:
            with execution.or_taken_back():
                start_replacement(query_id, execution)
                with self._lock:
                    check_present(query_id, execution)
                    self.settle()
                    with self.log.begin() as transaction:
                        again = prepared(transaction.offset)
                        check_same(query_id, execution, again)
                        execution.moved(again, transaction.offset)
                        transaction.check(command(again))
                        append = partial(transaction.append, command(again))
                        self._count(execution, partial(execution.commit, append))
        finally:
            with self._lock:
                self._replacements.release(query_id)
                if execution.cancelled_by and not self._ended:
                    # a step back may have started them once more
                    self._unlike |= {version, *self.catalog.versions_of(query_id)}
                    self._tidy_or_try_again()

    def _count(self, execution: CommandExecution, work: Callable[[], None]) -> None:
        """Do the work that ends with the command in the log, and what follows from that."""
        try:
            work()
        except CommandInDoubt as doubt:
            self._doubt = execution
            self._tell(execution, "EXECUTING", doubt.text())
            self.on_doubt()
            raise
        self._done(execution)

    def _await_resumed(self, changes: tuple[Change, ...]) -> None:
        """Wait some seconds for queries that continue; other statements do not wait with them."""
        continued = [c.query_id for c in changes if isinstance(c, PauseQuery) and not c.paused]
        resumed = [self.catalog.version_of(query_id) for query_id in continued]
        if resumed:
            self.runner.await_first_attempt(resumed)

    def settle(self) -> None:
        """Settle a command in doubt, and do what earlier commands have left to do.

        Raises: CommandInDoubt as long as the log does not show whether the command counts.
        """
        with self._lock:
            execution = self._doubt
            if execution is not None:
                try:
                    written = self.log.settle()
                except KsqlError as problem:
                    raise CommandInDoubt(execution.prepared.command_id, problem.text()) from problem
                self._doubt = None
                if written:
                    execution.done()
                    self._done(execution)
                    execution.finish(0.0)
                else:
                    lost = NotWritten(execution.prepared.command_id)
                    execution.rollback(lost)
                    self._tell(execution, "ERROR", lost.text())
            self._tidy()

    @property
    def settled(self) -> bool:
        """Whether no command is in doubt and none has left anything to do."""
        with self._lock:
            return self._doubt is None and not self._unlike and not self._pending_deletions.open()

    def _done(self, execution: CommandExecution) -> None:
        """Apply a logged command: memory first, then all else, which is tried until it is done."""
        changes, before = execution.prepared.changes, self.catalog
        self._apply(changes)
        for change in changes:
            self._replacements.cancel(change, execution.prepared.command_id)
            match change:
                case EndQuery(query_id) | PauseQuery(query_id):
                    self._unlike |= before.versions_of(query_id)
                case BeginRebuild(begun) if not self.catalog.running(begun.candidate.version):
                    self._unlike.add(begun.candidate.version)  # the query is paused
                case EndRebuild(query_id) if query_id in before.rebuilds:
                    # a former version stays in the catalog, and runs no more
                    self._unlike.add(before.rebuilds[query_id].candidate.version)
                case _:
                    continue
        self._unlike |= execution.unlike | (set(before.versions) - set(self.catalog.versions))
        self._pending_deletions.add(execution.offset, changes)
        self._tidy_or_try_again()
        self._tell(execution, "SUCCESS", execution.prepared.message)

    def _tidy_or_try_again(self) -> None:
        self._tidy()
        if not self.settled:
            self.on_doubt()

    def _tidy(self) -> None:
        """Bring what runs, and the topics, to what the catalog says; what fails is left for later.

        Queries first: a topic goes when nobody writes to it.
        """
        for version in self._unlike - self._not_stopped():
            try:
                self._bring(version)
            except Exception:  # noqa: BLE001 - the command counts; it is tried again
                _log.exception("query_not_brought", extra={"query_id": version.name})
            else:
                self._unlike.discard(version)
        self._pending_deletions.keep()

    def _not_stopped(self) -> set[QueryVersion]:
        """Stop what is not to run any more, all at once: other statements wait for it.

        Their commands count, so no batch has to be finished: a paused query repeats it.

        Returns: those that could not be stopped.
        """
        ended = {version for version in self._unlike if self.catalog.running(version) is None}
        try:
            self.runner.stop_soon(ended)
        except Exception:  # noqa: BLE001 - the commands count; it is tried again
            names = sorted(version.name for version in ended)
            _log.exception("queries_not_stopped", extra={"query_ids": names})
            return ended
        return set()

    def _bring(self, version: QueryVersion) -> None:
        if (query := self.catalog.running(version)) is not None:
            self.runner.resume_async([query])
        elif version not in self.catalog.versions:
            self.runner.forget(version)

    def note_refusal(
        self,
        query: PersistentQuery,
        refused: StatementError,
        text: str,
        mode: ReplacementKind = "in_place",
        user: str = "",
    ) -> None:
        """Record an attempt to replace the query which was refused, for any reason."""
        verdict = refused.verdict if isinstance(refused, UpgradeRefused) else None
        verdict = verdict or Verdict.before_plans(refused.message)
        upgrade = Upgrade(old=query, statement=text, verdict=verdict, mode=mode, user=user)
        self.history.refused(upgrade)

    def _apply(self, changes: tuple[Change, ...]) -> None:
        catalog = self.catalog
        for change in changes:
            catalog = applied(catalog, change)
            self._ids = change if isinstance(change, IdsFrom) else self._ids
        self.catalog = catalog
        self.on_change(catalog)

    def _tell(self, execution: CommandExecution, status: StatusName, message: str) -> None:
        prepared = execution.prepared
        self.statuses[prepared.command_id] = CommandStatus(status, message, prepared.query_id)

    # --- replay and end

    def replay(self, offset: int, command: Command) -> None:
        """Fold a command of the log into the catalog without starting anything yet; idempotent."""
        with self._lock:
            self._note_upgrades(offset, command)
            for change in command.changes:
                replayed = Replayed(self.catalog, offset, command.user)
                note_rebuild(self.history, self.functions, replayed, change)
            self._apply(command.changes)
            self._pending_deletions.replayed(offset, command.changes)
            if command.changes:  # else it fills a place: nobody has sent it
                self.statuses[command.id] = CommandStatus("SUCCESS", "Replayed")

    def _note_upgrades(self, offset: int, command: Command) -> None:
        for change in command.changes:
            if not isinstance(change, PutQuery):
                continue
            old = self.catalog.queries.get(change.query.id)
            same = old is not None and old.version == change.query.version
            if old is not None and same and old.plan != change.query.plan:
                before, after = (
                    codec.loads(text, self.functions) for text in (old.plan, change.query.plan)
                )
                verdict, _ = validate_upgrade(before, after, self.functions)
                verdict = with_settings(verdict, old, change.query)
                self.history.replayed(
                    Upgrade(
                        old=old,
                        statement=command.statement,
                        verdict=verdict,
                        plan=change.query.plan,
                        offset=offset,
                        user=command.user,
                    )
                )

    def start_queries(self, held: Collection[str] = ()) -> None:
        """Start every query that survived the replay, once; the runner tries until they run.

        ``held`` are the queries that must not be started now.
        """
        with self._lock:
            self.runner.resume([q for q in self.catalog.all_running if q.id not in held])
            self._tidy()

    def stop(self) -> None:
        """Stop all queries at once, each at a batch boundary; their checkpoints stay."""
        with self._lock:
            self._ended = True
            self._replacements.cancel_all("the end of the server")
            doubtful = self._doubt.prepared.changes if self._doubt is not None else ()
            new = [version for change in doubtful if (version := _begun(change)) is not None]
            self.runner.stop_soon({*self.catalog.versions, *new}, _LAST_BATCH_S)


def _begun(change: Change) -> QueryVersion | None:
    """Return the version that a change begins, if it does."""
    match change:
        case PutQuery(query) | CutOverQuery(query):
            return query.version
        case BeginRebuild(begun):
            return begun.candidate.version
        case _:
            return None


class NotWritten(ServerError):
    """A command that was in doubt is not in the log."""

    def __init__(self, command: str) -> None:
        super().__init__(
            f"the statement {command} does not count: Kafka went away before it was written",
            hint="Nothing has changed. Send it again.",
        )
