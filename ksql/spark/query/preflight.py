"""The check before each launch that the checkpoint still fits to what Kafka has.

A checkpoint that was restored from a copy is older than what its query has written; a topic may
have been deleted and recreated. Both would lose records without a word.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ksql.core import QueryVersion
from ksql.kafka import topic_watch
from ksql.spark.checkpoint import checkpoint, checkpoint_topics, incarnations

if TYPE_CHECKING:
    from ksql.spark.checkpoint.checkpoint import Position
    from ksql.spark.query.spec import QuerySpec

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Preflight:
    """The questions to Kafka, asked once for each launch.

    ``marks`` gives the highest offset of the groups of that name. ``settled`` gives it once no open
    transaction can change it; the topic is the one whose offsets the groups commit. ``topic_ids``
    gives the ids of the topics that exist, ``begins`` their first offsets. All of them are asked
    again for a while if Kafka does not answer. ``clock`` gives seconds that only grow.
    """

    marks: Callable[[re.Pattern[str]], int] = lambda _names: 0
    topic_ids: Callable[[Iterable[str]], Mapping[str, str]] = lambda topics: dict.fromkeys(
        topics, ""
    )
    begins: Callable[[Iterable[str]], Mapping[tuple[str, int], int]] = lambda _topics: {}
    clock: Callable[[], float] = time.monotonic
    settled: Callable[[re.Pattern[str], str], int] = lambda _names, _topic: 0
    _missed: dict[QueryVersion, float] = field(default_factory=dict)

    def check(self, spec: QuerySpec, service_id: str) -> None:
        """Refuse a checkpoint that does not fit; write the topics' ids into one that does.

        Raises: OlderCheckpoint, TopicRecreated, TopicGone, ResultGone, CheckpointMissing,
            CheckpointDamaged, OSError, and what Kafka says.
        """
        incarnation = incarnations.Incarnation(spec.incarnation or "")
        incarnations.check_present(spec.query_id, spec.checkpoint, incarnation)
        planned = checkpoint.planned(spec.checkpoint)
        if spec.exactly_once:
            written = self.marks(spec.version.groups(service_id, incarnation.name))
            incarnations.check_age(spec.query_id, spec.checkpoint, written, planned)
        self._check_topics(spec, planned)

    def _check_topics(self, spec: QuerySpec, planned: Position | None) -> None:
        missed = self._missed.pop(spec.version, None)
        result = spec.sink_topic if planned is not None else None  # else it was made just now
        there = self.topic_ids([*spec.topics, *filter(None, [result])])
        then = checkpoint_topics.read(spec.checkpoint)
        now = {topic: id_ for topic, id_ in there.items() if topic in spec.topics}
        begun = set(planned.offsets) if planned is not None else set(then)
        read = {topic: then.get(topic, "") for topic in spec.topics if topic in begun}
        if missing := topic_watch.gone(read, now):
            self._note_gone(spec, then, missing, missed)
            raise checkpoint_topics.TopicGone(spec.query_id, missing)
        if recreated_topics := topic_watch.recreated(then, now, begun):
            if spec.fail_on_data_loss or planned is None:
                raise checkpoint_topics.TopicRecreated(spec.query_id, recreated_topics)
            self._read_again(spec, list(recreated_topics))
        if (known := checkpoint_topics.kept(then, now, begun)) != then:
            checkpoint_topics.write(spec.checkpoint, known)
        if result and result not in there:
            raise checkpoint_topics.ResultGone(spec.query_id, result)

    def _note_gone(
        self,
        spec: QuerySpec,
        then: Mapping[str, str],
        missing: Mapping[str, str],
        since: float | None,
    ) -> None:
        """Have topics of unknown ids count as recreated once they are back, if they are gone."""
        unknown = {topic: checkpoint_topics.NOBODYS for topic, id_ in missing.items() if not id_}
        now = self.clock()
        self._missed[spec.version] = since = now if since is None else since
        if unknown and now - since >= topic_watch.GONE_S:
            checkpoint_topics.write(spec.checkpoint, {**then, **unknown})

    def _read_again(self, spec: QuerySpec, topics: list[str]) -> None:
        starts: checkpoint.Offsets = {topic: {} for topic in topics}
        for (topic, partition), offset in self.begins(topics).items():
            starts[topic][partition] = offset
        checkpoint.move(spec.checkpoint, starts)
        for topic in topics:
            _log.warning(
                "remade_topic_read_from_its_beginning",
                extra={"query_id": spec.query_id, "topic": topic},
            )
