"""The properties of queries: those that decide results, and how a query is run.

The first ones are stored in plans in the order of this table.
"""

from __future__ import annotations

from typing import Final

from ksql.base.properties.model import Property

RESULTS: Final = (
    Property(
        name="ksql.query.shuffle.partitions",
        kind="int",
        default="0",
        high=1_000,  # each is a task of every batch
        part_of="plan",
        doc="Buckets of a new stateful query, fixed with its state; 0 follows its input.",
    ),
    Property(
        name="ksql.query.fail.on.data.loss",
        kind="bool",
        default="true",
        part_of="plan",
        doc="Stop a query whose unread records are gone from the broker, instead of continuing.",
    ),
    Property(
        name="auto.offset.reset",
        kind="choice",
        default="latest",
        part_of="plan",
        family="KAFKA",
        choices=("earliest", "latest"),
        doc="Where a new query starts to read streams.",
    ),
    Property(
        name="processing.guarantee",
        kind="choice",
        default="at_least_once",
        part_of="plan",
        family="KAFKA",
        choices=("at_least_once", "exactly_once_v2"),
        doc="Whether a failure may repeat results; `exactly_once_v2` writes them in transactions.",
    ),
    Property(
        name="cache.max.bytes.buffering",
        kind="int",
        default="10000000",
        part_of="plan",
        family="KAFKA",
        doc="0 emits every change of an aggregate; otherwise only the last one of a batch.",
    ),
    Property(
        name="ksql.json_sr.converter.deserializer.enabled",
        kind="bool",
        default="true",
        part_of="plan",
        doc="Read JSON_SR as its registered schema says, not only as the columns do.",
    ),
    Property(
        name="ksql.fail.on.deserialization.error",
        kind="bool",
        default="false",
        part_of="plan",
        doc="End a query at a record that does not decode, instead of logging the record.",
    ),
    Property(
        name="ksql.fail.on.production.error",
        kind="bool",
        default="true",
        part_of="plan",
        doc="End a query at a record that is too large for its topic, "
        "instead of logging the record and leaving it out.",
    ),
    Property(
        name="ksql.timestamp.throw.on.invalid",
        kind="bool",
        default="false",
        part_of="plan",
        doc="End a query at a record whose TIMESTAMP column has no time, "
        "instead of logging the record.",
    ),
    Property(
        name="ksql.cast.strings.preserve.nulls",
        kind="bool",
        default="true",
        part_of="plan",
        doc="CAST of NULL to STRING gives NULL, not the text `null`.",
    ),
    Property(
        name="ksql.nested.error.set.null",
        kind="bool",
        default="true",
        part_of="plan",
        doc="An error in a nested expression gives NULL there, not for the whole column.",
    ),
)

RUNNING: Final = (
    Property(
        name="ksql.query.trigger.interval.ms",
        kind="int",
        default="100",
        high=3_600_000,
        part_of="query",
        doc="Shortest time between the starts of two micro-batches.",
    ),
    Property(
        name="ksql.query.max.records.per.batch",
        kind="int",
        default="500000",
        low=1,
        high=100_000_000,
        part_of="query",
        doc="Most records that a micro-batch reads.",
    ),
    Property(
        name="commit.interval.ms",
        kind="int",
        default="2000",
        part_of="query",
        family="KAFKA",
        doc="How often Kafka Streams commits; micro-batches commit by themselves.",
        effect=False,
    ),
)
