"""A query's plan as one Spark query: source, stages, sink; the same operators in the same order for every version of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.spark.shipment import Shipment
from ksql.spark.source import kafka_source
from ksql.spark.stage import TALLY_SCHEMA, StatelessRoad

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from ksql.spark.spec import QuerySpec


def dataflow(
    session: SparkSession, spec: QuerySpec, partitions: Callable[[str], int]
) -> DataFrame:
    """The whole road of the query; running it produces, its rows are only counts."""
    source = kafka_source(session, spec, partitions)
    return source.mapInArrow(StatelessRoad(shipment(spec)), TALLY_SCHEMA)


def shipment(spec: QuerySpec) -> Shipment:
    """What the tasks of the query take with them."""
    return Shipment(
        query_id=spec.query_id,
        plan_json=spec.plan_json,
        topics=tuple(spec.topics),
        producer=tuple(sorted(spec.producer.items())),
        exactly_once=spec.exactly_once,
        log_topic=spec.log_topic,
        program=spec.program,
    )
