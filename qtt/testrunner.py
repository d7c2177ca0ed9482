"""``ksql test``: a script, its input records and the expected ones, as in ksqlDB's test runners.

``-s SCRIPT -i INPUT -o OUTPUT`` is ksql-test-runner's form, ``-td FOLDER`` run-ksql-test's. Queries
run in memory, so neither Kafka nor Spark is needed.
Source: docs/coming-from-ksqldb.md#tests.
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

    from qtt.model import QueryTestCase


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
    failed = [case.id for case in cases if not _passes(case)]
    return 1 if failed else 0


def _passes(case: QueryTestCase) -> bool:
    result = run(case, LocalDrivers())
    passed = result.status == "passed"
    said = "Test passed!" if passed else f"Test failed: {result.reason}"
    sys.stdout.write(f"{case.id}\n\t >>> {said}\n")
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
        prog="ksql test", description="Run statements over records, in memory, and compare."
    )
    add = parser.add_argument
    add("-s", "--sql-file", dest="script", metavar="FILE", type=Path, help="the statements")
    add("-i", "--input-file", dest="inputs", metavar="FILE", type=Path, help='{"inputs": [..]}')
    add("-o", "--output-file", dest="outputs", metavar="FILE", type=Path, help='{"outputs": [..]}')
    add(
        "-td",
        "--test-directory",
        dest="folder",
        metavar="FOLDER",
        type=Path,
        help="test files: SQL with ASSERT, or JSON",
    )
    add("-tf", "--temp-folder", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
