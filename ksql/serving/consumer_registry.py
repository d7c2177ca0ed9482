"""Opens the consumers of push queries, and ends those whose topic was deleted or recreated.

A consumer says nothing of a topic that was deleted: its query would wait for ever. Of one that was
recreated it reads on at the former offset: the first records would be missing, without a word.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from ksql.core import KsqlError, ServerError
from ksql.kafka import Problems, QueryTopics, Watched, ids_of
from ksql.serving.feed import Offsets, TopicFeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ksql.kafka import Identities, KafkaSettings, OffsetsGone


class ReadTopicRecreated(ServerError):
    """A topic that is no longer the one that a client's query reads."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__(
            f"topic {_named(topics)} was deleted and recreated while the query read it",
            detail="Its place belongs to the former topic: to continue there would leave out the "
            "first records of the new one.",
            hint="Start the query again: it reads the new topic.",
        )


class ReadTopicGone(ServerError):
    """A topic that a client's query reads and that is not there any more."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__(
            f"topic {_named(topics)} was deleted while the query read it",
            hint="Start the query again when there is such a topic.",
        )


class ConsumerRegistry:
    """Makes feeds, and has the topics of the open ones watched; for any number of threads.

    ``clock`` gives seconds that only grow. A feed takes for its own the topics that the first look
    finds.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic_id: Callable[[str], str | None],
        clock: Callable[[], float],
    ) -> None:
        """Take ``topic_id``, as of ``Admin``."""
        self._kafka = kafka
        self._topic_id = topic_id
        self._open: dict[str, _WatchedFeed] = {}
        self._numbers = itertools.count()
        self._topics = QueryTopics(lambda: list(self._open.values()), _PROBLEMS, clock)

    def open(self, start: Offsets, on_end: Callable[[], None]) -> TopicFeed:
        """Return a feed that begins at these offsets and calls that when it is closed."""
        name = f"feed {next(self._numbers)}"

        def end() -> None:
            self._open.pop(name, None)
            on_end()

        def explain(problem: OffsetsGone) -> KsqlError:
            reading = self._open.get(name)
            then = "" if reading is None else reading.reads()[problem.topic]
            return self._reason(problem, then)

        feed = TopicFeed(self._kafka, start, end, explain)
        self._open[name] = _WatchedFeed(name, feed, {topic for topic, _ in start})
        return feed

    def _reason(self, problem: OffsetsGone, then: str) -> KsqlError:
        """Return that the topic was recreated if its id is another one than then.

        A new topic that is still empty has no such offset, and the next look is still to come.
        """
        try:
            now = self._topic_id(problem.topic)
        except KsqlError:  # Kafka does not answer: what it has said before is all that is known
            return problem
        return ReadTopicRecreated([problem.topic]) if then and now and then != now else problem

    def watched(self) -> Watched:
        """Return what the open feeds read; those of another topic than before are ended."""
        topics, compare = self._topics.watched()

        def learn_and_compare(now: Identities | None) -> None:
            if now is not None:
                ids = ids_of(now)
                for reading in list(self._open.values()):
                    reading.learn(ids)
            compare(now)

        return Watched(topics, learn_and_compare)


class _WatchedFeed:
    """An open feed, as it is watched; see ``ksql.kafka.topic_watch``."""

    def __init__(self, name: str, feed: TopicFeed, topics: Iterable[str]) -> None:
        self.query_id = name
        self._feed = feed
        self._ids = dict.fromkeys(sorted(topics), "")

    def reads(self) -> Mapping[str, str]:
        """Return the topics that it reads, with their ids as far as they are known."""
        return self._ids

    def writes(self) -> str:
        """Return no topic: a client's query writes none."""
        return ""

    def lost(self) -> None:
        """Return None: it has no checkpoint."""

    def fail_with(self, problem: KsqlError, _ids: Mapping[str, str]) -> None:
        """Have its reader fail with the problem."""
        self._feed.fail(problem)

    def learn(self, ids: Mapping[str, str]) -> None:
        """Note the ids of the topics whose ids are not known."""
        for topic, id_ in self._ids.items():
            if not id_ and topic in ids:
                self._ids[topic] = ids[topic]


def _named(topics: Iterable[str]) -> str:
    return ", ".join(f'"{topic}"' for topic in topics)


_PROBLEMS: Final = Problems(
    gone=lambda _feed, topics: ReadTopicGone(topics),
    recreated=lambda _feed, topics: ReadTopicRecreated(topics),
    result_gone=lambda _feed, topic: ReadTopicGone([topic]),
)
