"""The offsets at which a query begins: those of its topics' beginnings, their ends, or a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.exec.dataflow import plan_of, read_topics, start_ms
from ksql.spark.checkpoint import checkpoint
from ksql.spark.query.batch_limits import Places, TopicOffsets, by_topic
from ksql.sql.catalog import PersistentQuery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ksql.spark.checkpoint.checkpoint import Offsets
    from ksql.spark.query.spec import StartAt

_EARLIEST: Final = -2


@dataclass(frozen=True)
class StartOffsets:
    """Finds the first offsets of queries.

    ``begins`` and ``ends`` give the first and the end offsets of topics. Those of the first
    records at or after a time (ms since the epoch) come from ``at``. ``checkpoint`` gives a place.
    """

    begins: TopicOffsets
    ends: TopicOffsets
    at: Callable[[list[str], int], Places]
    checkpoint: Callable[[PersistentQuery], Path]

    def first(self, query: PersistentQuery) -> Offsets:
        """Return where a query begins that has finished no batch yet."""
        topics = read_topics(plan_of(query))
        early = [topic for topic, start in topics.items() if start == "earliest"]
        return by_topic(self.begins(early) if early else {}) | self._pinned(query)

    def starts(self, query: PersistentQuery) -> dict[str, StartAt]:
        """Return where a query begins; once it has a checkpoint, that alone decides."""
        starts: dict[str, StartAt] = dict.fromkeys(read_topics(plan_of(query)), "earliest")
        if checkpoint.planned(self.checkpoint(query)) is None:
            starts |= self._pinned(query)
        return starts

    def _pinned(self, query: PersistentQuery) -> Offsets:
        """Return the offsets that "latest", or a time, meant when the query was created.

        It is written down before the first start: else a crash or a replacement before the first
        batch would lose what has come since. Newer partitions are read from their beginning.
        """
        topics = read_topics(plan_of(query))
        late = [topic for topic, start in topics.items() if start != "earliest"]
        if not late:
            return {}
        now = by_topic(self.ends(late))
        file = self.checkpoint(query) / checkpoint.START_OFFSETS
        if not file.exists():
            checkpoint.write_starts(file, now | self._at_times(topics))
        pinned = checkpoint.read_starts(file)
        return {
            topic: {p: pinned.get(topic, {}).get(p, _EARLIEST) for p in ends}
            for topic, ends in now.items()
        }

    def _at_times(self, topics: Mapping[str, str]) -> Offsets:
        """Return the offsets of the topics that are read from a time on."""
        offsets: Offsets = {}
        for topic, start in topics.items():
            if (time_ms := start_ms(start)) is not None:
                offsets |= by_topic(self.at([topic], time_ms))
        return offsets
