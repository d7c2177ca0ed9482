"""Decides which topics statements may touch.

A topic of Kafka's or of any service's own inner workings (command topics, changelogs, schemas,
offsets) is closed, whatever the configuration says. A topic that ``ksql.readonly.topics`` matches,
the processing log and the audit's topic can be read and nothing else. Source:
docs/configuration.md#topics-that-no-setting-opens.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ksql.core import INTERNAL_TOPIC, StartError, StatementError, application_id, comma_list
from ksql.exec.dataflow.query_start import read_topics
from ksql.kafka import processing_log

if TYPE_CHECKING:
    from ksql.core import Settings
    from ksql.sql.plan import QueryPlan

HIDDEN: Final = "ksql.hidden.topics"
READ_ONLY: Final = "ksql.readonly.topics"

_CLOSED: Final = re.compile(
    r"_confluent-ksql-.*"  # command topics, changelogs, whatever a service keeps, of any id
    r"|_schemas.*"  # of the embedded registry, or of Confluent's
    r"|__consumer_offsets|__transaction_state|__share_group_state"
    r"|__cluster_metadata|__remote_log_metadata",
    re.DOTALL,
)
_CHANGELOGS: Final = re.compile(r"_confluent-ksql-.*query_.+-changelog", re.DOTALL)
_LOG_OF_ANY: Final = "ksql_processing_log"


class ReadOnlyTopic(StatementError):
    """A topic that statements neither write nor delete."""

    def __init__(self, topic: str, doing: str) -> None:
        closed = _CLOSED.fullmatch(topic)
        super().__init__(
            f"Cannot {doing} read-only topic: {topic}",
            detail="It is internal to Kafka or to a ksql service, which would lose what it keeps "
            "there."
            if closed
            else f"It is the processing log or the audit's topic, or {READ_ONLY} names it.",
            hint="Choose another KAFKA_TOPIC."
            if closed
            else f"Choose another topic, or change {READ_ONLY} in the server's configuration.",
        )


class BadTopicPattern(StartError):
    """A configured pattern for the names of topics that is no regular expression."""

    def __init__(self, name: str, pattern: str, reason: str) -> None:
        super().__init__(
            f"{name} has the pattern '{pattern}', which is no regular expression",
            detail=reason,
            hint=f"Example: {name}=_confluent.*,connect-configs",
        )


def check_read(topic: str, doing: str = "read") -> None:
    """Refuse to read what is closed; no setting opens it.

    Raises: INTERNAL_TOPIC.
    """
    if _CLOSED.fullmatch(topic):
        raise INTERNAL_TOPIC(topic=topic, doing=doing)


def check_write(topic: str, settings: Settings, doing: str = "write to") -> None:
    """Refuse to write to, or to make, a topic that is closed or read-only.

    Raises: ReadOnlyTopic.
    """
    if not _open(topic, settings):
        raise ReadOnlyTopic(topic, doing)


def check_delete(topic: str, settings: Settings) -> None:
    """Refuse to delete a topic that is closed or read-only.

    Raises: ReadOnlyTopic.
    """
    if not may_delete(topic, settings):
        raise ReadOnlyTopic(topic, "delete")


def may_delete(topic: str, settings: Settings) -> bool:
    """Return whether a statement may delete the topic."""
    return _open(topic, settings)


def check_promise(topic: str) -> None:
    """Refuse a stored promise to delete a closed topic that is no query's own.

    Raises: ReadOnlyTopic.
    """
    if _CLOSED.fullmatch(topic) and not _CHANGELOGS.fullmatch(topic):
        raise ReadOnlyTopic(topic, "delete")


def check_plan(plan: QueryPlan, settings: Settings) -> None:
    """Refuse to run a query over closed topics, wherever its plan comes from.

    The changelog of a SOURCE table's query is closed to everybody but that query.
    Raises: INTERNAL_TOPIC.
    """
    for topic in read_topics(plan):
        check_read(topic)
    sink = plan.sink.topic
    if sink is not None and not is_changelog(sink, plan.query_id, settings):
        check_read(sink, "write to")


def is_changelog(topic: str, query_id: str, settings: Settings) -> bool:
    """Return whether the topic is one that this query keeps for itself."""
    owner = application_id(settings.text("ksql.service.id"), query_id)
    return topic.startswith(f"{owner}-") and topic.endswith("-changelog")


def check_patterns(settings: Settings) -> None:
    """Refuse patterns that do not read, before they are needed.

    Raises: BadTopicPattern.
    """
    for name in (HIDDEN, READ_ONLY):
        matching(name, settings.text(name))


@lru_cache(maxsize=32)
def matching(name: str, patterns: str) -> re.Pattern[str]:
    """Return the topics that a property's list of regular expressions matches.

    Raises: BadTopicPattern.
    """
    parts = comma_list(patterns)
    for part in parts:
        try:
            re.compile(part)
        except re.error as error:
            raise BadTopicPattern(name, part, str(error)) from error
    return re.compile("|".join(f"(?:{part})" for part in parts) or r"(?!)")


def _open(topic: str, settings: Settings) -> bool:
    if _CLOSED.fullmatch(topic) or topic.endswith(_LOG_OF_ANY):
        return False
    configured = settings.text("ksql.logging.processing.topic.name")
    log = processing_log.topic_name(settings.text("ksql.service.id"), configured)
    logs = (log, settings.text("ksql.audit.topic.name"))
    return topic not in logs and not matching(READ_ONLY, settings.text(READ_ONLY)).fullmatch(topic)
