"""While queries run: are their checkpoints there, and their topics, as they were?

Spark reads a topic that was made again from the former offset on, without a word. Before a launch
``preflight`` compares; here the topics of all running queries are compared in one request, again
and again. What differs ends its query; the next launch judges what can be done. A query that finds
nothing to read writes nothing, so the topic of its results is looked for as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ksql.core.errors import KsqlError
from ksql.spark.checkpoint import checkpoint_topics

if TYPE_CHECKING:
    from collections.abc import Iterable

_log = logging.getLogger(__name__)


class ReadingQuery(Protocol):
    """A query as far as it is watched here."""

    @property
    def query_id(self) -> str:
        """Its id."""

    def reads(self) -> Mapping[str, str]:
        """Return the topics that it reads now, with the ids of its launch."""

    def writes(self) -> str:
        """Return the topic that it writes now; empty if it writes none, or rests."""

    def lost(self) -> KsqlError | None:
        """Return what says that its checkpoint has gone; None as a rule."""

    def fail_with(self, problem: KsqlError, ids: Mapping[str, str]) -> None:
        """End it at once and note the reason, if ``ids`` are still those of its launch."""


class _Suspicion(NamedTuple):
    """Since when every look at a launch, known by its ids, has found the same."""

    ids: Mapping[str, str]
    since: float


Changed = Callable[[str, Mapping[str, str], Mapping[str, str]], KsqlError | None]

_Suspicions = dict[tuple[ReadingQuery, str], _Suspicion]
"""By the query and the text of what was found."""


class TopicWatch:
    """Compares the topics of running queries with those of their last launch; for one thread.

    One look proves nothing: what differs counts if two looks in a row find it. A broker that has
    just come up may not know all topics yet, so a topic is gone only if no look has found it for
    ``checkpoint_topics.GONE_S``. Nothing wrong is read meanwhile.
    """

    def __init__(
        self,
        topic_ids: Callable[[Iterable[str]], Mapping[str, str]],
        clock: Callable[[], float],
        changed: Changed = checkpoint_topics.changed,
        gone: type[KsqlError] = checkpoint_topics.TopicGone,
    ) -> None:
        """Take ``topic_ids``, which gives the ids of existing topics, asked without patience.

        ``clock`` gives seconds that only grow. ``changed`` says what is wrong with the topics of a
        query: its id, the ids of then and those of now; ``gone`` is what it says of missing ones.
        """
        self._topic_ids = topic_ids
        self._clock = clock
        self._problem = changed
        self._gone = gone
        self._lost: _Suspicions = {}
        self._changed: _Suspicions = {}
        self._blind = False

    def look(self, queries: Iterable[ReadingQuery]) -> None:
        """Look once; end the queries whose checkpoint or topics were found wrong for long enough.

        A query without its checkpoint is ended because Spark would write a new one in its place.
        """
        reading = {query: ids for query in queries if (ids := query.reads())}
        lost = {query: missing for query in reading if (missing := query.lost()) is not None}
        self._lost = self._judged(reading, lost, self._lost)
        self._changed = self._judged(reading, self._differing(reading), self._changed)

    def _judged(
        self,
        reading: Mapping[ReadingQuery, Mapping[str, str]],
        problems: Mapping[ReadingQuery, KsqlError],
        before: _Suspicions,
    ) -> _Suspicions:
        """End the queries that were suspected for long enough; return what is suspected now."""
        now = self._clock()
        suspected: _Suspicions = {}
        for query, problem in problems.items():
            finding = (query, problem.text())
            past = before.get(finding)
            if past is None or past.ids is not reading[query]:
                past = _Suspicion(reading[query], now)
            elif now - past.since >= (
                checkpoint_topics.GONE_S if isinstance(problem, self._gone) else 0.0
            ):
                query.fail_with(problem, past.ids)
            suspected[finding] = past
        return suspected

    def _differing(
        self, reading: Mapping[ReadingQuery, Mapping[str, str]]
    ) -> Mapping[ReadingQuery, KsqlError]:
        """Return what is wrong with the queries' topics; nothing if Kafka does not answer."""
        results = {query: topic for query in reading if (topic := query.writes())}
        read = {topic for ids in reading.values() for topic in ids}
        now = self._ask(sorted(read | set(results.values())))
        if now is None:
            return {}
        without = {
            query: checkpoint_topics.ResultGone(query.query_id, topic)
            for query, topic in results.items()
            if topic not in now
        }
        differing = {
            query: problem
            for query, then in reading.items()
            if (problem := self._problem(query.query_id, then, now)) is not None
        }
        return {**without, **differing}

    def _ask(self, topics: list[str]) -> Mapping[str, str] | None:
        try:
            ids = self._topic_ids(topics) if topics else {}
        except KsqlError as error:  # whether Kafka answers at all is watched and shown elsewhere
            if not self._blind:
                self._blind = True
                _log.warning("topics_not_compared", extra={"reason": error.text()})
            return None
        self._blind = False
        return ids
