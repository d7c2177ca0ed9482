"""The one Kafka source of a query: all its topics, one set of offsets.

The columns are the same for every query and every version of it, so an upgrade never changes what
Spark compares with the checkpoint.

The JVM reads the records, or only plans what is read. Then its rows are ranges of offsets
(``KafkaRanges.java``, a thin cover of Spark's source), which the Python tasks read. Offsets and
checkpoints are the same, so that a query may change from one to the other.

Source: Spark's Structured Streaming + Kafka Integration Guide.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ksql.core import MISSING_OFFSETS
from ksql.spark.task.task_input import SOURCE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from ksql.spark.query.spec import QuerySpec, StartAt

_ENDS = {"earliest": -2, "latest": -1}

SOURCE = "ksql.KafkaRanges"
SOURCE_JAR = Path(__file__).with_name("kafka-source.jar")
"""The source compiled, as a Java runtime brings no compiler (``rangesjar``)."""

ISOLATION = "isolation.level"
COMMITTED = "read_committed"

CLIENT_DEFAULTS: Mapping[str, str] = {
    # what a transaction that failed has left in a topic was never written
    ISOLATION: COMMITTED,
    # a topic that has been deleted is not recreated by a request for its metadata
    "allow.auto.create.topics": "false",
    # the default of 500 ms adds half a second to every small batch
    "fetch.max.wait.ms": "5",
    "max.poll.records": "5000",
    "max.partition.fetch.bytes": str(4 << 20),
    "receive.buffer.bytes": str(1 << 20),
}


def kafka_source(
    session: SparkSession, spec: QuerySpec, partitions: Callable[[str], int]
) -> DataFrame:
    """Return the records of the query's topics, in the columns of ``SOURCE_COLUMNS``.

    With ``spec.reader``: the ranges in which they are, for the tasks to read.
    """
    client = {**CLIENT_DEFAULTS, **spec.consumer}
    if spec.exactly_once:
        client[ISOLATION] = COMMITTED
    options = {
        **{f"kafka.{name}": value for name, value in client.items()},
        "subscribe": ",".join(sorted(spec.topics)),
        "startingOffsets": starting_offsets(spec.topics, partitions),
        "maxOffsetsPerTrigger": str(spec.first_records or spec.max_records),
        "failOnDataLoss": "true" if spec.fail_on_data_loss else "false",
        "includeHeaders": "true",
        "groupIdPrefix": spec.application,
        "triggerMs": str(spec.trigger_ms),
        "restName": spec.name,
    }
    if spec.chain:
        queries = dict(spec.chain)
        links = {
            name: {**link._asdict(), "query": link.query or name} for name, link in queries.items()
        }
        marked = {link.sink for link in queries.values() if link.exactly_once}
        options["markedTopics"] = ",".join(sorted(marked & set(spec.topics)))
        if spec.until is None:  # all before a stated end was read already
            options["queryName"] = spec.name
            options["queries"] = json.dumps(links)
            options["upstreamWaitMs"] = str(spec.upstream_wait_ms)
            options["transactions"] = "true" if spec.exactly_once else "false"
    if spec.gate:
        options["gate"] = spec.gate
    if spec.until is not None:
        options["untilOffsets"] = json.dumps(spec.until)
        options["untilName"] = spec.name
    if spec.kept is not None:
        options["emptyBatch"] = str(spec.kept.batch)
    ranges = spec.reader is not None or spec.kept is not None
    if ranges:
        options["rangesOnly"] = "true"
    options["topicOrder"] = ",".join(spec.topics)  # the order of records counts
    source = session.readStream.format(SOURCE).options(**options).load()
    return source if ranges else source.selectExpr(*SOURCE_COLUMNS)


def starting_offsets(topics: Mapping[str, StartAt], partitions: Callable[[str], int]) -> str:
    """Return the source's start; Spark reads it only when a checkpoint is new.

    Raises:
        MISSING_OFFSETS: A topic's offsets do not name all its partitions.
    """
    ends = set(map(str, topics.values()))
    if ends in ({"earliest"}, {"latest"}):
        return ends.pop()
    return json.dumps(
        {topic: _per_partition(topic, start, partitions(topic)) for topic, start in topics.items()}
    )


def _per_partition(topic: str, start: StartAt, count: int) -> dict[str, int]:
    if isinstance(start, str):
        return {str(partition): _ENDS[start] for partition in range(count)}
    if missing := [partition for partition in range(count) if partition not in start]:
        raise MISSING_OFFSETS(topic=topic, partitions=missing)
    return {str(partition): start[partition] for partition in range(count)}
