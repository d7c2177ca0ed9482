"""The feeds of clients' queries: those whose topic is no longer the one that they read are ended.

A consumer says nothing of a topic that was deleted: its query would wait for ever. Of one that was
made again it reads on at the former offset: the first records would be missing, without a word.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ksql.core.errors import ServerError
from ksql.serving.feed import TopicFeed
from ksql.spark.checkpoint import checkpoint_topics
from ksql.spark.query.topic_watch import TopicWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ksql.core.errors import KsqlError
    from ksql.kafka.settings import KafkaSettings
    from ksql.serving.feed import Offsets


class ReadTopicRemade(ServerError):
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
    """Makes feeds, and looks at the topics of the open ones; for any number of threads.

    ``topic_ids`` gives the ids of existing topics, asked without patience; ``clock`` gives seconds
    that only grow. All feeds are asked for in one request. A feed takes for its own the topics that
    the first look finds.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topic_ids: Callable[[Iterable[str]], Mapping[str, str]],
        clock: Callable[[], float],
    ) -> None:
        self._kafka = kafka
        self._topic_ids = topic_ids
        self._open: dict[str, _Reading] = {}
        self._numbers = itertools.count()
        self._topic_watch = TopicWatch(self._current_ids, clock, _changed, ReadTopicGone)

    def open(self, start: Offsets, on_end: Callable[[], None]) -> TopicFeed:
        """Return a feed that begins at these offsets and calls that when it is closed."""
        name = f"feed {next(self._numbers)}"

        def end() -> None:
            self._open.pop(name, None)
            on_end()

        feed = TopicFeed(self._kafka, start, end)
        self._open[name] = _Reading(name, feed, {topic for topic, _ in start})
        return feed

    def look(self) -> None:
        """Look once at what the open feeds read; about once a second."""
        self._topic_watch.look(list(self._open.values()))

    def _current_ids(self, topics: Iterable[str]) -> Mapping[str, str]:
        ids = self._topic_ids(topics)
        for reading in list(self._open.values()):
            reading.learn(ids)
        return ids


class _Reading:
    """An open feed, as it is watched; see ``ksql.spark.query.topic_watch``."""

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


def _changed(
    _name: str, then: Mapping[str, str], now: Mapping[str, str]
) -> ReadTopicGone | ReadTopicRemade | None:
    if missing := checkpoint_topics.gone(then, now):
        return ReadTopicGone(missing)
    if topics := checkpoint_topics.remade(then, now, set(then)):
        return ReadTopicRemade(topics)
    return None


def _named(topics: Iterable[str]) -> str:
    return ", ".join(f'"{topic}"' for topic in topics)
