"""The topic of a source: the one that Kafka has, or a new one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
class TopicWish:
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


def wished(name: str, options: With, topics: Topics, like: Topic | None = None) -> TopicWish:
    """Read the wish from a WITH clause, and look for the topic."""
    return TopicWish(
        name=name,
        partitions=options.number("PARTITIONS"),
        replicas=options.number("REPLICAS"),
        retention_ms=options.number("RETENTION_MS"),
        existing=topics.describe(name),
        like=like,
    )


def settled(
    wish: TopicWish, kind: SourceKind, settings: Settings, *, windowed: bool, window_ms: int = 0
) -> SettledTopic:
    """Decide whether the topic is to be created, and how.

    A query keeps its windows for ``window_ms``; a new topic does not forget them earlier.

    Raises: StatementError if the counts differ from those of the existing topic, or none is given
    for a new one.
    """
    if wish.retention_ms is not None and kind == "TABLE" and not windowed:
        raise StatementError(
            "Invalid config variable in the WITH clause: RETENTION_MS. "
            "Non-windowed tables do not support retention."
        )
    topic_acl.check_read(wish.name, "use")
    if wish.existing is not None:
        _check_same(wish, wish.existing)
        return SettledTopic(wish.existing, is_new=False)
    topic_acl.check_write(wish.name, settings, "create")
    count = wish.like.partitions if wish.partitions is None and wish.like else wish.partitions
    if count is None:
        raise StatementError(
            f"Topic '{wish.name}' does not exist. If you want to create a new topic for the "
            f"{kind.lower()} please re-run the statement providing the required "
            "'PARTITIONS' configuration in the WITH clause (and optionally 'REPLICAS').",
            hint=f"For example: CREATE {kind} .. WITH (KAFKA_TOPIC='{wish.name}', PARTITIONS=1, "
            "..);",
        )
    _check_count("partitions", count, MOST_PARTITIONS)
    replicas = wish.replicas
    if replicas is None:
        replicas = wish.like.replicas if wish.like else 1
    else:
        _check_count("replicas", replicas, MOST_REPLICAS)
    configs = _configs(wish, kind, windowed=windowed, window_ms=window_ms)
    return SettledTopic(Topic(wish.name, count, replicas, configs), is_new=True)


def _check_count(what: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise StatementError(
            f"Invalid number of {what}: {count}", hint=f"Give a number from 1 to {most}."
        )


def _check_same(wish: TopicWish, topic: Topic) -> None:
    unset = -1 if wish.retention_ms is None else wish.retention_ms
    for word, expected, has in (
        ("partitions", wish.partitions, topic.partitions),
        ("replicas", wish.replicas, topic.replicas),
        ("retention", wish.retention_ms, int(topic.configs.get(_RETENTION, unset))),
    ):
        if expected is not None and expected != has:
            raise StatementError(
                f"A Kafka topic with the name '{wish.name}' already exists, with different "
                "partition/replica configuration than required. "
                f"KSQL expects {expected} {word} (topic has {has})."
            )


def _configs(
    wish: TopicWish, kind: SourceKind, *, windowed: bool, window_ms: int
) -> dict[str, str]:
    policy = "delete" if kind == "STREAM" else "compact,delete" if windowed else "compact"
    configs = {"cleanup.policy": policy}
    retention = wish.retention_ms
    if retention is None and wish.like is not None and policy != "compact":
        retention = int(wish.like.configs.get(_RETENTION, _DEFAULT_RETENTION_MS))
    if retention is not None:
        configs[_RETENTION] = str(retention if retention < 0 else max(retention, window_ms))
    return configs
