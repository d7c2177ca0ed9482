"""While queries run: are their checkpoints there, and the topics that they read, as they were?

Spark reads a topic that was made anew from the former offset on, without a word. Before a launch
``vetting`` compares; here the topics of all running queries are compared in one request, again and
again. What differs ends its query; the next launch judges what can be done.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from ksql.base.errors import KsqlError
from ksql.spark import origins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_log = logging.getLogger(__name__)


class Reading(Protocol):
    """A query as far as it is watched here."""

    @property
    def query_id(self) -> str:
        """Its id."""

    def reads(self) -> Mapping[str, str]:
        """Return the topics that it reads now, with the ids of its launch."""

    def lost(self) -> KsqlError | None:
        """Return what says that its checkpoint has gone; None as a rule."""

    def end_for(self, problem: KsqlError) -> None:
        """End it at once, and note the reason."""


class Lookout:
    """Compares the topics of running queries with those of their last launch; for one thread.

    A broker that has just come up may know less than the others for a moment. A difference
    therefore counts only if two looks in a row find it.
    """

    def __init__(self, topic_ids: Callable[[Iterable[str]], Mapping[str, str]]) -> None:
        """``topic_ids`` gives the ids of those topics that exist, asked without patience."""
        self._topic_ids = topic_ids
        self._suspected: frozenset[tuple[str, str]] = frozenset()
        self._blind = False

    def look(self, queries: Iterable[Reading]) -> None:
        """Look once; end the queries without checkpoint and those whose topics differed twice."""
        running = list(queries)
        for query in running:
            if (missing := query.lost()) is not None:
                query.end_for(missing)  # Spark would write a new one in its place
        self._compare(running)

    def _compare(self, queries: Iterable[Reading]) -> None:
        reading = {query: ids for query in queries if (ids := query.reads())}
        now = self._ask(sorted({topic for ids in reading.values() for topic in ids}))
        if now is None:
            return
        seen: set[tuple[str, str]] = set()
        for query, then in reading.items():
            problem = origins.changed(query.query_id, then, now)
            if problem is None:
                continue
            finding = (query.query_id, problem.text())
            seen.add(finding)
            if finding in self._suspected:
                query.end_for(problem)
        self._suspected = frozenset(seen)

    def _ask(self, topics: list[str]) -> Mapping[str, str] | None:
        try:
            found = self._topic_ids(topics) if topics else {}
        except KsqlError as error:  # whether Kafka answers at all is watched and shown elsewhere
            if not self._blind:
                self._blind = True
                _log.warning("topics_not_compared", extra={"reason": error.text()})
            return None
        self._blind = False
        return found
