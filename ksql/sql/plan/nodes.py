"""The query as a few typed nodes.

They are a closed union, so mypy lists every ``match`` that a new node concerns. Every field says
with ``on_upgrade`` what may become of it when a running query is replaced (KLIP-28):

``match``   it must stay as it is (else the upgrade is refused, as class ``kind``, naming
            ``clause``)
``grow``    entries may be appended at the end, none removed or changed (a schema evolution)
``free``    it may change (the change counts as class ``kind``)
``child``   the plan below, compared in its turn
``derived`` follows from other fields or from the running service; not compared

Rows between nodes are columns by name. A source's columns carry ``prefix`` (``A_`` in a join).
Besides its own columns every row has ROWTIME, and rows of sources ROWPARTITION and ROWOFFSET;
windowed rows have WINDOWSTART and WINDOWEND.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from typing import Any, Literal

from ksql.core.types import Column, Format, KeyWindow, SqlType, TimestampColumn
from ksql.functions import OverloadKey
from ksql.sql.binder.bound import Bound, Named
from ksql.sql.syntax.ast import JoinKind, SourceKind

Placement = Literal["", "kept", "keyed", "moved"]

UpgradeKind = Literal[
    "data selection",
    "schema evolution",
    "configuration",
    "source modifying",
    "topology",
    "scaling",
    "unsupported",
]


def on_upgrade(
    rule: Literal["match", "grow", "free", "child", "derived"],
    kind: UpgradeKind = "unsupported",
    clause: str = "",
    *,
    default: Any = MISSING,
) -> Any:
    """Return the upgrade rule of a plan field; see the module's text."""
    return field(default=default, metadata={"rule": rule, "kind": kind, "clause": clause})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The records of a topic, decoded.

    ``scattered``: the windows of one key may lie in several partitions, so rows that must meet
    under the key have to be moved. Plans of earlier versions do not move them. ``later``: the
    columns that rows may lack which a join has kept since before the source got them.
    """

    name: str = on_upgrade("match", "source modifying", "FROM")
    kind: SourceKind = on_upgrade("match", "source modifying", "FROM")
    topic: str = on_upgrade("match", "source modifying", "FROM")
    prefix: str = on_upgrade("derived")
    columns: tuple[Column, ...] = on_upgrade("grow", "schema evolution", "FROM")
    key_format: Format = on_upgrade("match", "source modifying", "KEY_FORMAT of the source")
    value_format: Format = on_upgrade("match", "source modifying", "VALUE_FORMAT of the source")
    timestamp: TimestampColumn | None = on_upgrade(
        "match", "source modifying", "TIMESTAMP of the source"
    )
    window: KeyWindow | None = on_upgrade("match", "source modifying", "WINDOW_TYPE of the source")
    scattered: bool = on_upgrade("derived", default=False)
    later: tuple[str, ...] = on_upgrade("derived", default=())


@dataclass(frozen=True, slots=True)
class Filter:
    """WHERE or HAVING. On a table a row that does not pass is a deletion.

    ``leftovers``: an earlier plan of the query let other rows pass, which may still be in the
    result. So a row that does not pass is deleted there, whether this plan has let it pass or not.
    """

    source: Plan = on_upgrade("child")
    predicate: Bound = on_upgrade("free", "data selection", "WHERE")
    clause: Literal["WHERE", "HAVING"] = on_upgrade("derived")
    leftovers: bool = on_upgrade("derived", default=False)


@dataclass(frozen=True, slots=True)
class Rekey:
    """PARTITION BY: the expressions become the key; no expression (BY NULL) leaves no key."""

    source: Plan = on_upgrade("child")
    keys: tuple[Named, ...] = on_upgrade("match", "topology", "PARTITION BY")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCall:
    """One table function; its values make the column ``name`` of the rows that follow."""

    name: str
    function: str
    overload: OverloadKey
    args: tuple[Bound, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Explode:
    """Table functions: as many rows for one as the longest list that they give.

    Nothing is remembered, so calls may come, change and go: other rows are emitted from there on.
    """

    source: Plan = on_upgrade("child")
    calls: tuple[TableCall, ...] = on_upgrade("free", "data selection", "SELECT")


@dataclass(frozen=True, slots=True)
class Select:
    """The projection: the result's key and value columns."""

    source: Plan = on_upgrade("child")
    key: tuple[Named, ...] = on_upgrade("derived")
    value: tuple[Named, ...] = on_upgrade("free", "schema evolution", "SELECT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One aggregate: its state is slot ``slot`` of the group's state, its result column ``name``.

    ``literals`` are the constant trailing arguments.
    """

    slot: int
    name: str
    function: str
    overload: OverloadKey
    args: tuple[Bound, ...]
    literals: tuple[Any, ...]
    type: SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """TUMBLING (advance = size), HOPPING or SESSION (size = gap, advance 0) windows.

    ``retention_ms`` is how long the store keeps a window, at least size + grace.
    """

    kind: Literal["TUMBLING", "HOPPING", "SESSION"]
    size_ms: int
    advance_ms: int
    grace_ms: int
    retention_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """GROUP BY: folds rows per group (and window).

    A changed group would orphan the stored state. ``generations`` tell apart what a slot's number
    meant to upgrades that failed, by number; slots that are not listed have generation 0. A row
    that was not updated for longer than ``ttl_ms`` leaves; 0 keeps all. The state has an index of
    rows by time for each ``ttl_generation``, which changes with ``ttl_ms``.
    """

    source: Plan = on_upgrade("child")
    group: tuple[Named, ...] = on_upgrade("match", "topology", "GROUP BY")
    folds: tuple[Fold, ...] = on_upgrade("free", "schema evolution", "SELECT")
    window: TimeWindow | None = on_upgrade("match", "topology", "WINDOW")
    next_slot: int = on_upgrade("derived")
    generations: tuple[int, ...] = on_upgrade("derived", default=())
    ttl_ms: int = on_upgrade("free", "data selection", "RETENTION_MS", default=0)
    ttl_generation: int = on_upgrade("derived", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTableJoin:
    """Each stream record meets the table's row of that moment; the table is the right side."""

    left: Plan = on_upgrade("child")
    right: Plan = on_upgrade("child")
    kind: Literal["INNER", "LEFT"] = on_upgrade("match", "topology", "JOIN")
    left_key: Bound = on_upgrade("match", "topology", "ON")
    right_key: Bound = on_upgrade("match", "topology", "ON")
    key_name: str = on_upgrade("derived")


@dataclass(frozen=True, slots=True)
class JoinWindow:
    """WITHIN: how much earlier and later than a left record the right one may be.

    ``grace_ms`` is None where the statement has no GRACE PERIOD, which changes more than a number:
    see docs/sql/joins.md.
    """

    before_ms: int
    after_ms: int
    grace_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStreamJoin:
    """Each record meets those of the other side that are near in time."""

    left: Plan = on_upgrade("child")
    right: Plan = on_upgrade("child")
    kind: JoinKind = on_upgrade("match", "topology", "JOIN")
    left_key: Bound = on_upgrade("match", "topology", "ON")
    right_key: Bound = on_upgrade("match", "topology", "ON")
    window: JoinWindow = on_upgrade("match", "topology", "WITHIN")
    key_name: str = on_upgrade("derived")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTableJoin:
    """The rows of two tables under one primary key."""

    left: Plan = on_upgrade("child")
    right: Plan = on_upgrade("child")
    kind: JoinKind = on_upgrade("match", "topology", "JOIN")
    left_key: Bound = on_upgrade("match", "topology", "ON")
    right_key: Bound = on_upgrade("match", "topology", "ON")
    key_name: str = on_upgrade("derived")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeyJoin:
    """Each row of the left table meets the right one whose key it holds."""

    left: Plan = on_upgrade("child")
    right: Plan = on_upgrade("child")
    kind: Literal["INNER", "LEFT"] = on_upgrade("match", "topology", "JOIN")
    left_key: Bound = on_upgrade("match", "topology", "ON")
    right_key: Bound = on_upgrade("match", "topology", "ON")


@dataclass(frozen=True, slots=True)
class EmitFinal:
    """EMIT FINAL: the result of a window once, when it is closed."""

    source: Plan = on_upgrade("child")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """The topic that the query writes; ``topic`` None for transient queries.

    ``gathered``: all windows of a key go to the partition of the key without its window, as in
    Kafka Streams. Earlier versions chose it by the key with its window, and so it stays for the
    topics that they have written to.
    """

    source: Plan = on_upgrade("child")
    name: str = on_upgrade("match", "unsupported", "the name")
    kind: SourceKind = on_upgrade("match", "unsupported", "STREAM or TABLE")
    topic: str | None = on_upgrade("match", "unsupported", "KAFKA_TOPIC")
    key: tuple[Column, ...] = on_upgrade("match", "unsupported", "the key columns")
    value: tuple[Column, ...] = on_upgrade("grow", "schema evolution", "SELECT")
    key_format: Format = on_upgrade("match", "unsupported", "KEY_FORMAT")
    value_format: Format = on_upgrade("match", "unsupported", "VALUE_FORMAT")
    timestamp: TimestampColumn | None = on_upgrade("match", "unsupported", "TIMESTAMP")
    window: KeyWindow | None = on_upgrade("derived")
    gathered: bool = on_upgrade("derived", default=False)


Join = StreamTableJoin | StreamStreamJoin | TableTableJoin | ForeignKeyJoin
Plan = Source | Filter | Rekey | Explode | Select | Aggregate | EmitFinal | Join | Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A whole query as it is stored in the command topic and shipped to the workers.

    ``buckets``: how many ways records are exchanged; fixed with the checkpoint. ``every_change``:
    emit every change instead of one per key and micro-batch (``cache.max.bytes.buffering`` = 0).
    ``settings``: the other properties that change results (``ksql.core.properties``); for both,
    ``ksql.sql.upgrade.settings`` says what a difference means. ``lanes``: how many partitions Kafka
    Streams would have at each step; stream time is counted for each of them. It is 0 if nothing
    goes by time, and in plans of versions that counted it per bucket. ``partitions``: how many the
    result's topic had when the query was made. ``placement``: how results get there in order, see
    ``ksql.exec.dataflow.partitioning.placement``; empty in plans of versions that promised none.
    """

    query_id: str = on_upgrade("derived")
    sink: Sink = on_upgrade("child")
    buckets: int = on_upgrade("match", "scaling", "ksql.query.shuffle.partitions")
    every_change: bool = on_upgrade("derived")
    settings: tuple[tuple[str, str], ...] = on_upgrade("derived", default=())
    lanes: int = on_upgrade("match", "scaling", "the partitions of the sources", default=0)
    partitions: int = on_upgrade("derived", default=0)
    placement: Placement = on_upgrade("derived", default="")
    code: tuple[tuple[str, str], ...] = on_upgrade("derived", default=())
