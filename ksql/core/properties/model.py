"""The table of properties: loads ``table.toml``, finds a property, and checks a value.

Names that only Kafka's Java clients and Kafka Streams take are known, too. Files that were written
for ksqlDB have them, as it hands them on.
Source: Kafka 4.1, the configurations of producers, consumers, admin clients and Streams.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, Literal, get_args

from ksql.core.errors import KsqlError, excerpt
from ksql.core.secrets import hidden_if_secret

LONG_MAX: Final = 2**63 - 1
_WHOLE = re.compile(r"-?[0-9]{1,20}")

Kind = Literal["text", "list", "int", "bool", "choice"]
"""A ``list`` is a text of names or patterns with commas between them."""

Part = Literal["plan", "query", "statement", "service"]
"""What a property belongs to, and so what becomes of it when a running query is replaced.

``plan``       it changes results: kept in the query's plan; a replacement inherits the running
               plan's value unless its request or session states one, and a difference is a change
``query``      how a query is run, not what it gives: kept with the query, inherited alike
``statement``  read while a statement is prepared or answered; its effect is part of the plan
``service``    one value for the whole server; cannot be SET
"""

Scope = Literal["server", "session", "query"]
"""Where a value holds: in the whole server, in a session, or in the query that was made with it."""

_SCOPES: Final[dict[Part, Scope]] = {
    "plan": "query",
    "query": "query",
    "statement": "session",
    "service": "server",
}


class InvalidProperty(KsqlError):
    """A property's value that is not of its type or lies out of its bounds."""

    operator = True

    def __init__(self, name: str, value: str, expected: str) -> None:
        shown = excerpt(hidden_if_secret(name, value))
        super().__init__(f"Invalid value {shown} for property {name}: expected {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property; sessions and requests can set all but those of the server.

    ``doc`` is one sentence for the documentation. ``family`` is the scope that LIST PROPERTIES
    shows. A property without ``effect`` is accepted for ksqlDB's sake and read by nothing. In a
    server's configuration it ``stands_for`` another one, if that is not stated.
    """

    name: str
    kind: Kind
    default: str
    doc: str
    part_of: Part = "service"
    family: Literal["KSQL", "KAFKA"] = "KSQL"
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = LONG_MAX
    effect: bool = True
    stands_for: str = ""

    @property
    def editable(self) -> bool:
        """Whether sessions may set it."""
        return self.part_of != "service"

    @property
    def scope(self) -> Scope:
        """Where its value holds."""
        return _SCOPES[self.part_of]

    @property
    def decides_results(self) -> bool:
        """Whether another value may give a query other results."""
        return self.part_of == "plan"

    def expected(self) -> str:
        """Describe the values that are accepted; empty if every text is."""
        match self.kind:
            case "int":
                return f"a whole number from {self.low} to {self.high}"
            case "bool":
                return "true or false"
            case "choice":
                return " or ".join(self.choices)
            case "text" | "list":
                return ""

    def accepts(self, value: str) -> bool:
        """Return whether the value is of the property's type and within its bounds."""
        match self.kind:
            case "int":
                return _WHOLE.fullmatch(value) is not None and self.low <= int(value) <= self.high
            case "bool":
                return value.lower() in ("true", "false")
            case "choice":
                return value.lower() in self.choices
            case "text" | "list":
                return True

    def check(self, value: str) -> None:
        """Refuse a value that the property cannot have.

        Raises: InvalidProperty.
        """
        if not self.accepts(value):
            raise InvalidProperty(self.name, value, self.expected())


def comma_list(text: str) -> tuple[str, ...]:
    """Split the value of a list at its commas; blanks around the parts and empty parts go."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _subjects() -> dict[str, tuple[Property, ...]]:
    text = files(__package__).joinpath("table.toml").read_text(encoding="utf-8")
    return {
        subject["title"]: tuple(
            _property(name, {"part": subject["part"], **row})
            for name, row in subject["rows"].items()
        )
        for subject in tomllib.loads(text).values()
    }


def _property(name: str, row: dict[str, Any]) -> Property:
    kind: Kind = next(word for word in get_args(Kind) if word in row)
    default, part, choices = row.pop(kind), row.pop("part"), row.pop("of", ())
    if part not in get_args(Part):
        raise ValueError(f"{name} belongs to {part!r}")
    return Property(
        name=name,
        kind=kind,
        default=str(default).lower() if kind == "bool" else str(default),
        part_of=part,
        choices=tuple(choices),
        **row,
    )


SUBJECTS: Final = _subjects()
PROPERTIES: Final[dict[str, Property]] = {
    row.name: row for rows in SUBJECTS.values() for row in rows
}
PLAN_PROPERTIES: Final = tuple(row.name for row in PROPERTIES.values() if row.decides_results)


_CLIENTS: Final = """
    auto.include.jmx.reporter client.dns.lookup client.id client.rack connections.max.idle.ms
    enable.metrics.push interceptor.classes metadata.max.age.ms metadata.recovery.strategy
    metadata.recovery.rebootstrap.trigger.ms metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    default.api.timeout.ms
"""
_PRODUCER: Final = """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys transaction.timeout.ms transactional.id value.serializer
"""
_CONSUMER: Final = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs enable.auto.commit
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms isolation.level
    key.deserializer max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    partition.assignment.strategy session.timeout.ms value.deserializer
"""
_STREAMS: Final = """
    application.id application.server built.in.metrics.version default.client.supplier
    default.deserialization.exception.handler default.key.serde default.production.exception.handler
    default.timestamp.extractor default.value.serde deserialization.exception.handler
    dsl.store.suppliers.class ensure.explicit.internal.resource.naming log.summary.interval.ms
    processing.exception.handler processor.wrapper.class production.exception.handler
    rack.aware.assignment.non_overlap_cost rack.aware.assignment.strategy
    rack.aware.assignment.tags rack.aware.assignment.traffic_cost rocksdb.config.setter
    statestore.cache.max.bytes task.assignor.class upgrade.from window.size.ms
    windowed.inner.class.serde
"""
_PREFIXES: Final = (
    "producer.",
    "consumer.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "admin.",
)
_NAMES: Final = frozenset((_CLIENTS + _PRODUCER + _CONSUMER + _STREAMS).split())
_TOPIC: Final = "topic."


def is_javas(name: str) -> bool:
    """Return whether Kafka Streams or one of its clients takes the name, without ``ksql.streams.``.

    ``topic.`` and a topic's setting is one for the topics that Kafka Streams makes.
    """
    if name.startswith(_TOPIC):
        return True
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix) in _NAMES
    return name in _NAMES
