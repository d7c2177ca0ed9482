"""A random query of ``tests.cuts`` on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ksql.core.records import OutRecord
from ksql.exec.dataflow.load import load
from ksql.exec.dataflow.query_start import plan_of
from ksql.sql.catalog.model import Topic

if TYPE_CHECKING:
    from ksql.exec.dataflow.program import Program
    from ksql.spark.query.spec import QuerySpec
    from ksql.sql.catalog.model import PersistentQuery
    from tests.cuts.cases import Case, Event
    from tests.spark.conftest import Desk


def ready(
    desk: Desk, case: Case, query: PersistentQuery, program: Program[OutRecord], **more: Any
) -> QuerySpec:
    """The query, to be started; its topics exist."""
    for name in (*program.topics, case.sink):
        desk.admin.create(Topic(name, case.partitions))
    spec: QuerySpec = desk.spec("copy", program.topics, case.sink)
    return replace(
        spec,
        plan_json=query.plan,
        stages=program.stages,
        partitions=case.buckets,
        moved=plan_of(query).placement == "moved",
        sink_topic=case.sink,
        loader=load,
        **more,
    )


def write(desk: Desk, events: Iterable[Event]) -> None:
    """Write them to their partitions, in their order."""
    for event in events:
        desk.sender.send(
            event.topic,
            event.key_bytes,
            event.value_bytes,
            timestamp=event.timestamp,
            partition=event.partition,
        )
    desk.sender.flush()


def difference(
    desk: Desk, case: Case, expected: Iterable[OutRecord], events: Sequence[Event]
) -> str | None:
    """What to look at if the results of a key are others than these."""
    results = [(each.key, each.value, each.timestamp, None) for each in desk.read(case.sink)]
    # tasks that read several partitions side by side write under other keys in any order
    ordered = case.shape != "moved"
    mine, theirs = (_per_key(each, ordered=ordered) for each in (results, expected))
    if mine == theirs:
        return None
    keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    unlike = [f"{key!r}: {mine.get(key)} instead of {theirs.get(key)}" for key in keys]
    return "\n".join([*case.statements, *map(str, events), *unlike])


def _per_key(records: Iterable[OutRecord], *, ordered: bool) -> dict[bytes | None, list[Any]]:
    """The results of each key; partitions of a result have no order among them."""
    by_key: dict[bytes | None, list[Any]] = {}
    for key, value, timestamp, _ in records:
        by_key.setdefault(key, []).append((timestamp, value or b""))
    for key, results in by_key.items():
        if key is None or not ordered:
            results.sort()
    return by_key
