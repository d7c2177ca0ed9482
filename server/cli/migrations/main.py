"""``ksql migrations``: the commands, options and exit statuses of ksqlDB's ``ksql-migrations``.

Source: docs/migrations.md; KLIP-42.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from rich.text import Text

from server.cli.client import Client
from server.cli.migrations import info, plan, validate
from server.cli.migrations.apply import Applying, Options, Target
from server.cli.migrations.config import CONFIG_FILE, Config, properties_in
from server.cli.migrations.failure import SERVER_ERRORS, MigrationFailed, reason_of
from server.cli.migrations.metadata import Metadata
from server.cli.migrations.project import MigrationFile, create_file, create_project, files_in
from server.cli.options import definition
from server.cli.screen import Screen

INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """Refuses as the reference does: the sentence, where help is, status 1."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{message}\nSee the -h or --help flags for usage information\n")


class CommandRun:
    """One run of a command: its arguments, where it prints, what it opens."""

    def __init__(
        self, arguments: argparse.Namespace, screen: Screen, now_ms: Callable[[], int]
    ) -> None:
        self.arguments = arguments
        self.screen = screen
        self.now_ms = now_ms

    def say(self, line: str) -> None:
        """Print a line; a reader who has left the pipe does not stop a migration half-way."""
        try:
            self.screen.lines([line])
        except BrokenPipeError:
            _mute()

    def warn(self, line: str) -> None:
        """Print a line that is no answer."""
        self.screen.error(Text(line, style="yellow"))

    def config(self) -> Config:
        """Return the configuration; that of the current directory if none is stated.

        Raises: MigrationFailed.
        """
        stated = self.arguments.config_file
        path = Path(CONFIG_FILE) if stated is None else stated
        if stated is None and not path.is_file():
            raise MigrationFailed(
                "Migrations config file required but not specified. "
                "Specify with -c (equivalently, --config-file)."
            )
        return Config.read(path)

    def files(self, config: Config) -> list[MigrationFile]:
        """Return the migration files.

        Raises: MigrationFailed.
        """
        return files_in(config.directory, self.warn)

    @contextlib.contextmanager
    def server(self, config: Config) -> Iterator[tuple[Client, Metadata]]:
        """Open a client for the block."""
        headers = getattr(self.arguments, "headers", None)
        more: Mapping[str, str] = {} if headers is None else properties_in(headers, "headers file")
        client = config.client(more)
        try:
            yield client, Metadata(client, config)
        finally:
            client.close()

    def variables(self) -> dict[str, str]:
        """Return the variables of ``--define``.

        Raises: MigrationFailed.
        """
        try:
            return dict(map(definition, self.arguments.define))
        except ValueError as error:
            raise MigrationFailed(str(error)) from error

    def target(self) -> Target:
        """Return which files are due."""
        given = self.arguments
        return Target(given.all, given.next, given.until, given.version)


def _new_project(job: CommandRun) -> None:
    if job.arguments.config_file is not None:
        raise MigrationFailed(
            "This command does not expect a config file to be passed. Rather, this command will "
            "create one as part of preparing the migrations directory."
        )
    create_project(job.arguments.project_path, job.arguments.ksql_server_url, job.say)


def _create(job: CommandRun) -> None:
    directory = job.config().directory
    create_file(directory, job.arguments.version, job.arguments.description, job.say)


def _initialize(job: CommandRun) -> None:
    with job.server(job.config()) as (_, metadata):
        metadata.initialize(job.say)


def _destroy(job: CommandRun) -> None:
    with job.server(job.config()) as (_, metadata):
        metadata.destroy(job.say)


def _apply(job: CommandRun) -> None:
    config = job.config()
    stated = job.arguments
    options = Options(job.variables(), stated.dry_run, stated.restart, stated.take_over)
    with job.server(config) as (client, metadata):
        applying = Applying(
            client=client,
            metadata=metadata,
            say=job.say,
            options=options,
            now_ms=job.now_ms,
        )
        applying.run(job.files(config), job.target())


def _plan(job: CommandRun) -> None:
    config, variables = job.config(), job.variables()
    with job.server(config) as (client, metadata):
        plan.plan(client, metadata, job.files(config), job.target(), variables, job.screen)


def _validate(job: CommandRun) -> None:
    config = job.config()
    with job.server(config) as (_, metadata):
        validate.run(metadata, job.files(config), job.say)


def _info(job: CommandRun) -> None:
    config = job.config()
    with job.server(config) as (_, metadata):
        info.show(metadata, job.files(config), job.screen)


def _now_ms() -> int:
    return int(time.time() * 1000)


def main(
    argv: Sequence[str] | None = None,
    screen: Screen | None = None,
    now_ms: Callable[[], int] = _now_ms,
) -> int:
    """Run a command; its exit status is 1 when it failed."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.run is None:
        parser.print_help()
        return 0
    job = CommandRun(arguments, screen or Screen(), now_ms)
    began = time.monotonic()
    try:
        return _status(arguments.run, job)
    finally:
        job.say(f"Execution time: {time.monotonic() - began:.4f} seconds")


def _status(run: Callable[[CommandRun], None], job: CommandRun) -> int:
    try:
        run(job)
    except (MigrationFailed, *SERVER_ERRORS) as error:
        job.screen.error(Text(reason_of(error), style="red"))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _mute()
        return 1
    return 0


def _mute() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a version must be positive. Got: {text}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ksql migrations",
        description="Numbered files of statements, each applied once and in order.",
        epilog="The page docs/migrations.md describes files, commands and options.",
    )
    parser.set_defaults(run=None)
    _config_option(parser, None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, run: Callable[[CommandRun], None], says: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=says, description=says)
        added.set_defaults(run=run)
        _config_option(added, argparse.SUPPRESS)
        return added

    new = command("new-project", _new_project, "Make a directory with a configuration.")
    new.add_argument("project_path", metavar="project-path", type=Path)
    new.add_argument("ksql_server_url", metavar="ksql-server-url")
    command("initialize-metadata", _initialize, "Make the metadata stream and table.")
    create = command("create", _create, "Make an empty migration file.")
    create.add_argument("-v", "--version", type=_positive, help="default: the next version")
    create.add_argument("description")
    apply = command("apply", _apply, "Apply migration files.")
    _targets(apply, required=True)
    apply.add_argument("--dry-run", action="store_true", help="only show the files")
    apply.add_argument(
        "--restart", action="store_true", help="begin a file that failed with its first statement"
    )
    apply.add_argument(
        "--take-over", action="store_true", help="take over from an apply that was killed"
    )
    planned = command("plan", _plan, "Check all files that are due in a sandbox of the server.")
    _targets(planned, required=False)
    command("validate", _validate, "Compare the files that were applied with their checksums.")
    command("info", _info, "Show the current version and the state of each file.")
    command("destroy-metadata", _destroy, "Drop the metadata stream and table, with their topics.")
    return parser


def _config_option(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        "-c",
        "--config-file",
        metavar="FILE",
        type=Path,
        default=default,
        help=f"default: {CONFIG_FILE} in the current directory",
    )


def _targets(parser: argparse.ArgumentParser, *, required: bool) -> None:
    add = parser.add_mutually_exclusive_group(required=required).add_argument
    add("-a", "--all", action="store_true", help="all files that are due")
    add("-n", "--next", action="store_true", help="the next file")
    add("-u", "--until", metavar="VERSION", type=_positive, help="the files up to this version")
    add("-v", "--version", type=_positive, help="the file of this version")
    parser.add_argument(
        "-d",
        "--define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable for each file; may be repeated",
    )
    parser.add_argument(
        "--headers", metavar="FILE", type=Path, help="headers that go along with each request"
    )


if __name__ == "__main__":
    sys.exit(main())
