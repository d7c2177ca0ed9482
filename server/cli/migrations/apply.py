"""``apply``: the files that are due, one after the other, up to the first failure.

A file that failed is continued with the statement that failed, as long as those before it are the
same. Source: ksqlDB's ApplyMigrationCommand, which begins with the first statement again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from server.cli.client import Client, JsonObject
from server.cli.grid import clean
from server.cli.kept import without_secrets
from server.cli.migrations.check import FileRefused, disallowed, dry_run, in_its_place
from server.cli.migrations.failure import SERVER_ERRORS, MigrationFailed, reason_of
from server.cli.migrations.lock import ApplyLock
from server.cli.migrations.metadata import CURRENT, NONE, Metadata, State, VersionRow, reason
from server.cli.migrations.project import MigrationFile, Say, checksum
from server.cli.migrations.statements import (
    Allowed,
    FileSession,
    allowed_by,
    batches,
    check_supported,
    filled,
    statements_of,
)
from server.cli.migrations.validate import validate
from server.cli.session import Session
from server.cli.split import Statement


@dataclass(frozen=True, slots=True)
class Target:
    """Which files are due: all, the next one, those up to a version, or one of a version."""

    all: bool = False
    next: bool = False
    until: int | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How files are applied.

    ``restart``: one that failed begins with its first statement. ``take_over``: from an apply that
    was killed.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    restart: bool = False
    take_over: bool = False


def due(files: Sequence[MigrationFile], previous: str, target: Target) -> list[MigrationFile]:
    """Return the files to apply after the version that was applied last.

    Raises: MigrationFailed.
    """
    first = 1 if previous == NONE else int(previous) + 1
    if target.version is not None:
        chosen = [file for file in files if file.version == target.version]
        if not chosen:
            raise MigrationFailed(f"No migration file with version {target.version} exists.")
        if target.version < first:
            raise MigrationFailed(
                "Version must be newer than the last version migrated. "
                f"Last version migrated was {previous}"
            )
        return chosen
    pending = [file for file in files if file.version >= first]
    if target.next:
        return pending[:1]
    if target.until is not None:
        return [file for file in pending if file.version <= target.until]
    return pending


@dataclass(frozen=True, slots=True)
class Progress:
    """How many statements of a file were carried out, and the checksum of their texts.

    The texts have the values of their variables: with other values they are other statements.
    """

    count: int
    digest: str

    @classmethod
    def of(cls, done: Sequence[Statement], variables: Mapping[str, str]) -> Progress:
        """Return the progress after those statements, the first of their file."""
        texts = (one.text for one in filled(done, variables))
        return cls(len(done), checksum("\n".join(texts).encode()))

    @classmethod
    def read(cls, entry: VersionRow | None) -> Progress:
        """Return the progress that a row of the metadata keeps."""
        count, _, digest = ("" if entry is None else entry.checksum).partition(":")
        return cls(int(count), digest) if count.isdecimal() else cls(0, "")

    def __str__(self) -> str:
        return f"{self.count}:{self.digest}"


def progress_key(version: int) -> str:
    """Return the key of the row that keeps the progress of a file."""
    return f"{version}/statements"


@dataclass(kw_only=True)
class Applying:
    """The parts that ``apply`` works with."""

    client: Client
    metadata: Metadata
    say: Say
    options: Options
    now_ms: Callable[[], int]

    def __post_init__(self) -> None:
        self.lock = ApplyLock(self.metadata, self.say, self.now_ms)

    def run(self, files: Sequence[MigrationFile], target: Target) -> None:
        """Apply what is due.

        Raises: MigrationFailed at the first statement that fails; its file is in ERROR then.
        """
        self.metadata.check()
        if self.options.dry_run:
            self._run(files, target)
            return
        self.lock.take(over=self.options.take_over)
        try:
            self._run(files, target)
        finally:
            self.lock.release()

    def _run(self, files: Sequence[MigrationFile], target: Target) -> None:
        self.say("Validating current migration state before applying new migrations")
        validate(self.metadata, files)
        previous = self.metadata.latest_migrated()
        self._say_interrupted()
        self.say("Loading migration files")
        pending = due(files, previous, target)
        loaded = f"{len(pending)} migration file(s) loaded."
        self.say(loaded if pending else "No eligible migrations found.")
        for file in pending:
            self._apply(file, previous)
            previous = str(file.version)

    def _say_interrupted(self) -> None:
        current = self.metadata.entry(CURRENT)
        if current is not None and current.state == "RUNNING":
            self.say(
                f"Version {current.version} is RUNNING: its apply was interrupted, "
                "or another one is at work."
            )

    def _apply(self, file: MigrationFile, previous: str) -> None:
        self.say(f"Applying migration version {file.version}: {file.name}")
        content = file.read()
        self.say(f"MigrationFile content:\n{clean(without_secrets(content.text())).rstrip()}")
        if self.options.dry_run:
            self.say("Dry run complete. No migrations were actually applied.")
            return
        kept = Progress.read(self.metadata.entry(progress_key(file.version)))
        running = VersionRow(
            version_key=CURRENT,
            version=str(file.version),
            name=file.name,
            state="RUNNING",
            checksum=content.checksum,
            started_on=str(self.now_ms()),
            completed_on="",
            previous=previous,
        )
        self._record(running, "RUNNING")
        run = FileRun(self, file, running)
        try:
            run.run(content.text(), kept)
            self.lock.check()
        except (MigrationFailed, *SERVER_ERRORS) as error:
            if not self.lock.is_lost():  # else another apply records what becomes of the file
                self._record_failure(run, running, reason_of(error))
            raise
        self._record(running, "MIGRATED")
        self._verify(file)
        self.say("Successfully migrated")

    def _record_failure(self, run: FileRun, running: VersionRow, why: str) -> None:
        """Write the error, and wait until the table has it: the next command reads it there.

        Raises: MigrationFailed with both errors.
        """
        try:
            self._record(running, "ERROR", why)
            run.save_progress()
            self.metadata.entry(CURRENT)
        except (MigrationFailed, *SERVER_ERRORS) as failed:
            raise MigrationFailed(f"{why}\n{reason_of(failed)}") from failed

    def _record(self, running: VersionRow, state: State, why: str = "") -> None:
        """Write a state of a version.

        Raises: MigrationFailed.
        """
        ended = "" if state == "RUNNING" else str(self.now_ms())
        entry = replace(running, state=state, completed_on=ended)
        if why:
            entry = replace(entry, error_reason=reason(why))
        try:
            self.metadata.write(entry, CURRENT, entry.version)
        except SERVER_ERRORS as error:
            raise MigrationFailed(
                f"Failed to write state {state} of version {entry.version}: {reason_of(error)}"
            ) from error

    def _verify(self, file: MigrationFile) -> None:
        """Check that the table knows the version by now: the next command reads it.

        Raises: MigrationFailed.
        """
        entry = self.metadata.entry(str(file.version))
        if entry is None or entry.state != "MIGRATED":
            raise MigrationFailed(f"Failed to verify status of version {file.version}")


class FileRun:
    """One file on its way: its statements in order, checked in batches, executed one by one."""

    def __init__(self, applying: Applying, file: MigrationFile, running: VersionRow) -> None:
        self._applying = applying
        self._file = file
        self._running = running
        self._variables = FileSession(dict(applying.options.variables))
        self._session = Session()
        self._done: list[Statement] = []
        self._saved = 0

    def run(self, text: str, kept: Progress) -> None:
        """Execute the statements of the file that are left after the progress of an earlier try.

        Raises: MigrationFailed, ServerFailure, Unreachable.
        """
        allowed = allowed_by(text)
        statements = statements_of(text)
        for statement in statements:
            check_supported(statement)
        self._skip(statements, kept)
        for batch in batches(statements[len(self._done) :]):
            self._check(batch, allowed)
            for statement in batch:
                self._execute(statement, len(statements))

    def _skip(self, statements: Sequence[Statement], kept: Progress) -> None:
        """Leave out what an earlier try has carried out, unless all is to begin again."""
        if not kept.count:
            return
        done = statements[: kept.count]
        restart = self._applying.options.restart
        if restart or Progress.of(done, self._applying.options.variables) != kept:
            if not restart:
                self._applying.say(
                    f"The first {kept.count} statement(s), which were carried out, are others now: "
                    "beginning with the first again."
                )
            self._write_progress()
            return
        for statement in done:
            self._variables.take(statement.text)
        self._done = list(done)
        self._saved = len(done)
        self._applying.say(
            f"{kept.count} of {len(statements)} statement(s) were carried out by an earlier apply: "
            "continuing after them."
        )

    def save_progress(self) -> None:
        """Write which statements were carried out, if an error has kept that from the metadata.

        Raises: ServerFailure, Unreachable.
        """
        if len(self._done) > self._saved:
            self._write_progress()

    def _write_progress(self) -> None:
        progress = Progress.of(self._done, self._applying.options.variables)
        entry = replace(self._running, checksum=str(progress))
        self._applying.metadata.write(entry, progress_key(self._file.version))
        self._saved = len(self._done)

    def _check(self, batch: Sequence[Statement], allowed: Allowed) -> None:
        """Check statements as they will be executed.

        Raises: MigrationFailed.
        """
        answers = dry_run(self._applying.client, batch, self._variables, self._session.sequence)
        for at, (statement, answer) in enumerate(zip(batch, answers, strict=True)):
            why = disallowed(str(answer["statementText"]), answer, allowed)
            if why:
                raise FileRefused(statement, at, why)

    def _execute(self, statement: Statement, count: int) -> None:
        if self._variables.take(statement.text):
            self._done.append(statement)
            return
        self._applying.lock.check()
        try:
            entities = self._applying.client.execute(
                in_its_place(statement),
                self._variables.properties,
                self._variables.variables,
                self._session.sequence,
            )
        except SERVER_ERRORS as error:
            raise MigrationFailed(
                f"Failed to execute sql: {without_secrets(statement.text)} "
                f"Error: {reason_of(error)}"
            ) from error
        self._done.append(statement)
        self._applying.lock.check()
        for entity in entities:
            self._session.saw(entity)
        for line in _said(entities):
            self._applying.say(f"  {len(self._done)} of {count}: {line}")
        self._write_progress()


def _said(entities: Sequence[JsonObject]) -> list[str]:
    """Return the server's messages, warnings included."""
    lines: list[str] = []
    for entity in entities:
        status = entity.get("commandStatus") or {}
        lines += [status.get("message") or entity.get("message") or ""]
        report = entity.get("upgrade")
        if report:
            lines.append(f"Upgrade of class {', '.join(report['classes'])}")
        lines += [f"WARNING: {warning['message']}" for warning in entity.get("warnings") or ()]
    return [clean(line) for line in lines if line]
