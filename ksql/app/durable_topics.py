"""The topics that cannot be rebuilt, watched: the command topic and that of the schemas.

Nothing else would notice that they are gone: queries continue without them, and the next start is
refused.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from ksql.kafka.topic_integrity import TopicIntegrity, span_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.control.log.log import KafkaCommandLog
    from ksql.kafka.admin import Admin
    from ksql.kafka.topic_integrity import Span

_log = logging.getLogger(__name__)


class DurableTopics:
    """Looks at both, about once a second, without patience; for one thread."""

    def __init__(
        self, admin: Admin, log: KafkaCommandLog, schemas: str, ended: Callable[[], bool]
    ) -> None:
        """Take ``schemas``, the topic of the embedded registry; empty if there is none.

        ``ended`` says whether the service was terminated: then its command topic is gone on
        purpose.
        """
        self._ask = partial(span_of, admin)
        self._commands = log.wholeness
        self._schemas = TopicIntegrity(schemas) if schemas else None
        self._ended = ended

    def look(self) -> None:
        """Look once; log what has come or gone."""
        if self._ended():
            return
        _look(self._commands, "command_topic_lost", "command_topic_whole_again", self._ask)
        if self._schemas is not None:
            _look(self._schemas, "schemas_topic_lost", "schemas_topic_whole_again", self._ask)

    def schemas(self) -> str:
        """Return what is wrong with the topic of the schemas; empty if nothing is."""
        if self._schemas is None or not self._schemas.problem:
            return ""
        return (
            f"{self._schemas.problem}. Schemas that were registered are known until the server "
            "ends. Stop it, bring the topic back from a backup (`ksql restore DIRECTORY`) and "
            "start it again."
        )


def _look(topic: TopicIntegrity, lost: str, whole: str, ask: Callable[[str], Span]) -> None:
    if not topic.look(ask):
        return
    if topic.problem:
        _log.error(lost, extra={"reason": topic.problem})
    else:
        _log.warning(whole)
