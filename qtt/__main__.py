"""Run test files from the command line.

``python -m qtt [--driver spark|local] [--jobs N] [--filter REGEX] [--report FILE] PATH...``
"""

from __future__ import annotations

import argparse
import faulthandler
import re
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qtt import report
from qtt.load import NotATestFile, load
from qtt.local import LocalDrivers
from qtt.run import matches, run
from server.logs import log_to_stderr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from qtt.driver import Drivers
    from qtt.model import QueryTestCase, Result

_ERRORS = 2
_SILENCE_S = 900.0  # no case takes that long: it waits for something that never comes


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cases; 0 only if nothing failed that is not listed as a gap."""
    args = _arguments(argv)
    log_to_stderr("warning")
    cases = [c for c in _loaded(args.paths) if matches(c, args.filter)]
    if args.sample is not None:
        cases = stratified(cases, args.sample)
    results = []
    for result in _watched(_results(args.driver, cases, args.jobs)):
        results.append(result)
        if args.verbose or result.status == "failed":
            _say(f"{result.status:11} {result.seconds:7.2f} s  {result.id}")
        if args.verbose and result.reason:
            _say(f"    {result.reason}")
    if args.report is not None:
        report.write(args.report, args.driver, results)
    problems = report.judge(args.driver, results)
    for problem in problems:
        _say(problem)
    counts = [sum(r.status == s for r in results) for s in ("passed", "failed", "unsupported")]
    _say(f"{counts[0]} passed, {counts[1]} failed, {counts[2]} unsupported")
    return 1 if problems else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m qtt", description="Run query test files.")
    parser.add_argument("paths", nargs="+", type=_path, metavar="PATH", help="a file or folder")
    parser.add_argument("--driver", choices=("spark", "local"), default="spark")
    parser.add_argument("--jobs", type=_positive, default=2, help="cases side by side (default 2)")
    parser.add_argument(
        "--filter", type=_regex, metavar="REGEX", help="only cases whose id matches"
    )
    parser.add_argument(
        "--sample", type=_positive, metavar="N", help="N cases, spread over the files"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write a JSON report")
    parser.add_argument(
        "--verbose", action="store_true", help="a line for every case, its reason with it"
    )
    return parser.parse_args(argv)


def _path(text: str) -> Path:
    if not Path(text).exists():
        raise argparse.ArgumentTypeError(f"{text}: no such file or folder")
    return Path(text)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: a whole number, at least 1")
    return int(text)


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text}: not a regular expression, {error}") from error
    return text


def _loaded(paths: Sequence[Path]) -> Iterator[QueryTestCase]:
    for path in paths:
        try:
            yield from load(path)
        except NotATestFile as error:
            sys.stderr.write(f"{error}\n")
            sys.exit(2)


def stratified(cases: Sequence[QueryTestCase], count: int) -> list[QueryTestCase]:
    """About ``count`` cases, the same ones each time.

    Every n-th, so that each file has its share.
    """
    if count >= len(cases):
        return list(cases)
    step = len(cases) / count
    return [cases[int(index * step)] for index in range(count)]


def _watched(results: Iterator[Result]) -> Iterator[Result]:
    """Pass the results on; when none comes for long, show every thread's stack and end."""
    renew = partial(faulthandler.dump_traceback_later, _SILENCE_S, exit=True, file=_ERRORS)
    try:
        renew()
        for result in results:
            renew()
            yield result
    finally:
        faulthandler.cancel_dump_traceback_later()


def _results(driver: str, cases: Sequence[QueryTestCase], jobs: int) -> Iterator[Result]:
    if driver == "local":
        yield from _local(cases, jobs)
        return
    from qtt.spark import SparkDrivers  # noqa: PLC0415 - brings Spark

    drivers = SparkDrivers()
    try:
        yield from _side_by_side(cases, drivers, jobs)
    finally:
        drivers.close()


def _side_by_side(cases: Iterable[QueryTestCase], drivers: Drivers, jobs: int) -> Iterator[Result]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda case: run(case, drivers), cases)


def _local(cases: Sequence[QueryTestCase], jobs: int) -> Iterator[Result]:
    if jobs == 1:
        yield from map(_run_local, cases)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run_local, cases, chunksize=16)


def _run_local(case: QueryTestCase) -> Result:
    return run(case, LocalDrivers())


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
