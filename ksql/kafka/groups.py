"""Consumer groups: how far they have come, and the end of those that nobody needs any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from ksql.kafka.coordinators import Coordinators
from ksql.kafka.errors import error_of, retrying

if TYPE_CHECKING:
    import re
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient


_log = logging.getLogger(__name__)
_PATIENCE_S: Final = 5.0


class Groups(Coordinators):
    """Reads what groups have committed, and deletes groups, through one connection."""

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
        group_ids = [group.group_id for group in listed.valid if names.fullmatch(group.group_id)]

        def ask(client: AdminClient, **more: float) -> dict[str, Future[Any]]:
            # Kafka's client takes one group per request: all are on their way at once
            return {
                name: client.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], **more
                )[name]
                for name in group_ids
            }

        futures = self.ask(ask, limit_s).values()
        partitions = [
            partition for future in futures for partition in future.result().topic_partitions
        ]
        for partition in partitions:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return max((0, *(int(partition.offset) for partition in partitions)))

    def delete(self, names: re.Pattern[str]) -> list[str]:
        """Delete the groups whose whole name fits; what cannot be deleted is left and logged."""
        try:
            listed = self._client.list_consumer_groups(request_timeout=_PATIENCE_S).result()
        except KafkaException as problem:
            _log.warning("groups_left", extra={"names": names.pattern, "reason": str(problem)})
            return []
        doomed = [group.group_id for group in listed.valid if names.fullmatch(group.group_id)]
        if not doomed:
            return []
        futures = self.ask(
            lambda client, **more: client.delete_consumer_groups(doomed, **more), _PATIENCE_S
        )
        gone = []
        for group, future in futures.items():
            try:
                future.result()
                gone.append(group)
            except KafkaException as problem:
                if error_of(problem).code() != KafkaError.GROUP_ID_NOT_FOUND:
                    _log.warning("group_left", extra={"group": group, "reason": str(problem)})
        return gone
