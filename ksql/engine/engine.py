"""Holds the catalog and the running queries; carries out one command at a time."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from ksql.base.errors import KsqlError, ServerError
from ksql.catalog.catalog import Catalog
from ksql.catalog.model import PersistentQuery
from ksql.dataflow.ports import Runner, Switch, Topics
from ksql.engine import schemas
from ksql.engine.changes import Change, EndQuery, PauseQuery, PutQuery, applied
from ksql.engine.context import Context, Prepared
from ksql.engine.ports import Command, CommandLog
from ksql.engine.prepare import prepare
from ksql.functions.registry import Functions
from ksql.plan import codec
from ksql.topics.registry import Registry
from ksql.upgrade.validate import validate
from ksql.upgrade.verdict import Verdict

if TYPE_CHECKING:
    from ksql.base.config import Settings
    from ksql.engine.errors import UpgradeRefused
    from ksql.syntax import ast

_log = logging.getLogger(__name__)
MOST_GENERATIONS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a distributed statement; ``offset`` -1 means that nothing was written."""

    prepared: Prepared
    offset: int
    switch: Switch | None = None


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """What ``/status`` tells of a command."""

    status: Literal["QUEUED", "PARSING", "EXECUTING", "RUNNING", "TERMINATED", "SUCCESS", "ERROR"]
    message: str
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One attempt to replace a running query.

    ``offset`` is its command's, None if it was refused.
    """

    old: PersistentQuery
    statement: str
    verdict: Verdict
    plan: str | None = None
    offset: int | None = None


class UpgradeBook(Protocol):
    """Where upgrades are recorded; never raises."""

    def begun(self, upgrade: Upgrade) -> object:
        """An upgrade starts; the answer is given back at its end."""

    def finished(self, token: object, switch: Switch | None, error: str | None) -> None:
        """It has ended: switched, or rolled back because of an error."""

    def refused(self, upgrade: Upgrade) -> None:
        """The validator refused it."""

    def replayed(self, upgrade: Upgrade) -> None:
        """The command topic knows of it."""


@dataclass(frozen=True, slots=True)
class _Switched:
    """A switch whose command is not written yet, and the book's token for it."""

    token: object
    switch: Switch


class NoBook:
    """Records nothing."""

    def begun(self, upgrade: Upgrade) -> object:
        """Nothing."""
        del upgrade
        return None

    def finished(self, token: object, switch: Switch | None, error: str | None) -> None:
        """Nothing."""

    def refused(self, upgrade: Upgrade) -> None:
        """Nothing."""

    def replayed(self, upgrade: Upgrade) -> None:
        """Nothing."""


@dataclass
class Engine:
    """The engine of one server.

    Statements are prepared against the catalog as it is once the log has been read to its end; then
    topics are made, schemas registered, queries switched, the command committed. A crash before the
    commit leaves the old plan, after it the new one.
    """

    functions: Functions
    topics: Topics
    log: CommandLog
    runner: Runner
    book: UpgradeBook = field(default_factory=NoBook)
    parallelism: int = 2
    registry: Registry | None = None
    new_generation: Callable[[], int] = lambda: 1 + secrets.randbelow(MOST_GENERATIONS)
    on_change: Callable[[Catalog], None] = lambda _catalog: None
    on_command: Callable[[int, Catalog], None] = lambda _offset, _catalog: None
    catalog: Catalog = field(default_factory=Catalog)
    statuses: dict[str, CommandStatus] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def exclusive(self) -> threading.RLock:
        """The lock under which commands are carried out, for whoever reads the log beside them."""
        return self._lock

    def context(self, settings: Settings, offset: int = -1) -> Context:
        """What a statement sees now; for everything that only looks."""
        return Context(
            self.catalog,
            self.functions,
            settings,
            self.topics,
            offset,
            self.parallelism,
            self.registry,
            self.new_generation(),
        )

    def dry_run(self, statement: ast.Statement, text: str, settings: Settings) -> Prepared:
        """What the statement would do.

        Raises: StatementError.
        """
        return prepare(statement, text, self.context(settings, 0))

    def execute(self, statement: ast.Statement, text: str, settings: Settings) -> Outcome:
        """Carry a distributed statement out.

        Raises: KsqlError; nothing has changed then.
        """
        with self._lock, self.log.begin() as transaction:
            context = self.context(settings, transaction.offset)
            prepared = prepare(statement, text, context)
            if prepared.warning is not None:
                return Outcome(prepared, -1)
            command = Command(
                prepared.command_id,
                text,
                prepared.changes,
                tuple(sorted(settings.overrides.items())),
            )
            transaction.check(command)
            subjects = self._create(prepared)
            try:
                switched = self._carry_out(prepared, text, transaction.offset)
            except KsqlError:
                self._uncreate(prepared, subjects)
                raise
            try:
                transaction.append(command)
            except KsqlError as error:
                self._take_back(prepared)
                self._uncreate(prepared, subjects)
                if switched is not None:
                    self.book.finished(switched.token, None, error.text())
                raise
            switch = None
            if switched is not None:
                switch = switched.switch
                self.book.finished(switched.token, switch, None)
            self._commit(prepared)
            self._note(prepared)
            self.on_command(transaction.offset, self.catalog)
            return Outcome(prepared, transaction.offset, switch)

    def _create(self, prepared: Prepared) -> list[str]:
        """Make topics and register schemas; the subjects that are new."""
        for topic in prepared.new_topics:
            self.topics.create(topic)
        try:
            return schemas.register(prepared.registrations, self.registry)
        except KsqlError:
            self._uncreate(prepared, [])
            raise

    def _uncreate(self, prepared: Prepared, subjects: list[str]) -> None:
        self.topics.delete(topic.name for topic in prepared.new_topics)
        try:
            schemas.forget(subjects, self.registry)
        except KsqlError:  # the error that leads here is the one to tell
            _log.exception("subjects_left", extra={"subjects": subjects})

    def _carry_out(self, prepared: Prepared, text: str, offset: int) -> _Switched | None:
        """Start what is new and switch what is replaced; ends are carried out after the commit."""
        switched = None
        for change in prepared.changes:
            if not isinstance(change, PutQuery):
                continue
            old = self.catalog.queries.get(change.query.id)
            if old is None:
                self._start(change.query)
            elif old.plan != change.query.plan and old.paused:
                self.runner.check_replaceable(old)
            elif old.plan != change.query.plan:
                if prepared.verdict is None:
                    raise ServerError(f"the upgrade of {old.id} was not validated")
                upgrade = Upgrade(old, text, prepared.verdict, change.query.plan, offset)
                switched = self._switch(upgrade, change.query)
        return switched

    def _start(self, query: PersistentQuery) -> None:
        try:
            self.runner.start(query)
        except KsqlError:
            self.runner.forget(query.id)
            raise

    def _switch(self, upgrade: Upgrade, new: PersistentQuery) -> _Switched:
        token = self.book.begun(upgrade)
        try:
            switch = self.runner.replace(upgrade.old, new)
        except KsqlError as error:
            self.book.finished(token, None, error.text())
            raise
        return _Switched(token, switch)

    def note_refusal(self, refused: UpgradeRefused, text: str) -> None:
        """Record an upgrade that the validator did not allow."""
        writers = self.catalog.writers(refused.name)
        if refused.verdict is not None and writers:
            self.book.refused(Upgrade(writers[0], text, refused.verdict))

    def _take_back(self, prepared: Prepared) -> None:
        for change in prepared.changes:
            if not isinstance(change, PutQuery):
                continue
            old = self.catalog.queries.get(change.query.id)
            if old is None:
                self.runner.stop(change.query.id)
                self.runner.forget(change.query.id)
            elif old.plan != change.query.plan and not old.paused:
                self.runner.take_back(change.query, old)

    def _commit(self, prepared: Prepared) -> None:
        for change in prepared.changes:
            if isinstance(change, EndQuery):
                self.runner.stop(change.query_id)
                self.runner.forget(change.query_id)
            elif isinstance(change, PauseQuery):
                self._pause(change)
        self._apply(prepared.changes)
        self.topics.delete(prepared.doomed_topics)
        try:
            schemas.forget(prepared.doomed_subjects, self.registry)
        except KsqlError:  # the source is gone already: what is left harms nobody
            _log.exception("subjects_left", extra={"subjects": prepared.doomed_subjects})

    def _pause(self, change: PauseQuery) -> None:
        query = self.catalog.queries.get(change.query_id)
        if query is None or query.paused == change.paused:
            return
        if change.paused:
            self.runner.stop(change.query_id)
        else:
            self.runner.go_on([replace(query, paused=False)])

    def _apply(self, changes: tuple[Change, ...]) -> None:
        catalog = self.catalog
        for change in changes:
            catalog = applied(catalog, change)
        self.catalog = catalog
        self.on_change(catalog)

    def _note(self, prepared: Prepared) -> None:
        self.statuses[prepared.command_id] = CommandStatus(
            "SUCCESS", prepared.message, prepared.query_id
        )

    # --- replay and end

    def replay(self, offset: int, command: Command) -> None:
        """Fold a command of the log into the catalog without starting anything yet; idempotent."""
        with self._lock:
            self._note_upgrades(offset, command)
            self._apply(command.changes)
            self.statuses[command.id] = CommandStatus("SUCCESS", "Replayed")

    def _note_upgrades(self, offset: int, command: Command) -> None:
        for change in command.changes:
            if not isinstance(change, PutQuery):
                continue
            old = self.catalog.queries.get(change.query.id)
            if old is not None and old.plan != change.query.plan:
                plans = codec.loads(old.plan), codec.loads(change.query.plan)
                verdict, _ = validate(*plans, self.functions)
                self.book.replayed(
                    Upgrade(old, command.statement, verdict, change.query.plan, offset)
                )

    def start_queries(self) -> None:
        """Let every query that survived the replay go on, once; the runner tries until they do."""
        with self._lock:
            self.runner.go_on([q for q in self.catalog.queries.values() if not q.paused])

    def stop(self) -> None:
        """Stop all queries at a batch boundary; their checkpoints stay."""
        with self._lock:
            for query_id in self.catalog.queries:
                self.runner.stop(query_id)
