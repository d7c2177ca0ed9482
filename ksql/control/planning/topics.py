"""The topic of a source: the one that Kafka has, or a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.control.planning.row_ttl import of_declared
from ksql.core import StatementError
from ksql.exec.dataflow import topic_acl
from ksql.sql.catalog import Topic

if TYPE_CHECKING:
    from ksql.control.planning.properties import With
    from ksql.core import Settings
    from ksql.exec import Topics
    from ksql.sql.syntax import SourceKind

_RETENTION = "retention.ms"
_DEFAULT_RETENTION_MS = 604_800_000
MOST_PARTITIONS = 100_000
MOST_REPLICAS = 10_000
"""The bounds of Kafka's client library; brokers have narrower ones of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTopic:
    """The topic of a statement: the properties that it states, and Kafka's topic of that name.

    A new topic takes partitions, replicas and retention over from ``like``.
    """

    name: str
    partitions: int | None
    replicas: int | None
    retention_ms: int | None
    existing: Topic | None
    like: Topic | None = None


@dataclass(frozen=True, slots=True)
class SettledTopic:
    """A topic with all its properties; ``is_new``: it is to be created."""

    topic: Topic
    is_new: bool


def requested(
    name: str, options: With, topics: Topics, like: Topic | None = None
) -> RequestedTopic:
    """Read what a WITH clause asks for, and look for the topic."""
    return RequestedTopic(
        name=name,
        partitions=options.number("PARTITIONS"),
        replicas=options.number("REPLICAS"),
        retention_ms=options.number("RETENTION_MS"),
        existing=topics.describe(name),
        like=like,
    )


def settled(
    request: RequestedTopic,
    kind: SourceKind,
    settings: Settings,
    *,
    windowed: bool,
    window_ms: int = 0,
) -> SettledTopic:
    """Decide whether the topic is to be created, and how.

    A query keeps its windows for ``window_ms``; a new topic does not forget them earlier.

    Raises: StatementError if the counts differ from those of the existing topic, or none is given
    for a new one; NoRowRetention for a retention that no topic of a table has.
    """
    if request.retention_ms is not None and kind == "TABLE" and not windowed:
        raise of_declared()
    topic_acl.check_read(request.name, "use")
    if request.existing is not None:
        _check_same(request, request.existing)
        return SettledTopic(request.existing, is_new=False)
    topic_acl.check_write(request.name, settings, "create")
    count = (
        request.like.partitions
        if request.partitions is None and request.like
        else request.partitions
    )
    if count is None:
        raise StatementError(
            f"Topic '{request.name}' does not exist. If you want to create a new topic for the "
            f"{kind.lower()} please re-run the statement providing the required "
            "'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS').",
            hint=f"For example: CREATE {kind} .. WITH (KAFKA_TOPIC='{request.name}', PARTITIONS=1, "
            "..);",
        )
    _check_count("partitions", count, MOST_PARTITIONS)
    replicas = request.replicas
    if replicas is None:
        replicas = request.like.replicas if request.like else 1
    else:
        _check_count("replicas", replicas, MOST_REPLICAS)
    configs = _configs(request, kind, windowed=windowed, window_ms=window_ms)
    return SettledTopic(Topic(request.name, count, replicas, configs), is_new=True)


def _check_count(what: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise StatementError(
            f"Invalid number of {what}: {count}", hint=f"Give a number from 1 to {most}."
        )


def _check_same(request: RequestedTopic, topic: Topic) -> None:
    unset = -1 if request.retention_ms is None else request.retention_ms
    for word, expected, has in (
        ("partitions", request.partitions, topic.partitions),
        ("replicas", request.replicas, topic.replicas),
        ("retention", request.retention_ms, int(topic.configs.get(_RETENTION, unset))),
    ):
        if expected is not None and expected != has:
            raise StatementError(
                f"A Kafka topic with the name '{request.name}' already exists, with different "
                "partition/replica configuration than required. "
                f"KSQL expects {expected} {word} (topic has {has})."
            )


def _configs(
    request: RequestedTopic, kind: SourceKind, *, windowed: bool, window_ms: int
) -> dict[str, str]:
    policy = "delete" if kind == "STREAM" else "compact,delete" if windowed else "compact"
    configs = {"cleanup.policy": policy}
    retention = request.retention_ms
    if retention is None and request.like is not None and policy != "compact":
        retention = int(request.like.configs.get(_RETENTION, _DEFAULT_RETENTION_MS))
    if retention is not None:
        configs[_RETENTION] = str(retention if retention < 0 else max(retention, window_ms))
    return configs
