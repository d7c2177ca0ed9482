"""The frame of a demo: a service of its own, signals, errors in words, exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from ksql.base.errors import KsqlError
from server.cli.client import ServerFailure, Unreachable
from server.demo.errors import Defect
from server.demo.expected import Check
from server.demo.memory import PeakMemory
from server.demo.show import Show
from server.demo.site import Site, directory, service
from server.demo.ticker import Ticker

_OK, _FAILED, _INTERRUPTED = 0, 1, 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def guarded(command: str, show: Show, keep: Path | None, run: Callable[[], bool]) -> int:
    """Run a demo; 0 if every answer was right, 1 if not or on an error, 130 if interrupted."""
    with _signals(show):
        try:
            return _OK if run() else _FAILED
        except KeyboardInterrupt:
            show.note("Interrupted. Everything is stopped" + ("." if keep else " and removed."))
            return _INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last place where it can be put into words
            show.bad(f"{command}: {_text(error)}")
            if keep is None:
                show.note("To look at the service's logs, run it again with --keep DIR.")
            return _FAILED


def staged(show: Show, keep: Path | None, tell: Callable[[Site], Sequence[Check]]) -> bool:
    """Let a story happen on a service of its own; return whether all that it compared is equal.

    Raises: KsqlError, ServerFailure, Unreachable.
    """
    began = time.monotonic()
    memory = PeakMemory()
    with directory(keep) as state, Ticker(1.0, memory.look):
        with contextlib.ExitStack() as stack:
            starting = time.monotonic()
            with show.doing("starting the service"):
                site = stack.enter_context(service(state, show.now_doing))
            seconds = time.monotonic() - starting
            show.note(f"Kafka, Spark and REST are up after {seconds:.1f} s: {site.client.url}")
            stack.enter_context(_stopping(show))
            checks = tell(site)
        seconds = time.monotonic() - began
        gigabytes = memory.peak_bytes / 2**30
        show.note(f"took {seconds:.0f} s, memory of all processes at most {gigabytes:.2f} GiB")
        if keep is not None:
            show.note(f"state and logs are in {state}")
    return all(check.equal for check in checks)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every demo has: ``keep`` and ``no_color``."""
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="keep state and logs in this (new) directory"
    )
    parser.add_argument("--no-color", action="store_true", help="no colours")


def count_between(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an option: a whole number within these bounds."""

    def count(text: str) -> int:
        try:
            number = int(text.replace(",", "").replace("_", ""))
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number") from error
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"choose from {least} to {most}")
        return number

    return count


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
    is_stopping = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_stopping
        if is_stopping:
            os._exit(_INTERRUPTED)
        is_stopping = True
        show.interrupted()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
