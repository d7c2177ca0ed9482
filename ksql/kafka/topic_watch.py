"""Detects topics that were deleted or recreated: one request a second for all who have to know.

A client of Kafka, and Spark with it, reads a topic that was deleted and recreated from the former
offset on, without a word. It waits for ever for one that was deleted. A query that finds nothing to
read writes nothing, so that it does not notice either that the topic of its results is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol

from ksql.core import KsqlError
from ksql.kafka.admin import UNKNOWN, Identity

_log = logging.getLogger(__name__)

GONE_S: Final = 15.0
"""How long a topic must be missing to be gone: a broker that comes up learns of it later."""

Identities = Mapping[str, Identity]
"""What Kafka says of the topics that there are; ``UNKNOWN`` of one that it does not answer for."""


class Watched(NamedTuple):
    """The topics that somebody has to know of at the moment, and who takes the answer.

    The answer is None if Kafka gives none, which proves nothing.
    """

    topics: Collection[str]
    compare: Callable[[Identities | None], None]


class TopicWatch:
    """Asks for the topics of all its users in one request; for one thread, about once a second.

    ``identities`` gives those of existing topics, asked without patience, or an error in place of
    one. The users get ``UNKNOWN`` for such a topic, and the identities of the others. A user says
    what it watches now, before each look.
    """

    def __init__(
        self,
        identities: Callable[[Iterable[str]], Mapping[str, Identity | KsqlError]],
        users: Sequence[Callable[[], Watched]],
    ) -> None:
        self._identities = identities
        self._users = users
        self._blind = ""

    def poll(self) -> None:
        """Look once, and give each user the answer; one that fails hides it from no other.

        Raises: what the first user that failed has raised, when all have the answer.
        """
        failures: list[Exception] = []
        watched: list[Watched] = []
        for user in self._users:
            with _postponed(failures):
                watched.append(user())
        answer = self._ask({topic for part in watched for topic in part.topics})
        for part in watched:
            with _postponed(failures):
                part.compare(answer)
        if failures:
            raise failures[0]

    def _ask(self, topics: Set[str]) -> Identities | None:
        try:
            answers = self._identities(sorted(topics)) if topics else {}
        except KsqlError as error:
            self._note_blindness("all", error)
            return None
        errors = {topic: of for topic, of in answers.items() if isinstance(of, KsqlError)}
        if errors:
            self._note_blindness(", ".join(errors), next(iter(errors.values())))
        else:
            self._blind = ""
        return {
            topic: UNKNOWN if isinstance(of, KsqlError) else of for topic, of in answers.items()
        }

    def _note_blindness(self, topics: str, error: KsqlError) -> None:
        """Log it once for the same topics: whether Kafka answers at all is shown elsewhere."""
        if self._blind != topics:
            self._blind = topics
            _log.warning("topics_not_compared", extra={"topics": topics, "reason": error.text()})


@contextmanager
def _postponed(failures: list[Exception]) -> Iterator[None]:
    """Note what the block raises."""
    try:
        yield
    except Exception as failure:  # noqa: BLE001 - raised when the others are done
        failures.append(failure)


# --- who reads and writes -------------------------------------------------------------------------


class WatchedReader(Protocol):
    """A query as far as its topics are watched."""

    @property
    def query_id(self) -> str:
        """Its id."""

    def reads(self) -> Mapping[str, str]:
        """Return the topics that it reads now, with the ids of its launch."""

    def writes(self) -> str:
        """Return the topic that it writes now; empty if it writes none, or rests."""

    def lost(self) -> KsqlError | None:
        """Return what says that its checkpoint has gone; usually None."""

    def fail_with(self, problem: KsqlError, ids: Mapping[str, str]) -> None:
        """End it at once and note the reason, if ``ids`` are still those of its launch."""


class Problems(NamedTuple):
    """The errors of a query's topics, by its id.

    ``gone`` is of sources that are gone, with the ids that they had. ``recreated`` is of sources of
    other ids, with both. ``result_gone`` is of the topic of its results that is gone.
    """

    gone: Callable[[str, Mapping[str, str]], KsqlError]
    recreated: Callable[[str, Mapping[str, tuple[str, str]]], KsqlError]
    result_gone: Callable[[str, str], KsqlError]


class _Finding(NamedTuple):
    """A problem of a query, and for how long every look must find it."""

    problem: KsqlError
    patience_s: float = 0.0


class _Suspicion(NamedTuple):
    """Since when every look at a launch, known by its ids, has found the same."""

    ids: Mapping[str, str]
    since: float


_Suspicions = dict[tuple[WatchedReader, str], _Suspicion]
"""By the query and the text of what was found."""
_Reading = Mapping[WatchedReader, Mapping[str, str]]


class QueryTopics:
    """Compares the topics of running queries with those of their last launch; for one thread.

    One look proves nothing: what differs counts if two looks in a row find it. A broker that has
    just come up may not know all topics yet. So a topic is gone only if no look has found it for
    ``GONE_S``. Nothing wrong is read meanwhile.

    A topic that a query reads must keep its id, since offsets belong to it. The topic of its
    results must only exist: a query continues with a recreated one.
    """

    def __init__(
        self,
        queries: Callable[[], Iterable[WatchedReader]],
        problems: Problems,
        clock: Callable[[], float],
    ) -> None:
        """Take ``clock``, which gives seconds that only grow."""
        self._queries = queries
        self._problems = problems
        self._clock = clock
        self._lost: _Suspicions = {}
        self._changed: _Suspicions = {}

    def watched(self) -> Watched:
        """Return what the queries read and write now; what differs for long enough ends them.

        A query without its checkpoint is ended because Spark would write a new one in its place.
        """
        reading = {query: ids for query in self._queries() if (ids := query.reads())}
        results = {query: topic for query in reading if (topic := query.writes())}
        topics = {topic for ids in reading.values() for topic in ids} | set(results.values())
        return Watched(topics, partial(self._compare, reading, results))

    def _compare(
        self, reading: _Reading, results: Mapping[WatchedReader, str], now: Identities | None
    ) -> None:
        lost = {
            query: _Finding(missing) for query in reading if (missing := query.lost()) is not None
        }
        self._lost = self._judged(reading, lost, self._lost)
        differing = {} if now is None else self._differing(reading, results, ids_of(now))
        self._changed = self._judged(reading, differing, self._changed)

    def _judged(
        self, reading: _Reading, findings: Mapping[WatchedReader, _Finding], before: _Suspicions
    ) -> _Suspicions:
        """End the queries that were suspected for long enough; return what is suspected now."""
        now = self._clock()
        suspected: _Suspicions = {}
        for query, (problem, patience_s) in findings.items():
            finding = (query, problem.text())
            past = before.get(finding)
            if past is None or past.ids is not reading[query]:
                past = _Suspicion(reading[query], now)
            elif now - past.since >= patience_s:
                query.fail_with(problem, past.ids)
            suspected[finding] = past
        return suspected

    def _differing(
        self, reading: _Reading, results: Mapping[WatchedReader, str], now: Mapping[str, str]
    ) -> Mapping[WatchedReader, _Finding]:
        """Return what is wrong with the queries' topics; what they read counts first."""
        differing = {
            query: _Finding(self._problems.result_gone(query.query_id, topic), GONE_S)
            for query, topic in results.items()
            if topic not in now
        }
        for query, then in reading.items():
            if missing := gone(then, now):
                differing[query] = _Finding(self._problems.gone(query.query_id, missing), GONE_S)
            elif others := recreated(then, {topic: now[topic] for topic in then}, set(then)):
                differing[query] = _Finding(self._problems.recreated(query.query_id, others))
        return differing


def ids_of(identities: Identities) -> dict[str, str]:
    """Return the topics' ids."""
    return {topic: identity.id for topic, identity in identities.items()}


def recreated(
    then: Mapping[str, str], now: Mapping[str, str], begun: Set[str]
) -> dict[str, tuple[str, str]]:
    """Return the topics of other ids than before, with both; ``begun`` are those with offsets.

    An id that is not known, or that the brokers do not give, is like any other.
    """
    return {
        topic: (then[topic], id_)
        for topic, id_ in sorted(now.items())
        if topic in begun and id_ and then.get(topic, "") not in ("", id_)
    }


def gone(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the topics that were there before and are not there now, with the ids they had."""
    return {topic: id_ for topic, id_ in sorted(then.items()) if topic not in now}
