"""A query's plan as one Spark query: the same operators in the same order for each version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.functions import expr

from ksql.kafka.producers import fitting
from ksql.spark.query.query_metrics import STAGE
from ksql.spark.session.source import COMMITTED, ISOLATION, kafka_source
from ksql.spark.task.host import StageHost
from ksql.spark.task.partitioner import bucket_labels
from ksql.spark.task.task_environment import TaskEnvironment
from ksql.spark.task.tasks import (
    EXCHANGE_SCHEMA,
    HELD_SCHEMA,
    INGEST_SCHEMA,
    LATE_SCHEMA,
    STATELESS_SCHEMA,
    TOTALS_SCHEMA,
    BackfillTask,
    IngestTask,
    SinkTask,
    StatelessMovedTask,
    StatelessTask,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ksql.kafka import Admin
    from ksql.spark.query.spec import QuerySpec


def dataflow(session: SparkSession, spec: QuerySpec, topics: Admin) -> DataFrame:
    """Return the whole road of the query; running it produces, its rows are only counts."""
    environment = outfitted(spec, topics)
    stream = kafka_source(session, spec, topics.partitions)
    if spec.stages == 0 and spec.moved:
        return _sunk(_ingested(stream, StatelessMovedTask(environment)), environment)
    if spec.stages == 0:
        stream = stream.mapInArrow(StatelessTask(environment), STATELESS_SCHEMA)
        return stream.observe("totals", _total("produced"), _total("errors"), _total("read"))
    return _stateful(stream, environment, spec.stages, moved=spec.moved)


def _stateful(
    stream: DataFrame, environment: TaskEnvironment, stages: int, *, moved: bool
) -> DataFrame:
    stream = _ingested(
        stream, IngestTask(environment) if environment.kept is None else BackfillTask(environment)
    )
    for stage in range(stages if moved else stages - 1):
        stream = _hosted(stream, StageHost(environment, stage), EXCHANGE_SCHEMA)
        stream = stream.observe(f"{STAGE}{stage}", _total("ERRORS", "errors"), _held(), *_late())
        stream = stream.select("B", "ERRORS", "BLOB")
    if moved:
        return _sunk(stream, environment)
    stream = _hosted(stream, StageHost(environment, stages - 1), TOTALS_SCHEMA)
    stream = stream.observe(f"{STAGE}{stages - 1}", _held(), *_late())
    return stream.observe("totals", _total("produced"), _total("errors"))


def _ingested(stream: DataFrame, task: IngestTask | BackfillTask | StatelessMovedTask) -> DataFrame:
    stream = stream.mapInArrow(task, INGEST_SCHEMA)
    stream = stream.observe(
        "ingest",
        _total("ERRORS", "errors"),
        expr("max(AHEAD) AS ahead"),
        _total("BYTES", "bytes"),
        _total("READ", "read"),
    )
    return stream.select("B", "ERRORS", "BLOB")


def _sunk(stream: DataFrame, environment: TaskEnvironment) -> DataFrame:
    """Return the end of a query whose results cross an exchange; without state, so any restart."""
    stream = stream.repartition(len(environment.buckets), "B").mapInArrow(
        SinkTask(environment), TOTALS_SCHEMA
    )
    return stream.observe("totals", _total("produced"), _total("errors"))


def _hosted(stream: DataFrame, host: StageHost, schema: str) -> DataFrame:
    schema = f"{schema}, {HELD_SCHEMA}, {LATE_SCHEMA}"
    return stream.groupBy("B").transformWithState(host, schema, "append", "none")


def _held() -> Column:
    """Return what the buckets of a batch hold at its end."""
    return expr(
        "collect_list(CASE WHEN BUCKET IS NOT NULL THEN struct(BUCKET, ENTRIES, SIZE) END) AS held"
    )


def _late() -> tuple[Column, Column]:
    """Return how many records of a batch were late, and the latest of them."""
    worst = "max(CASE WHEN BEHIND IS NOT NULL THEN struct(BEHIND, TOPIC, PART) END) AS worst"
    return _total("LATE", "late"), expr(worst)


def _total(column: str, name: str = "") -> Column:
    """Return a sum; as text it costs the JVM one call, made of parts a dozen."""
    return expr(f"sum({column}) AS {name or column}")


def outfitted(spec: QuerySpec, topics: Admin) -> TaskEnvironment:
    """Return ``task_environment``'s data with what the sink's topic takes."""
    environment = task_environment(spec)
    if spec.sink_topic is None:
        return environment
    limits = topics.limits(spec.sink_topic)
    fit = fitting(limits.batch_bytes, surely=spec.exactly_once)
    sink_id = topics.topic_id(spec.sink_topic) or ""
    environment = replace(environment, fitting=tuple(fit.items()), limits=limits, sink_id=sink_id)
    if not (spec.moved or spec.result_partitions):
        return environment
    partitions = topics.partitions(spec.sink_topic)
    return replace(environment, partitions=min(spec.result_partitions or partitions, partitions))


def task_environment(spec: QuerySpec) -> TaskEnvironment:
    """Return the data that the query's tasks take with them."""
    return TaskEnvironment(
        query_id=spec.query_id,
        application_id=spec.application,
        plan_json=spec.plan_json,
        topics=tuple(spec.topics),
        buckets=bucket_labels(spec.partitions) if spec.stages or spec.moved else (),
        producer=tuple(sorted(spec.producer.items())),
        exactly_once=spec.exactly_once,
        log_topic=spec.log_topic,
        log_rows=spec.log_rows,
        strict=spec.strict,
        ahead_ms=spec.ahead_ms,
        loader=spec.loader,
        lease=spec.lease,
        right=spec.right,
        reader=_reader(spec),
        all_records=spec.fail_on_data_loss,
        kept=spec.kept,
    )


def _reader(spec: QuerySpec) -> tuple[tuple[str, str], ...] | None:
    if spec.reader is None:
        return None
    committed = {ISOLATION: COMMITTED} if spec.exactly_once else {}
    return tuple(sorted({**spec.reader, **committed}.items()))
