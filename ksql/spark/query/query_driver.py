"""The parts that start and end a query: those of Spark, or of a test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery

from ksql.core import QueryVersion
from ksql.spark.query.spec import Failure, QuerySpec

OnFailure = Callable[[QueryVersion, Failure], None]
"""Called each time that a version which was started has ended with an error."""


def unheard(_version: QueryVersion, _failure: Failure) -> None:
    """Ignore a failure, for callers that ask the query itself."""


@dataclass(frozen=True)
class QueryDriver:
    """Starts and ends a query; Spark, or a test.

    ``prepare`` finds out what to start and may fail as long as Kafka is away. ``launch`` starts it.
    ``finish`` asks it to end between two batches and waits for that long: True if it has ended.
    ``bound`` sets how many records its next batches may have. ``build`` does ahead what a start
    takes long for. ``vet`` looks before each launch whether the checkpoint still fits to what
    Kafka has, and returns what will be launched. A query whose spec names a ``gate`` that is closed
    waits there before it looks at its source; ``close_gate`` returns whether there are gates.
    """

    prepare: Callable[[], QuerySpec]
    launch: Callable[[QuerySpec], StreamingQuery]
    finish: Callable[[StreamingQuery, float], bool]
    bound: Callable[[StreamingQuery, int], None] = lambda _query, _records: None
    build: Callable[[QuerySpec], None] = lambda _spec: None
    vet: Callable[[QuerySpec], QuerySpec] = lambda spec: spec
    close_gate: Callable[[str], bool] = lambda _gate: False
    open_gate: Callable[[str], None] = lambda _gate: None
