"""Consumer groups: how far they have come, and the end of those that nobody needs any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from ksql.kafka.admin import Administrative
from ksql.kafka.errors import error_of, retrying
from ksql.kafka.logs import CLIENT_LOG

if TYPE_CHECKING:
    import re

    from ksql.kafka.settings import KafkaSettings

_log = logging.getLogger(__name__)
_PATIENCE_S: Final = 5.0


class GroupOffsets(Administrative):
    """Reads what groups have committed, through one connection."""

    def highest(self, names: re.Pattern[str]) -> int:
        """Return the highest offset of all groups whose whole name fits; 0 if there is none.

        What a transaction that is still open would commit does not count.

        Raises: KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        return retrying(
            lambda left, _tries: self._highest(names, min(left, _PATIENCE_S)),
            bootstrap=self._settings.bootstrap,
            timeout_s=self._settings.timeout_s,
            what="Cannot read the offsets of consumer groups",
        )

    def _highest(self, names: re.Pattern[str], limit_s: float) -> int:
        listed = self._client.list_consumer_groups(request_timeout=limit_s).result()
        for problem in listed.errors:  # a broker that does not answer may hold the highest
            raise problem
        asked = [
            # Kafka's client takes one group per request: all are on their way at once
            self._client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group.group_id)], request_timeout=limit_s
            )[group.group_id]
            for group in listed.valid
            if names.fullmatch(group.group_id)
        ]
        places = [place for future in asked for place in future.result().topic_partitions]
        for place in places:
            if place.error is not None:
                raise KafkaException(place.error)
        return max((0, *(int(place.offset) for place in places)))


def delete_groups(settings: KafkaSettings, names: re.Pattern[str]) -> list[str]:
    """Delete the groups whose whole name fits; what cannot be deleted is left and logged."""
    client = AdminClient(settings.admin(), logger=CLIENT_LOG)
    try:
        listed = client.list_consumer_groups(request_timeout=_PATIENCE_S).result(_PATIENCE_S)
        doomed = [group.group_id for group in listed.valid if names.fullmatch(group.group_id)]
        asked = client.delete_consumer_groups(doomed, request_timeout=_PATIENCE_S) if doomed else {}
    except (KafkaException, TimeoutError) as problem:
        _log.warning("groups_left", extra={"names": names.pattern, "reason": str(problem)})
        return []
    gone = []
    for group, future in asked.items():
        try:
            future.result(_PATIENCE_S)
            gone.append(group)
        except (KafkaException, TimeoutError) as problem:
            if not _is_gone(problem):
                _log.warning("group_left", extra={"group": group, "reason": str(problem)})
    return gone


def _is_gone(problem: Exception) -> bool:
    return (
        isinstance(problem, KafkaException)
        and error_of(problem).code() == KafkaError.GROUP_ID_NOT_FOUND
    )
