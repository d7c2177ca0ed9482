"""Statements and their clauses, each named after its grammar rule, each with its span.

Source names are as stored (upper case unless quoted). ``WITH`` properties keep their written order;
names are upper case (as written for connectors), values are literals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from ksql.core import Span
from ksql.core.types import UNIT_MS, SqlType
from ksql.sql.syntax.expr import NOWHERE, Expr, Literal, Variable, span_field
from ksql.sql.syntax.session_ast import AlterSystem as AlterSystem  # noqa: PLC0414 - a statement, too
from ksql.sql.syntax.session_ast import Define as Define  # noqa: PLC0414 - a statement, too
from ksql.sql.syntax.session_ast import RunScript as RunScript  # noqa: PLC0414 - a statement, too
from ksql.sql.syntax.session_ast import SetProperty as SetProperty  # noqa: PLC0414 - a statement, too
from ksql.sql.syntax.session_ast import Undefine as Undefine  # noqa: PLC0414 - a statement, too
from ksql.sql.syntax.session_ast import UnsetProperty as UnsetProperty  # noqa: PLC0414 - a statement, too

SourceKind = OneOf["STREAM", "TABLE"]
JoinKind = OneOf["INNER", "LEFT", "RIGHT", "FULL"]
Emission = OneOf["CHANGES", "FINAL"]
NullsPlace = OneOf["FIRST", "LAST"]
ColumnMark = OneOf["", "KEY", "PRIMARY KEY", "HEADERS", "HEADER"]
QueryAction = OneOf["TERMINATE", "PAUSE", "RESUME"]
UpgradeAction = OneOf["ABORT", "ROLLBACK"]
ConnectorScope = OneOf["SOURCE", "SINK"]
_Listed = OneOf["STREAMS", "TABLES", "QUERIES", "TOPICS", "CONNECTORS", "CONNECTOR PLUGINS"]
Catalogue = OneOf[_Listed, "FUNCTIONS", "PROPERTIES", "TYPES", "VARIABLES", "UPGRADES"]
Unit = OneOf["DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS"]


@dataclass(frozen=True, slots=True)
class Duration:
    """``10 SECONDS``."""

    amount: int
    unit: Unit

    @property
    def ms(self) -> int:
        """The length in milliseconds."""
        return self.amount * UNIT_MS[self.unit]


@dataclass(frozen=True, slots=True)
class Property:
    """One entry of a WITH clause."""

    name: str
    value: Literal | Variable
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A declared column; ``mark`` is KEY, PRIMARY KEY, HEADERS or HEADER('k')."""

    name: str
    type: SqlType
    mark: ColumnMark = ""
    header_key: str | None = None
    span: Span = span_field()


# --- queries


@dataclass(frozen=True, slots=True)
class SelectItem:
    """``expr [AS alias]``."""

    expr: Expr
    alias: str | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class SelectStar:
    """``*`` or ``source.*``."""

    source: str | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class SelectStructStar:
    """``struct_expr->*``."""

    base: Expr
    span: Span = span_field()


SelectTerm = SelectItem | SelectStar | SelectStructStar


@dataclass(frozen=True, slots=True)
class SourceRef:
    """A source in FROM or JOIN; ``alias`` equals the name when none was given."""

    name: str
    alias: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Within:
    """``WITHIN before`` or ``WITHIN (before, after) [GRACE PERIOD ..]``."""

    before: Duration
    after: Duration
    grace: Duration | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Join:
    """``left JOIN right [WITHIN ..] ON criteria``; left-deep in textual order."""

    left: Relation
    right: SourceRef
    kind: JoinKind
    criteria: Expr
    within: Within | None = None
    span: Span = span_field()


Relation = SourceRef | Join


@dataclass(frozen=True, slots=True)
class Window:
    """The WINDOW clause; ``size`` is the gap of a SESSION, ``advance`` is HOPPING's."""

    kind: OneOf["TUMBLING", "HOPPING", "SESSION"]
    size: Duration
    advance: Duration | None = None
    retention: Duration | None = None
    grace: Duration | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class OrderItem:
    """``expr [ASC|DESC] [NULLS FIRST|LAST]``; ``nulls`` is None if it was not written."""

    expr: Expr
    descending: bool = False
    nulls: NullsPlace | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT; ``emit`` is None for a pull query, the other clauses if they are not there."""

    select: tuple[SelectTerm, ...]
    source: Relation
    window: Window | None = None
    where: Expr | None = None
    group_by: tuple[Expr, ...] | None = None
    partition_by: tuple[Expr, ...] | None = None
    having: Expr | None = None
    order_by: tuple[OrderItem, ...] | None = None
    emit: Emission | None = None
    limit: int | None = None
    offset: int | None = None
    span: Span = span_field()


# --- statements


@dataclass(frozen=True, slots=True)
class CreateSource:
    """CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name (columns) WITH (..)."""

    kind: SourceKind
    name: str
    columns: tuple[ColumnDef, ...]
    properties: tuple[Property, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    read_only: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class CreateAsSelect:
    """CREATE [OR REPLACE] STREAM|TABLE [IF NOT EXISTS] name WITH (..) AS SELECT .."""

    kind: SourceKind
    name: str
    query: Query
    properties: tuple[Property, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class InsertInto:
    """INSERT INTO name [WITH (QUERY_ID = ..)] SELECT ..; ``target`` is the place of the name."""

    name: str
    query: Query
    properties: tuple[Property, ...] = ()
    target: Span = field(default=NOWHERE, compare=False, repr=False)
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ReplaceQuery:
    """CREATE OR REPLACE QUERY id [WITH (..)] AS INSERT INTO name SELECT .."""

    query_id: str
    insert: InsertInto
    properties: tuple[Property, ...] = ()
    span: Span = span_field()

    @property
    def name(self) -> str:
        """The stream that the query writes."""
        return self.insert.name

    @property
    def query(self) -> Query:
        return self.insert.query


@dataclass(frozen=True, slots=True)
class InsertValues:
    """INSERT INTO name (columns) VALUES (..); no column list is the empty tuple.

    ``target`` is the place of the name, ``places`` are those of the columns.
    """

    name: str
    columns: tuple[str, ...]
    values: tuple[Expr, ...]
    target: Span = field(default=NOWHERE, compare=False, repr=False)
    places: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DeleteFrom:
    """DELETE FROM name WHERE ..; ``target`` is the place of the name."""

    name: str
    where: Expr
    target: Span = field(default=NOWHERE, compare=False, repr=False)
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AlterSource:
    """ALTER STREAM|TABLE name ADD COLUMN c t, .."""

    kind: SourceKind
    name: str
    columns: tuple[ColumnDef, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DropSource:
    """DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]."""

    kind: SourceKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class QueryControl:
    """TERMINATE | PAUSE | RESUME of a query id, or of ALL (``query_id`` None).

    ``everything`` has those of SOURCE tables end too: the end of the cluster, no text says it.
    """

    action: QueryAction
    query_id: str | None
    span: Span = span_field()
    everything: bool = False


@dataclass(frozen=True, slots=True)
class UpgradeControl:
    """ABORT | ROLLBACK UPGRADE OF [QUERY] name [TO 'upgrade id']; ABORT takes no upgrade's id.

    ``of_query``: the name is a query's id, else a stream or table of CREATE .. AS SELECT.
    """

    action: UpgradeAction
    name: str
    upgrade_id: str | None = None
    of_query: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a query id or of a statement."""

    target: str | Statement
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW|LIST of a catalogue.

    ``all_`` is ALL TOPICS, ``scope`` SOURCE|SINK CONNECTORS, ``source`` that of UPGRADES FOR.
    """

    what: Catalogue
    extended: bool = False
    all_: bool = False
    scope: ConnectorScope | OneOf[""] = ""
    source: str | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DescribeSource:
    """DESCRIBE name [EXTENDED]."""

    name: str
    extended: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DescribeAll:
    """DESCRIBE STREAMS|TABLES [EXTENDED]."""

    kind: SourceKind
    extended: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DescribeFunction:
    """DESCRIBE FUNCTION name."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DescribeConnector:
    """DESCRIBE CONNECTOR name."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DescribeUpgrade:
    """DESCRIBE UPGRADE 'upgrade id'."""

    upgrade_id: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class PrintTopic:
    """PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]; the topic keeps its case."""

    topic: str
    from_beginning: bool = False
    interval: int = 1
    limit: int | None = None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class CreateType:
    """CREATE TYPE [IF NOT EXISTS] name AS type."""

    name: str
    type: SqlType
    if_not_exists: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DropType:
    """DROP TYPE [IF EXISTS] name."""

    name: str
    if_exists: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class CreateConnector:
    """CREATE SOURCE|SINK CONNECTOR [IF NOT EXISTS] name WITH (..)."""

    scope: ConnectorScope
    name: str
    properties: tuple[Property, ...]
    if_not_exists: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class DropConnector:
    """DROP CONNECTOR [IF EXISTS] name."""

    name: str
    if_exists: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AssertTopic:
    """ASSERT [NOT EXISTS] TOPIC name [WITH ..] [TIMEOUT ..]."""

    topic: str
    properties: tuple[Property, ...] = ()
    timeout: Duration | None = None
    exists: bool = True
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AssertSchema:
    """ASSERT [NOT EXISTS] SCHEMA [SUBJECT s] [ID n] [TIMEOUT ..]."""

    subject: str | None
    schema_id: int | None
    timeout: Duration | None = None
    exists: bool = True
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AssertValues:
    """ASSERT VALUES (test files only)."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expr, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AssertNullValues:
    """ASSERT NULL VALUES (test files only): a tombstone with that key."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expr, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class AssertSource:
    """ASSERT STREAM|TABLE (test files only)."""

    kind: SourceKind
    name: str
    columns: tuple[ColumnDef, ...]
    properties: tuple[Property, ...]
    span: Span = span_field()


Description = DescribeSource | DescribeAll | DescribeFunction | DescribeConnector | DescribeUpgrade
Setting = SetProperty | UnsetProperty | AlterSystem | Define | Undefine | RunScript
Assertion = AssertTopic | AssertSchema | AssertValues | AssertNullValues | AssertSource
Change = CreateSource | CreateAsSelect | AlterSource | DropSource | CreateType | DropType
Writing = InsertInto | ReplaceQuery | InsertValues | DeleteFrom | CreateConnector | DropConnector
Control = QueryControl | UpgradeControl | Explain | Show | PrintTopic
Statement = Query | Change | Writing | Control | Description | Setting | Assertion
"""Every statement of the language."""
