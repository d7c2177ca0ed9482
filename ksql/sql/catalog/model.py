"""The content of a catalog: sources, topics, types and persistent queries.

``ksql.core.types.schema`` explains the stored forms of sources and queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ksql.core import FIRST, Form, QueryId, QueryVersion, form
from ksql.core.types import Column, Format, KeyWindow, Schema, TimestampColumn
from ksql.sql.syntax.ast import SourceKind


@dataclass(frozen=True, slots=True)
class Materialization:
    """Where the query of a SOURCE table keeps its rows."""

    query_id: QueryId
    topic: str
    key_format: Format
    value_format: Format


HEADERS_FORMAT = Format("JSON")
"""In this format the query of a SOURCE table keeps the values of headers among those of columns.

Tables that an earlier version made with headers may have another one: theirs have no place there.
"""


def kept_schema(schema: Schema, value_format: Format) -> Schema:
    """Return the columns of a SOURCE table's rows where its query keeps them."""
    if not schema.headers or value_format != HEADERS_FORMAT:
        return schema
    headers = (Column(column.name, column.type) for column in schema.headers)
    return Schema((*schema.key, *schema.value, *headers))


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """A stream or table over a topic.

    ``created_by`` is the id of the query of its CREATE .. AS SELECT, None for declared sources.
    ``read_only`` is CREATE SOURCE. ``derived_from`` are the sources that query reads.
    """

    name: str
    kind: SourceKind
    topic: str
    schema: Schema
    key_format: Format
    value_format: Format
    partitions: int
    replicas: int = 1
    timestamp: TimestampColumn | None = None
    window: KeyWindow | None = None
    read_only: bool = False
    created_by: QueryId | None = None
    derived_from: tuple[str, ...] = ()
    statement: str = ""
    materialization: Materialization | None = None

    def queryable(self) -> DataSource | None:
        """Return the table as pull queries read it, over the topic of its rows; None without one.

        ``created_by`` is the query that writes them.
        """
        if self.kind == "STREAM":
            return None
        kept = self.materialization
        if kept is None:
            return self if self.created_by is not None else None
        return replace(
            self,
            schema=kept_schema(self.schema, kept.value_format),
            topic=kept.topic,
            key_format=kept.key_format,
            value_format=kept.value_format,
            created_by=kept.query_id,
        )


@dataclass(frozen=True, slots=True)
class CutOver:
    """The last cut-over of a query that was rebuilt.

    ``number`` is that of its command, which no other cut-over of the query has. ``former`` is the
    number of the version that ran before.
    """

    number: int
    former: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentQuery:
    """A query that runs until it is terminated; ``sink`` is empty for that of a SOURCE table.

    ``plan`` is its stored form (``ksql.sql.plan.codec``); ``offset`` the offset of the command that
    gave this plan; ``version_number`` the number of its ``QueryVersion``. ``cut_over`` says how
    that version became the one that users see; None if it is the first.
    """

    id: QueryId
    kind: Literal["CSAS", "CTAS", "INSERT", "CST"]
    sink: str
    sources: tuple[str, ...]
    statement: str
    plan: str
    offset: int
    properties: tuple[tuple[str, str], ...] = ()
    paused: bool = False
    started_at_offset: int = field(default=-1)
    version_number: int = FIRST
    cut_over: CutOver | None = None

    @property
    def version(self) -> QueryVersion:
        """The version that runs under this plan."""
        return QueryVersion(self.id, self.version_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """A candidate: the version of a query that is built next to the one that runs.

    The plan of ``candidate`` writes to the version's hidden topic. ``source`` is what the query's
    result becomes at the cut-over. ``rollback``: the candidate is a former version.
    ``backfill``: at the cut-over, aggregates that both versions have keep the running one's state.
    """

    candidate: PersistentQuery
    source: DataSource
    rollback: bool = False
    backfill: bool = False

    @property
    def mode(self) -> Literal["rebuild", "backfill", "rollback"]:
        """How the query is replaced."""
        if self.rollback:
            return "rollback"
        return "backfill" if self.backfill else "rebuild"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerVersion:
    """A version that was replaced by a rebuild, kept until then for ROLLBACK (Unix time in ms).

    ``replaced_by`` is that rebuild, as it was begun.
    """

    query: PersistentQuery
    source: DataSource
    keep_until_ms: int
    replaced_by: Rebuild


@dataclass(frozen=True, slots=True)
class Topic:
    """Name, size and configs of a topic."""

    name: str
    partitions: int
    replicas: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


RECORD_CONFIGS: Final = (
    "max.message.bytes",
    "message.timestamp.type",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
)
"""The configs of a topic by which its brokers refuse records, or give them another time."""

FORMS: Final[tuple[Form, ...]] = (
    form("model.Materialization", Materialization, "query_id topic key_format value_format"),
    form(
        "model.DataSource",
        DataSource,
        "name kind topic schema key_format value_format partitions replicas timestamp window"
        " read_only created_by derived_from statement materialization",
    ),
    form(
        "model.PersistentQuery",
        PersistentQuery,
        "id kind sink sources statement plan offset properties paused started_at_offset"
        " version=version_number? cut_over?",
    ),
    form("model.CutOver", CutOver, "number former"),
    form("model.Rebuild", Rebuild, "candidate source rollback backfill?"),
)
