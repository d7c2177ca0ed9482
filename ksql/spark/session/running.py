"""The queries that Spark runs, as this process sees them: one that is gone with its JVM is over.

A call to the JVM costs a quarter of a millisecond, and hundreds of queries are looked at several
times a second. So one call names all that are active.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from ksql.core import ServerError
from ksql.spark.session.jvm import LOST, classes_of, raise_if_java

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_ACTIVE_S: Final = 0.5
"""For how long a query counts as active after Spark has named it."""


class SparkRestarting(ServerError):
    """Spark's process has ended; a new one is on its way."""

    code = 50303

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Spark's process has ended and is being started again",
            detail=reason,
            hint="Try again in some seconds; the running queries continue from their checkpoints.",
        )


class WatchedQuery:
    """A query of Spark, as ``StreamingQuery``; one whose JVM is gone is over, and says why."""

    def __init__(self, query: StreamingQuery, why: Callable[[], str]) -> None:
        """Wrap a query; ``why`` explains the end of the JVM."""
        self._query = query
        self._why = why
        self._active_until = 0.0
        self._ends = False

    def __getattr__(self, name: str) -> Any:
        """Pass on everything that can fail only as Spark's own query does."""
        return getattr(self._query, name)

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether it runs; Spark is not asked right after it has named it."""
        if not self._ends and time.monotonic() < self._active_until:
            return True
        try:
            return bool(self._query.isActive)
        except LOST as lost:
            raise_if_java(lost)
            return False

    @property
    def status(self) -> dict[str, Any]:
        """Return the query's present activity."""
        try:
            return dict(self._query.status)
        except LOST as lost:
            raise_if_java(lost)
            return {"message": "", "isDataAvailable": False, "isTriggerActive": False}

    def exception(self) -> Exception | None:
        """Return the exception that ended the query."""
        try:
            return self._query.exception()
        except LOST as lost:
            raise_if_java(lost)
            return SparkRestarting(self._why())

    def note_active(self) -> None:
        """Take it as active for a moment: Spark has just named it among those that are."""
        self._active_until = time.monotonic() + _ACTIVE_S

    def note_ending(self) -> None:
        """Ask Spark from now on: it may have ended after a look that still named it."""
        self._ends = True

    def stop(self) -> None:
        """End it; with its JVM it has ended already."""
        self.note_ending()
        try:
            self._query.stop()
        except LOST as lost:
            raise_if_java(lost)
            return


class RunningQueries:
    """The queries that were launched and are still held, by the ids of their runs."""

    def __init__(self) -> None:
        self._by_run: WeakValueDictionary[str, WatchedQuery] = WeakValueDictionary()

    def add(self, query: StreamingQuery, why: Callable[[], str]) -> WatchedQuery:
        """Watch a query that was launched; ``why`` explains the end of the JVM."""
        watched = WatchedQuery(query, why)
        self._by_run[str(query.runId)] = watched
        return watched

    def note_active(self, session: SparkSession) -> None:
        """Have all that are active know it.

        Raises: an error of ``LOST`` if Spark's process has gone.
        """
        runs = classes_of(session).ksql.Queries.active(session._jsparkSession)  # noqa: SLF001 - no public way
        for run in runs.split(",") if runs else ():
            if (query := self._by_run.get(run)) is not None:
                query.note_active()
