"""The time that a process may take to come up: longer as long as it works."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_TIMES: Final = 4
_LOOK_S: Final = 5.0
_WORKING: Final = 0.02
"""Of a core: an idle JVM needs less, one that starts on a loaded machine more."""
_USER, _SYSTEM = 11, 12  # places in /proc/<pid>/stat after the command's name


class StartupTimeout:
    """A limit that is extended as long as processor time is used, to some times itself."""

    def __init__(
        self,
        limit_s: float,
        used_s: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take ``used_s``, which returns the processor time that the process has used so far."""
        self._used_s = used_s
        self._clock = clock
        self._began = self._looked = clock()
        self._deadline = self._began + limit_s
        self._end = self._began + limit_s * _MOST_TIMES
        self._used = used_s()

    @property
    def waited_s(self) -> float:
        """Return how long it has been."""
        return self._clock() - self._began

    def over(self) -> bool:
        """Return whether to give up now."""
        now = self._clock()
        if now - self._looked >= _LOOK_S:
            used = self._used_s()
            if used - self._used > _WORKING * (now - self._looked):
                self._deadline = max(self._deadline, now + 2 * _LOOK_S)
            self._looked, self._used = now, used
        return now > min(self._deadline, self._end)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        ticks = int(fields[_USER]) + int(fields[_SYSTEM])
    except (OSError, ValueError, IndexError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")
