"""The right of a server's tasks to write: a file that the server renews and its tasks read.

A server that was cut off or paused does not know that another one has taken over. So the right runs
out by itself, before another server may take over. A task whose right has run out waits until it is
renewed, or withdrawn; then the task ends with an error.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ksql.core.errors import ServerError

FORMAT: Final = 2
_POLL_S: Final = 0.1
_LOOK_S: Final = 1.0
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class NotLeader(ServerError):
    """A server, or a task of one, that may not write any more."""

    code = 50303

    def __init__(self, why: str) -> None:
        super().__init__(
            "this server is not the leader of the service any more",
            detail=why,
            hint="Send it to the server that has taken over. Restart a replaced server to let it "
            "rejoin; with ksql.state.shared it restarts by itself.",
        )


@dataclass(frozen=True, slots=True)
class Lease:
    """The right that a task must hold: the file, and the claim that must be in it."""

    file: str
    claim: str

    def await_valid(self) -> None:
        """Return while the right to write holds; wait while it may still be renewed.

        Raises: NotLeader.
        """
        while not self._holds():
            time.sleep(_POLL_S)

    def _holds(self) -> bool:
        now, until = now_s(), _known.get(self, 0.0)
        last = _looks.get(self)
        if now < until and (last is None or now - last.at_s < _LOOK_S):
            return True
        entry = read(Path(self.file))
        if entry is None:
            raise NotLeader(f"{self.file}, which holds its right to write, cannot be read.")
        if entry.claim != self.claim or entry.lost:
            raise NotLeader("Another server has taken over, or this one has been stopped.")
        _known[self] = max(until, _end(self, entry))
        return now_s() < _known[self]


@dataclass(frozen=True, slots=True)
class _Observation:
    """A look at the file of a server on another machine: its end, and the time of the look."""

    until_s: float
    at_s: float
    end_s: float = 0.0


def _end(held: Lease, entry: LeaseContent) -> float:
    """Return until when the right surely holds, by this machine's clock.

    Another machine's clocks say nothing here. But a renewal that is seen was made after the look
    before, and its right lasts for a known time from then on. So the first look gives none.
    """
    now = now_s()
    if entry.boot and entry.boot == boot_id():
        return now + entry.left_s()
    last = _looks.get(held, _Observation(entry.until_s, now))
    renewed = entry.until_s != last.until_s
    end = last.at_s + entry.until_s - entry.written_s if renewed else last.end_s
    _looks[held] = _Observation(entry.until_s, now, end)
    return end


_known: dict[Lease, float] = {}
"""Until when each lease is known to hold; kept by the worker, so that few batches read the file."""
_looks: dict[Lease, _Observation] = {}
"""The last looks at leases of servers on other machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseContent:
    """The content of the file: its end, by the clock since the machine's start and by wall time.

    ``written_s`` is when it was written, by the first of them.
    ``lost``: nobody may write under this claim any more.
    """

    claim: str
    boot: str
    until_s: float
    until_ms: int
    lost: bool
    written_s: float

    def left_s(self) -> float:
        """Return how long the right still holds."""
        if self.lost:
            return 0.0
        if self.boot and self.boot == boot_id():
            return max(0.0, self.until_s - now_s())
        return max(0.0, self.until_ms / 1000 - time.time())


def read(file: Path) -> LeaseContent | None:
    """Return the content of the file; None if there is no readable one."""
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        return LeaseContent(
            claim=str(body["claim"]),
            boot=str(body["boot"]),
            until_s=float(body["until.s"]),
            until_ms=int(body["until.ms"]),
            lost=bool(body["lost"]),
            written_s=float(body["written.s"]),
        )
    except (OSError, KeyError, TypeError, ValueError):
        return None


def withdraw(file: Path, claim: str) -> None:
    """Withdraw the right; a full disk has room for that, too.

    Raises: OSError; then the right holds until it runs out.
    """
    try:
        write(file, claim, now_s(), lost=True)
    except OSError:
        file.unlink(missing_ok=True)  # without the file no task may write either


def write(file: Path, claim: str, until_s: float, *, lost: bool = False) -> None:
    """Renew the right up to that time of ``now_s``, or state that it is ``lost``.

    Raises: OSError.
    """
    now = now_s()
    until_ms = int((time.time() + until_s - now) * 1000)
    text = json.dumps(
        {
            "format": FORMAT,
            "claim": claim,
            "boot": boot_id(),
            "until.s": until_s,
            "until.ms": until_ms,
            "lost": lost,
            "written.s": now,
        }
    )
    temporary = file.with_name(f".{file.name}.new")  # not synced: it is worthless after a crash
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)


def now_s() -> float:
    """Return a clock that all processes of the machine share and that also runs while it sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Identify this start of this machine; empty where the system offers no such id."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
