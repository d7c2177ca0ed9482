"""``ksql demo``: its options, its end, its exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ksql.base.errors import KsqlError
from server.cli.client import ServerFailure, Unreachable
from server.demo.data import TOTAL, load
from server.demo.errors import Defect
from server.demo.memory import PeakMemory
from server.demo.show import Show, make_console
from server.demo.site import directory, service
from server.demo.story import Story
from server.demo.ticker import Ticker

DEFAULT_FLIGHTS = 50_000
_LEAST_FLIGHTS = 1_000
_OK, _FAILED, _INTERRUPTED = 0, 1, 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices."""

    flights: int
    keep: Path | None
    color: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if every answer was right, 1 if not or on an error, 130 if interrupted."""
    options = _options(argv)
    show = Show(make_console(color=options.color))
    with _signals(show):
        try:
            return run(options, show)
        except KeyboardInterrupt:
            show.note(
                "Interrupted. Everything is stopped" + ("." if options.keep else " and removed.")
            )
            return _INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last place where it can be put into words
            show.bad(f"ksql demo: {_text(error)}")
            if options.keep is None:
                show.note("To look at the service's logs, run it again with --keep DIR.")
            return _FAILED


def run(options: Options, show: Show) -> int:
    """Run the whole demo.

    Raises: KsqlError, ServerFailure, Unreachable.
    """
    began = time.monotonic()
    memory = PeakMemory()
    show.section(f"{options.flights:,} departures from New York in 2013")
    with show.doing("reading the departures"):
        data = load(options.flights)
    with directory(options.keep) as state, Ticker(1.0, memory.look):
        with contextlib.ExitStack() as stack:
            starting = time.monotonic()
            with show.doing("starting the service"):
                site = stack.enter_context(service(state, show.now_doing))
            seconds = time.monotonic() - starting
            show.note(f"Kafka, Spark and REST are up after {seconds:.1f} s: {site.client.url}")
            stack.enter_context(_stopping(show))
            checks = Story(site, show, data).tell()
        seconds = time.monotonic() - began
        gigabytes = memory.peak_bytes / 2**30
        show.note(f"took {seconds:.0f} s, memory of all processes at most {gigabytes:.2f} GiB")
        if options.keep is not None:
            show.note(f"state and logs are in {state}")
    return _OK if all(check.equal for check in checks) else _FAILED


@contextlib.contextmanager
def _stopping(show: Show) -> Iterator[None]:
    """Show at its end that the service is being stopped."""
    try:
        yield
    finally:
        show.now_doing("stopping")


@contextlib.contextmanager
def _signals(show: Show) -> Iterator[None]:
    """End the demo at the first signal in good order, at the next one at once."""
    asked = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(_INTERRUPTED)
        asked = True
        show.interrupted()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _options(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(
        prog="ksql demo",
        description="Run the service on real departures: filter, join, aggregate, replace queries "
        "while records come in, and check every answer.",
    )
    parser.add_argument(
        "--flights",
        metavar="N",
        type=_count,
        default=DEFAULT_FLIGHTS,
        help=f"how many departures, {_LEAST_FLIGHTS} to {TOTAL} (default: {DEFAULT_FLIGHTS})",
    )
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="keep state and logs in this (new) directory"
    )
    parser.add_argument("--no-color", action="store_true", help="no colours")
    found = parser.parse_args(sys.argv[2:] if argv is None else argv)
    return Options(found.flights, found.keep, not found.no_color)


def _count(text: str) -> int:
    try:
        count = int(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from error
    if not _LEAST_FLIGHTS <= count <= TOTAL:
        raise argparse.ArgumentTypeError(f"choose from {_LEAST_FLIGHTS} to {TOTAL}")
    return count


def _text(error: Exception) -> str:
    match error:
        case KsqlError():
            return error.text()
        case ServerFailure():
            return error.message
        case Unreachable():
            return str(error)
        case _:
            return Defect(error).text()
