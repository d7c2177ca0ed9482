"""Consumer groups that nobody needs any more."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from ksql.kafka.errors import error_of

if TYPE_CHECKING:
    import re

    from ksql.kafka.settings import KafkaSettings

_log = logging.getLogger(__name__)
_PATIENCE_S: Final = 5.0


def delete_groups(settings: KafkaSettings, names: re.Pattern[str]) -> list[str]:
    """Delete the groups whose whole name fits; what cannot be deleted is left and logged."""
    client = AdminClient(settings.admin())
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
