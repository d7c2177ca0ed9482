"""The frame that all demos share: options, the service, signals, exit status, repeated tasks.

The memory in use is that of this process and its descendants: JVMs, Python workers and all.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from ksql.core import KsqlError
from server.cli.client import ServerFailure, Unreachable
from server.demo.errors import Defect
from server.demo.expected import Check
from server.demo.show import Show
from server.demo.site import Site, directory, service

_PROC = Path("/proc")
_PARENT, _RSS_PAGES = 1, 21  # fields of /proc/PID/stat, counted after the command's name


def tree_rss_bytes(root: int) -> int:
    """Return resident memory of a process and all its descendants; shared pages count for each.

    Source: proc(5), ``/proc/pid/stat``; elsewhere than on Linux ``ps`` is asked.
    """
    table = _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()
    return rss_of_tree(root, table)


def rss_of_tree(root: int, table: Iterable[tuple[int, int, int]]) -> int:
    """Return the sum below ``root``; the table has process, parent, bytes."""
    children: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for pid, parent, size in table:
        children[parent].append(pid)
        sizes[pid] = size
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += sizes.get(pid, 0)
        waiting += children[pid]
    return total


def _from_proc() -> list[tuple[int, int, int]]:
    page = resource.getpagesize()
    processes = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        fields = stat[stat.rindex(")") + 2 :].split()
        processes.append((int(folder.name), int(fields[_PARENT]), int(fields[_RSS_PAGES]) * page))
    return processes


def _from_ps() -> list[tuple[int, int, int]]:
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,rss="],  # noqa: S607 - where it lies differs by system
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (map(int, line.split()) for line in listed.stdout.splitlines())
    return [(pid, parent, kilobytes * 1024) for pid, parent, kilobytes in rows]


class PeakMemory:
    """The most that the tree of this process held whenever it was looked at."""

    def __init__(self) -> None:
        self.peak_bytes = 0

    def sample(self) -> None:
        """Take what the processes occupy now, if that is more than ever before."""
        self.peak_bytes = max(self.peak_bytes, tree_rss_bytes(os.getpid()))


class Ticker:
    """Calls a function every so many seconds while its block runs, and once more at the end.

    A failing call ends it; the failure is raised at the end of the block if nothing else is.
    """

    def __init__(self, every_s: float, call: Callable[[], None]) -> None:
        self._every_s = every_s
        self._call = call
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if kind is not None:
            return
        if self._failure is not None:
            raise self._failure
        self._call()

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._call()
                self._over.wait(self._every_s)
        except Exception as failure:  # noqa: BLE001 - raised where the block ends
            self._failure = failure


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
    with directory(keep) as state, Ticker(1.0, memory.sample):
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


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices: how many records, where state is kept, whether in colours."""

    count: int
    keep: Path | None
    color: bool


def parsed(
    parser: argparse.ArgumentParser,
    records: str,
    bounds: tuple[int, int],
    default: int,
    argv: Sequence[str] | None,
) -> Options:
    """Return the options of a demo, of which ``--records`` gives the number of its records."""
    least, most = bounds
    parser.add_argument(
        f"--{records}",
        metavar="N",
        dest="count",
        type=count_between(least, most),
        default=default,
        help=f"how many {records}, {least} to {most} (default: {default})",
    )
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="keep state and logs in this (new) directory"
    )
    parser.add_argument("--no-color", action="store_true", help="no colours")
    chosen = parser.parse_args(sys.argv[2:] if argv is None else argv)
    return Options(chosen.count, chosen.keep, not chosen.no_color)


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
