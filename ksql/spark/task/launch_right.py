"""The right of one launch's tasks to write: a file of the checkpoint that names the launch.

Spark ends an interrupted batch before the Python processes of its tasks have ended. These read
their records from Kafka by themselves, and would write results for seconds. Meanwhile another
query, or another version, may write to the same topic. So a task looks whether its launch is over.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ksql.core import ServerError

_FILE: Final = "launch"
_LOOK_S: Final = 0.1
"""So long a task that has looked may write without another look."""


class LaunchOver(ServerError):
    """A task of a launch that was ended, or of a query that is gone."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__(
            "the task may not write any more: its query was ended or started again",
            detail=f"{checkpoint / _FILE} does not name its launch.",
            hint="Look at SHOW QUERIES: a query that should run is started again by itself.",
        )


@dataclass(frozen=True, slots=True)
class LaunchRight:
    """The right of a launch: the checkpoint, and the id of the launch; without one all may write.

    The file is not synced: it says nothing after a crash.
    """

    checkpoint: str
    launch: str

    def grant(self) -> None:
        """Let the tasks of this launch write, and of no other.

        Raises: OSError.
        """
        if self.launch:
            temporary = self._file.with_name(f".{_FILE}.new")
            temporary.write_text(self.launch, encoding="ascii")
            temporary.replace(self._file)

    def withdraw(self) -> None:
        """Let the tasks of this launch write no more; another launch keeps its right.

        Raises: OSError.
        """
        if self.launch and self._named() == self.launch:
            self._file.unlink(missing_ok=True)

    def check(self) -> None:
        """Pass while the launch may write.

        Raises: LaunchOver.
        """
        now = time.monotonic()
        if not self.launch or now < _known.get(self, 0.0):
            return
        if self._named() != self.launch:
            raise LaunchOver(Path(self.checkpoint))
        _known.clear()  # one is enough: a process has the tasks of one query for a while
        _known[self] = now + _LOOK_S

    @property
    def _file(self) -> Path:
        return Path(self.checkpoint) / _FILE

    def _named(self) -> str:
        """Return the launch that the file names; empty if there is none that can be read."""
        try:
            return self._file.read_text(encoding="ascii")
        except (OSError, ValueError):
            return ""


def withdraw_any(checkpoint: Path) -> None:
    """Let no task of any launch write more; returns when they know it, but for a commit under way.

    ``UnfinishedBatch`` has that commit end before it looks.

    Raises: OSError.
    """
    (checkpoint / _FILE).unlink(missing_ok=True)
    time.sleep(_LOOK_S)


_known: dict[LaunchRight, float] = {}
"""Until when a right need not be looked at again."""
