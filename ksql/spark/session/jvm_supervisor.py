"""Restarts Spark's JVM when it has died, and keeps Spark's log in bounds.

Every query continues from its checkpoint, as it does after any other failure.

Spark's JVM, its workers and this process append to one log, which is bounded.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ksql.core import GrowingRest, KsqlError
from ksql.spark.session.running import SparkRestarting
from ksql.spark.session.session import OpenSession, close_session, forget_session, open_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ksql.spark.query.spec import Failure
    from ksql.spark.session.jvm import SparkSettings


_log = logging.getLogger(__name__)
_LONGEST_REST_S = 60.0
_SOUND_S = 120.0
_SILENCE_S = 15.0
_ENDING_S = 2.0
_LOOK_S = 0.05


class JvmHost:
    """Spark's process and session, restarted when it has died; for one watching thread."""

    def __init__(
        self, settings: SparkSettings, open_: Callable[[SparkSettings], OpenSession] = open_session
    ) -> None:
        self._settings = settings
        self._open = open_
        self._opened: OpenSession | None = None
        self._since = 0.0
        self._turn_began_s = 0.0
        self._rest = GrowingRest(_LONGEST_REST_S)
        self._why = ""

    def open(self) -> None:
        """Start it.

        Raises: SparkUnavailable, DirectoryBusy.
        """
        self._opened = self._open(self._settings)
        self._since = self._turn_began_s = time.monotonic()
        self._why = ""

    @property
    def session(self) -> SparkSession:
        """The session.

        Raises: SparkRestarting.
        """
        if self._opened is None or not self._opened.process.alive:
            raise SparkRestarting(self.why())
        return self._opened.session

    def why(self) -> str:
        """Explain the end of the process; empty as long as it is well."""
        if self._why or self._opened is None:
            return self._why or "it was not started"
        return self._opened.process.ending

    def problem(self) -> str:
        """Describe the trouble in a sentence; empty if there is none."""
        why = self.why()
        if why:
            return f"Spark is being started again: its process {why}"
        silent = time.monotonic() - self._turn_began_s
        return f"Spark has not answered for {silent:.0f} s" if silent > _SILENCE_S else ""

    def turned(self) -> None:
        """Note that the watch has come round: whatever it asked was answered."""
        self._turn_began_s = time.monotonic()

    @property
    def died(self) -> bool:
        """Whether it has ended by itself."""
        return self._opened is None or not self._opened.process.alive

    def gone(self) -> bool:
        """Return whether it has ended, asked after a call that failed: it may be just about to."""
        deadline = time.monotonic() + _ENDING_S
        while not self.died and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return self.died

    def revive(self) -> float:
        """Try to start another one.

        Returns: how long to rest before the next try; 0 when it is up.
        """
        if self._opened is not None:
            rest_s = self._note_death(self._opened)
            if self._rest.failures > 1:
                return rest_s
        shutil.rmtree(self._settings.scratch, ignore_errors=True)
        try:
            self.open()
        except KsqlError as error:
            self._why = error.detail or error.text()
            _log.warning("spark_not_started", extra={"reason": error.text()})
            return self._rest.begin()
        _log.warning("spark_started_again")
        return 0.0

    def _note_death(self, opened: OpenSession) -> float:
        """Clear up after it; return how long to rest if it had not been sound for long."""
        if time.monotonic() - self._since > _SOUND_S:
            self._rest.clear()
        self._why = opened.process.ending
        opened.process.end()
        self._opened = None
        _log.warning("spark_died", extra={"reason": self._why, "log": self._settings.log_file})
        forget_session()
        return self._rest.begin()

    def note(self, name: str, failure: Failure) -> None:
        """Log the failure of a version, with the whole trace next to Spark's own lines."""
        _log.warning("query_failed", extra={"query_id": name, "reason": failure.message})
        when = datetime.fromtimestamp(failure.when_ms / 1000, UTC).isoformat(" ", "milliseconds")
        with contextlib.suppress(OSError), self._settings.log_file.open("a") as log:
            log.write(f"{when} query_failed {name}: {failure.trace}\n")

    def bound_log(self) -> None:
        """Keep Spark's log within its bound; a full disk is found elsewhere."""
        with contextlib.suppress(OSError):
            rotate(self._settings.log_file)

    def close(self) -> None:
        """End it, however it is."""
        if self._opened is not None:
            close_session(self._opened, self._settings)
            self._opened = None

    def kill(self) -> None:
        """End its process at once; threads that wait for its answer get an error."""
        if self._opened is not None:
            self._opened.process.kill()


MOST_BYTES: Final = 16 * 1024 * 1024
KEPT: Final = 3
"""Former files: ``spark.log.1`` is the newest."""


def rotate(file: Path, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> bool:
    """Move what the file has to another one if it is too much; return whether it was.

    Its writers have it open, to append: it is copied and emptied. Lines that they write between the
    two are lost.

    Raises: OSError.
    """
    if not file.exists() or file.stat().st_size <= most_bytes:
        return False
    for number in range(kept - 1, 0, -1):
        former = _former(file, number)
        if former.exists():
            former.replace(_former(file, number + 1))
    shutil.copyfile(file, _former(file, 1))
    with file.open("rb+") as full:
        full.truncate()
    return True


def _former(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")
