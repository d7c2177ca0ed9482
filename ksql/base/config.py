"""The settings: each property's name, type, default and who may set it.

Names are ksqlDB's. A property of Kafka Streams, the consumer or the producer may be written with or
without the prefix ``ksql.streams.``. Values are texts where they come in and typed where they are
read.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ksql.base.errors import KsqlError
from ksql.base.excerpt import excerpt
from ksql.base.property import Property
from ksql.base.property import declared as _p
from ksql.base.ranges import bounds

STREAMS_PREFIX = "ksql.streams."


class UnknownProperty(KsqlError):
    """A property that does not exist or cannot be set here."""

    def __init__(self, name: str, hint: str = "") -> None:
        super().__init__(
            f"Not recognizable as ksql, streams, consumer, or producer property: '{excerpt(name)}'",
            hint=hint,
        )
        self.name = name


class InvalidProperty(KsqlError):
    """A property's value that is not of its type."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        super().__init__(f"Invalid value {excerpt(value)} for property {name}: expected {expected}")


PROPERTIES: dict[str, Property] = {
    row.name: row
    for row in (
        _p(
            "bootstrap.servers",
            "text",
            "",
            "Kafka's addresses; empty starts an embedded broker",
            scope="KAFKA",
        ),
        _p(
            "listeners",
            "text",
            "http://127.0.0.1:8088",
            "where REST listens; http://0.0.0.0:8088 is open to every machine",
        ),
        _p(
            "access.control.allow.origin",
            "text",
            "",
            "origins of web pages that may use REST and the embedded registry; * for all",
        ),
        _p(
            "access.control.allow.methods",
            "text",
            "GET,POST,HEAD",
            "what those pages may ask with",
        ),
        _p(
            "access.control.allow.headers",
            "text",
            "X-Requested-With,Content-Type,Accept,Origin",
            "headers that those pages may send",
        ),
        _p(
            "ksql.allowed.hosts",
            "text",
            "",
            "names under which clients reach this server, beside its own; * for all",
        ),
        _p("ksql.service.id", "text", "default_", "names the cluster of servers and its topics"),
        _p("ksql.state.dir", "text", "", "where checkpoints, stores and the embedded broker live"),
        _p(
            "ksql.state.adopt",
            "text",
            "",
            "begin anew with the Kafka cluster and command topic that a refused start has named",
        ),
        _p(
            "ksql.state.anew",
            "text",
            "",
            "queries (ids, or all) that may begin anew if their checkpoint is missing",
        ),
        _p(
            "ksql.state.aside.retention.ms",
            "int",
            "604800000",
            "how long state that no query knows is kept aside; -1: for ever",
        ),
        _p(
            "ksql.ledger.url",
            "text",
            "",
            "database of the ledger; empty is SQLite in the state directory",
        ),
        _p("ksql.spark.master", "text", "local[*]", "Spark's master"),
        _p("ksql.spark.driver.memory", "text", "1g", "heap of the Spark driver"),
        _p(
            "ksql.query.trigger.interval.ms",
            "int",
            "100",
            "pause between micro-batches",
            part_of="query",
        ),
        _p(
            "ksql.query.shuffle.partitions",
            "int",
            "0",
            "buckets of a new stateful query; 0 follows its input",
            part_of="plan",
        ),
        _p(
            "ksql.query.max.records.per.batch",
            "int",
            "500000",
            "upper bound of a micro-batch",
            part_of="query",
        ),
        _p(
            "ksql.query.fail.on.data.loss",
            "bool",
            "true",
            "stop a query whose unread records are gone from the broker, instead of going on",
            part_of="plan",
        ),
        _p(
            "auto.offset.reset",
            "choice",
            "latest",
            "where new queries start to read streams",
            part_of="plan",
            scope="KAFKA",
            choices=("earliest", "latest"),
        ),
        _p(
            "processing.guarantee",
            "choice",
            "at_least_once",
            "how outputs are written",
            part_of="plan",
            scope="KAFKA",
            choices=("at_least_once", "exactly_once_v2"),
        ),
        _p(
            "cache.max.bytes.buffering",
            "int",
            "10000000",
            "0 emits every change of an aggregate",
            part_of="plan",
            scope="KAFKA",
        ),
        _p(
            "commit.interval.ms",
            "int",
            "2000",
            "accepted for compatibility; micro-batches commit by themselves",
            part_of="query",
            scope="KAFKA",
        ),
        _p(
            "ksql.persistence.default.format.key",
            "text",
            "KAFKA",
            "key format when none is given",
            part_of="statement",
        ),
        _p(
            "ksql.persistence.default.format.value",
            "text",
            "",
            "value format when none is given",
            part_of="statement",
        ),
        _p(
            "ksql.persistence.wrap.single.values",
            "text",
            "",
            "default of WRAP_SINGLE_VALUE",
            part_of="statement",
        ),
        _p(
            "ksql.output.topic.name.prefix",
            "text",
            "",
            "prefix of topics made by CREATE .. AS SELECT",
            part_of="statement",
        ),
        _p("ksql.create.or.replace.enabled", "bool", "true", "allow CREATE OR REPLACE"),
        _p(
            "ksql.insert.into.values.enabled",
            "bool",
            "true",
            "allow INSERT VALUES",
            part_of="statement",
        ),
        _p("ksql.pull.queries.enable", "bool", "true", "allow pull queries"),
        _p(
            "ksql.query.pull.table.scan.enabled",
            "bool",
            "true",
            "allow pull queries without a key",
            part_of="statement",
        ),
        _p(
            "ksql.query.pull.limit.clause.enabled",
            "bool",
            "true",
            "allow LIMIT in pull queries",
            part_of="statement",
        ),
        _p("ksql.query.persistent.active.limit", "int", "2147483647", "how many queries may run"),
        _p(
            "ksql.query.push.state.max.bytes",
            "int",
            "268435456",
            "how large the state of a query that answers a client may become in the server",
        ),
        _p("ksql.max.push.queries", "int", "100", "how many push queries may run"),
        _p(
            "ksql.query.retry.backoff.initial.ms",
            "int",
            "15000",
            "first pause before a failed query is restarted",
        ),
        _p(
            "ksql.query.retry.backoff.max.ms",
            "int",
            "900000",
            "longest pause before a failed query is restarted",
        ),
        _p(
            "ksql.query.replace.timeout.ms",
            "int",
            "60000",
            "how long a replacement waits for the running batch to end before it is refused",
        ),
        _p("ksql.query.error.max.queue.size", "int", "10", "how many errors are kept per query"),
        _p(
            "ksql.json_sr.converter.deserializer.enabled",
            "bool",
            "true",
            "read JSON_SR as its registered schema says, not just as the columns do",
            part_of="plan",
        ),
        _p(
            "ksql.fail.on.deserialization.error",
            "bool",
            "false",
            "end a query at a record that does not decode",
            part_of="plan",
        ),
        _p(
            "ksql.fail.on.production.error",
            "bool",
            "true",
            "end a query at a record that is too large for its topic, instead of leaving it out",
            part_of="plan",
        ),
        _p(
            "ksql.source.table.materialization.enabled",
            "bool",
            "true",
            "CREATE SOURCE STREAM and CREATE SOURCE TABLE are allowed",
        ),
        _p(
            "ksql.create.topic.inherit.source.replicas.enabled",
            "bool",
            "true",
            "a result's topic gets as many replicas as that of its source",
            part_of="statement",
        ),
        _p(
            "ksql.query.pull.range.scan.enabled",
            "bool",
            "true",
            "pull queries may ask for a range of the key where tables are not scanned",
            part_of="statement",
        ),
        _p(
            "ksql.query.pull.stream.enabled",
            "bool",
            "true",
            "allow pull queries over streams",
            part_of="statement",
        ),
        _p(
            "ksql.query.push.v2.enabled",
            "bool",
            "false",
            "push queries over one query's result are named scalable and skip keyless records",
            part_of="statement",
        ),
        _p(
            "ksql.new.query.planner.enabled",
            "bool",
            "false",
            "key columns of a result come in the order of SELECT",
            part_of="statement",
        ),
        _p(
            "ksql.timestamp.throw.on.invalid",
            "bool",
            "false",
            "end a query at an invalid timestamp",
            part_of="plan",
        ),
        _p(
            "ksql.cast.strings.preserve.nulls",
            "bool",
            "true",
            "CAST of NULL to STRING gives NULL",
            part_of="plan",
        ),
        _p(
            "ksql.nested.error.set.null",
            "bool",
            "true",
            "an error in a nested expression gives NULL there",
            part_of="plan",
        ),
        _p(
            "ksql.variable.substitution.enable",
            "bool",
            "true",
            "replace ${name} in statements",
            part_of="statement",
        ),
        _p("ksql.suppress.enabled", "bool", "true", "allow EMIT FINAL", part_of="statement"),
        _p(
            "ksql.headers.columns.enabled",
            "bool",
            "true",
            "allow header columns",
            part_of="statement",
        ),
        _p("ksql.lambdas.enabled", "bool", "true", "allow lambda functions", part_of="statement"),
        _p(
            "ksql.schema.registry.url",
            "text",
            "",
            "address of the schema registry; empty starts an embedded one",
        ),
        _p(
            "ksql.schema.registry.listener",
            "text",
            "http://127.0.0.1:0",
            "where the embedded schema registry listens; port 0 takes a free one and keeps it",
        ),
        _p(
            "ksql.schema.registry.topic",
            "text",
            "_schemas",
            "where the embedded schema registry keeps its schemas: a compacted topic",
        ),
        _p(
            "ksql.extension.dir",
            "text",
            "ext",
            "where user functions are loaded from; relative to the configuration file, "
            "or without one to the state directory",
        ),
        _p("ksql.udfs.enabled", "bool", "true", "load user functions"),
        _p(
            "ksql.udf.timeout.ms",
            "int",
            "10000",
            "how long one call of a user function may take; its query ends then",
        ),
        _p(
            "ksql.udf.memory.max.bytes",
            "int",
            "2147483648",
            "how large a process that calls user functions may grow; its query ends then",
        ),
        _p("ksql.internal.topic.replicas", "int", "1", "replicas of internal topics"),
        _p(
            "ksql.logging.processing.topic.auto.create",
            "bool",
            "true",
            "create the processing log's topic",
        ),
        _p(
            "ksql.logging.processing.stream.auto.create",
            "bool",
            "true",
            "declare the stream KSQL_PROCESSING_LOG",
        ),
        _p(
            "ksql.logging.processing.stream.name",
            "text",
            "KSQL_PROCESSING_LOG",
            "name of the processing log's stream",
        ),
        _p(
            "ksql.logging.processing.rows.include",
            "bool",
            "false",
            "write rows into the processing log",
        ),
        _p(
            "ksql.logging.processing.topic.name",
            "text",
            "",
            "the processing log's topic; made from the service's id if empty",
        ),
        _p(
            "ksql.logging.processing.topic.replication.factor",
            "int",
            "1",
            "replicas of the processing log's topic",
        ),
        _p(
            "ksql.logging.processing.topic.partitions",
            "int",
            "1",
            "partitions of the processing log's topic",
        ),
        _p(
            "ksql.assert.topic.default.timeout.ms",
            "int",
            "1000",
            "how long ASSERT TOPIC waits",
            part_of="statement",
        ),
        _p(
            "ksql.assert.schema.default.timeout.ms",
            "int",
            "1000",
            "how long ASSERT SCHEMA waits",
            part_of="statement",
        ),
        _p(
            "ksql.server.command.response.timeout.ms",
            "int",
            "5000",
            "how long a statement waits for its end",
        ),
        _p(
            "ksql.command.topic.skip",
            "text",
            "",
            "offsets of commands to give up for good, should this server not be able to take them",
        ),
        _p(
            "ksql.properties.overrides.denylist", "text", "", "properties that sessions may not set"
        ),
        _p(
            "ksql.hidden.topics",
            "text",
            "_confluent.*,__confluent.*,_schemas,__consumer_offsets,__transaction_state,connect-configs,connect-offsets,connect-status,connect-statuses",
            "topics that SHOW TOPICS leaves out",
        ),
        _p(
            "ksql.readonly.topics",
            "text",
            "_confluent.*,__confluent.*,_schemas,__consumer_offsets,__transaction_state,connect-configs,connect-offsets,connect-status,connect-statuses",
            "topics that statements may not write",
        ),
        _p(
            "ksql.server.request.max.bytes",
            "int",
            "10485760",
            "longest body of a request; of /inserts-stream, longest line",
        ),
        _p("ksql.heartbeat.enable", "bool", "false", "exchange heartbeats between servers"),
    )
}
FUNCTION_PREFIX = "ksql.functions."
PLAN_PROPERTIES = tuple(row.name for row in PROPERTIES.values() if row.part_of == "plan")
OWN_PREFIX = "ksql."
_WHOLE = re.compile(r"-?[0-9]{1,20}")


def canonical(name: str) -> str:
    """The name without the optional prefix of Kafka Streams' properties."""
    return name.removeprefix(STREAMS_PREFIX)


def names(text: str) -> frozenset[str]:
    """The names of a list with commas."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def check(name: str, value: str | None = None) -> str:
    """The canonical name of a property that exists and, if a value is given, is of its type.

    Raises: UnknownProperty, InvalidProperty.
    """
    plain = canonical(name)
    if plain.startswith(FUNCTION_PREFIX):
        return plain
    row = PROPERTIES.get(plain)
    if row is None:
        close = difflib.get_close_matches(plain, PROPERTIES, n=1)
        raise UnknownProperty(name, f"Did you mean {close[0]}?" if close else "")
    if value is not None:
        _check_value(row, value)
    return plain


def _check_value(row: Property, value: str) -> None:
    if row.type == "int" and not _in_range(row.name, value):
        low, high = bounds(row.name)
        raise InvalidProperty(row.name, value, f"a whole number from {low} to {high}")
    if row.type == "bool" and value.lower() not in ("true", "false"):
        raise InvalidProperty(row.name, value, "true or false")
    if row.type == "choice" and value.lower() not in row.choices:
        raise InvalidProperty(row.name, value, " or ".join(row.choices))


def _in_range(name: str, value: str) -> bool:
    low, high = bounds(name)
    return _WHOLE.fullmatch(value) is not None and low <= int(value) <= high


def check_server(configuration: Mapping[str, str]) -> list[str]:
    """What is odd in a server's configuration: names that nothing here reads.

    Spark's, Kafka's and functions' properties belong to those.
    Raises: InvalidProperty.
    """
    odd = []
    for name, value in configuration.items():
        row = PROPERTIES.get(canonical(name))
        if row is not None:
            _check_value(row, value)
        elif name.startswith(OWN_PREFIX) and not name.startswith((FUNCTION_PREFIX, STREAMS_PREFIX)):
            close = difflib.get_close_matches(name, PROPERTIES, n=1, cutoff=0.8)
            hint = f" Did you mean {close[0]}?" if close else ""
            odd.append(f"the property {excerpt(name)} is not known and has no effect.{hint}")
    return odd


@dataclass(frozen=True)
class Settings:
    """The server's properties, with a session's overrides on top; immutable."""

    server: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The value as text: override, else server, else default."""
        for layer in (self.overrides, self.server):
            if name in layer:
                return layer[name]
            prefixed = STREAMS_PREFIX + name
            if prefixed in layer:
                return layer[prefixed]
        row = PROPERTIES.get(name)
        return row.default if row else ""

    def number(self, name: str) -> int:
        """A whole-number property."""
        return int(self.text(name))

    def flag(self, name: str) -> bool:
        """A true/false property."""
        return self.text(name).lower() == "true"

    def with_overrides(self, overrides: Mapping[str, str]) -> Settings:
        """The same with more session overrides, checked.

        Raises: UnknownProperty, InvalidProperty.
        """
        merged = dict(self.overrides)
        listed = self.text("ksql.properties.overrides.denylist").split(",")
        denied = {canonical(name.strip()) for name in listed}
        for name, value in overrides.items():
            plain = check(name, str(value))
            row = PROPERTIES.get(plain)
            if (row is not None and not row.editable) or plain in denied:
                raise UnknownProperty(name, "It can only be set in the server's configuration.")
            merged[plain] = str(value)
        return Settings(self.server, merged)

    def without(self, name: str) -> Settings:
        """The same without one session override."""
        plain = canonical(name)
        return Settings(self.server, {k: v for k, v in self.overrides.items() if k != plain})

    def functions(self) -> Iterator[tuple[str, str]]:
        """The properties of functions, ``ksql.functions.*``; an override hides the server's."""
        for name, value in {**self.server, **self.overrides}.items():
            if name.startswith(FUNCTION_PREFIX):
                yield name, value
