"""``ksql test``: a script, its input records and the expected ones, as in ksqlDB's test runners.

``-s SCRIPT -i INPUT -o OUTPUT`` is ksql-test-runner's form, ``-td FOLDER`` run-ksql-test's. Queries
run in memory, so neither Kafka nor Spark is needed; ``--driver spark`` brings both.
Source: docs/testing-queries.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtt import tokens
from qtt.load import NotATestFile, case_of, load
from qtt.local import LocalDrivers
from qtt.run import run
from server.logs import log_to_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qtt.driver import Drivers
    from qtt.model import QueryTestCase

_MOST_DIFFERENCES = 20


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests; 0 only if all have passed."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if (arguments.script is None) == (arguments.folder is None):
        parser.error("either a script (-s) with its outputs (-o), or a folder of tests (-td)")
    if arguments.script is not None and arguments.outputs is None:
        parser.error("a script needs the expected outputs: -o FILE")
    log_to_stderr("error")
    try:
        cases = list(_cases(arguments))
    except NotATestFile as error:
        parser.error(str(error))
    drivers = _drivers(arguments.driver)
    try:
        failed = [case.id for case in cases if not _passes(case, drivers)]
    finally:
        drivers.close()
    return 1 if failed else 0


def _drivers(name: str) -> Drivers:
    if name == "local":
        return LocalDrivers()
    from qtt.spark import SparkDrivers  # noqa: PLC0415 - brings Spark

    return SparkDrivers()


def _passes(case: QueryTestCase, drivers: Drivers) -> bool:
    result = run(case, drivers)
    passed = result.status == "passed"
    said = "Test passed!" if passed else f"Test failed: {result.reason}"
    shown = [said, *result.more[:_MOST_DIFFERENCES]]
    left = len(result.more) - _MOST_DIFFERENCES
    if left > 0:
        shown.append(f"and {left} more differences")
    lines = [line for text in shown for line in text.splitlines()]
    sys.stdout.write(f"{case.id}\n\t >>> " + "\n\t     ".join(lines) + "\n")
    sys.stdout.flush()
    return passed


def _cases(arguments: argparse.Namespace) -> Iterator[QueryTestCase]:
    if arguments.folder is not None:
        cases = list(load(arguments.folder)) if arguments.folder.exists() else []
        if not cases:
            raise NotATestFile(f"{arguments.folder}: no tests in it")
        yield from cases
        return
    yield case_of(
        arguments.script.stem,
        _text(arguments.script),
        [] if arguments.inputs is None else _records(arguments.inputs, "inputs"),
        _records(arguments.outputs, "outputs"),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise NotATestFile(f"cannot read {path}: {why}") from error


def _records(path: Path, name: str) -> list[Any]:
    try:
        records = tokens.parse_file(_text(path))[name]
    except (ValueError, LookupError, TypeError) as error:
        raise NotATestFile(
            f'{path} is not of the form {{"{name}": [{{"topic": .., "key": .., "value": ..}}, ..]}}'
        ) from error
    return list(records)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksql test", description="Run statements over records and compare what comes out."
    )
    add = parser.add_argument
    for short, long, older, name, about in (
        ("-s", "--statements", "--sql-file", "script", "the statements"),
        ("-i", "--input", "--input-file", "inputs", '{"inputs": [..]}'),
        ("-o", "--output", "--output-file", "outputs", '{"outputs": [..]}'),
    ):
        add(short, long, older, dest=name, metavar="FILE", type=Path, help=about)
    add(
        "-td",
        "--test-directory",
        dest="folder",
        metavar="FOLDER",
        type=Path,
        help="test files: SQL with ASSERT, or JSON",
    )
    add(
        "--driver",
        choices=("local", "spark"),
        default="local",
        help="what runs the queries: local (in memory, the default) or spark (on a broker, too)",
    )
    add("-tf", "--temp-folder", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
