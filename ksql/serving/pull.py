"""Pull queries: a table's rows as they are now, by key where the condition allows it.

Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

from ksql.cluster.replicas import Freshness
from ksql.core import Token
from ksql.core.types import ROWTIME, WINDOW_COLUMNS, Column, Role
from ksql.serving import pull_restrictions
from ksql.serving.clauses import check_clauses
from ksql.serving.joined import Joined
from ksql.serving.ordering import SETTING
from ksql.serving.result_pipeline import (
    BoundSelect,
    ResultPipeline,
    bind_answer,
    compile_answer,
    is_grouped,
)
from ksql.serving.results import ResultRow, ResultStream
from ksql.sql.binder import Relation, Scope, Source, bind_relation, joined_name, type_of
from ksql.sql.binder import bound as b
from ksql.sql.catalog import Catalog, DataSource
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.views import (
    Access,
    ByKey,
    Chunks,
    NotQueryable,
    TableMoves,
    TableScan,
    Windows,
    access_to,
    row_columns,
    windows_of,
)
from ksql.views.stores import Rows, StoreClosed

if TYPE_CHECKING:
    from ksql.core import Settings
    from ksql.formats import Registry
    from ksql.functions import Functions


_Reading = Callable[[Callable[[], bool]], "Chunks"]
_Rows = Callable[[Sequence[TableScan], "Functions"], _Reading]


class Tables(Protocol):
    """Where the rows are."""

    def stores(self, source: DataSource) -> Mapping[int, Rows]:
        """Return the table's partitions.

        Raises: KsqlError while they are not ready.
        """


@dataclass(eq=False, kw_only=True)  # one query is not another: the doors keep them in sets
class PullQuery:
    """A bound pull query; ``batches`` runs it. See ``ResultStream``.

    A batch may be empty: its reader learns that rows are still looked for.
    """

    query_id: str
    columns: tuple[Column, ...]
    answer: ResultPipeline
    rows: Callable[[Callable[[], bool]], Chunks]
    on_close: Callable[[], None] = lambda: None
    replicas: Callable[[], list[Freshness]] | None = None
    host: Callable[[], str] | None = None
    """Returns which server's replica the rows given last are of, if they are of one."""
    token: Callable[[], Token] | None = None
    notes: Callable[[], list[str]] = list
    """Returns notes on the rows that the answer lacks, as far as it was read."""
    completed: str | None = None
    quick: bool = False
    brief: bool = False
    kind: Literal["pull", "push"] = "pull"
    final_message: str | None = None
    _closed: bool = field(default=False)

    @property
    def freshness(self) -> list[Freshness]:
        """The replicas that it has read, if they were asked for."""
        return [] if self.replicas is None else self.replicas()

    @property
    def dated(self) -> bool:
        """Whether the answer should say which replicas it is of."""
        return self.replicas is not None

    def batches(self) -> Iterator[list[ResultRow]]:
        """Yield the rows; in no order if there is no ORDER BY.

        Raises: TableMoves, and what else the rows' stores raise.
        """
        given = 0
        try:
            for chunk in self.answer.rows(self.rows(lambda: self._closed)):
                if self._closed:
                    return
                given += len(chunk)
                yield [ResultRow(row) for row in chunk]
        except StoreClosed as closed:
            raise TableMoves(closed) from closed
        if self.completed is not None:
            reached = given == self.answer.meaning.limit
            self.final_message = "Limit Reached" if reached else self.completed

    def close(self) -> None:
        """End it early."""
        self._closed = True
        self.on_close()


@dataclass(frozen=True, kw_only=True)
class BoundPull:
    """A pull query that was checked and bound; ``access`` is None for a scan and for joins."""

    relation: Relation
    stored: tuple[DataSource, ...]
    meaning: BoundSelect
    access: Access
    rows: _Rows
    names: list[str]
    """The columns of FROM's rows."""
    scattered: frozenset[str]
    """The topics of windowed tables whose keys have windows in several partitions."""
    windows: Windows
    """Which windows the condition allows at most."""

    @property
    def is_plain(self) -> bool:
        """Whether each row of the result is of one row of the table, and comes when that does."""
        return not (self.relation.joins or self.meaning.grouping or self.meaning.order)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return result_columns(self.meaning, self.relation)

    def opened(
        self,
        functions: Functions,
        settings: Settings,
        tables: Tables,
        query_id: str,
        registry: Registry | None = None,
    ) -> PullQuery:
        """Compile it and open its tables.

        Raises: RegistryMissing, and what ``tables`` raise.
        """
        answer = compile_answer(
            self.meaning,
            self.names,
            functions,
            dict(settings.functions()),
            settings.number(SETTING),
        )

        opened: list[TableScan] = []

        def rows() -> _Reading:
            opened[:] = [
                TableScan.of(source, tables.stores(source), registry, self.scattered)
                for source in self.stored
            ]
            return self.rows(tuple(opened), functions)

        return PullQuery(
            query_id=query_id,
            columns=self.columns,
            answer=answer,
            rows=restarted_if_closed(rows(), rows),
            notes=lambda: noted(table.note(self.access, self.windows) for table in opened),
        )


def restarted_if_closed(first: _Reading, again: Callable[[], _Reading]) -> _Reading:
    """Return a reading that begins once more if a store is closed before it has given anything.

    Another one takes its place then, as after a change of the STORE_TYPE.
    """

    def read(closed: Callable[[], bool]) -> Chunks:
        given = False
        try:
            for chunk in first(closed):
                given = True
                yield chunk
        except StoreClosed:
            if given:
                raise
            yield from again()(closed)

    return read


def bound_pull(
    query: ast.Query, catalog: Catalog, functions: Functions, settings: Settings
) -> BoundPull:
    """Check and bind a pull query over tables.

    Raises: StatementError for clauses that pull queries do not have, for tables that no query
    writes.
    """
    check_clauses(query, catalog, settings, functions)
    relation = bind_relation(query.source, catalog, functions, frozenset())
    scope = replace(
        relation.scope,
        sources=tuple(
            Source(source.alias, row_columns(source.source.queryable() or source.source))
            for source in relation.sources
        ),
    )
    meaning = bind_answer(query, relation, scope, functions)
    stored = tuple(_stored_form(source.source) for source in relation.sources)
    if relation.joins:
        joined = Joined.of(relation, stored, meaning.where, settings)
        return BoundPull(
            relation=relation,
            stored=stored,
            meaning=meaning,
            access=None,
            rows=joined.rows,
            names=joined.columns,
            scattered=catalog.scattered,
            windows=Windows(),
        )
    source = relation.sources[0].source
    pull_restrictions.check_where(query.where, source, settings)
    access = access_to(meaning.where, stored[0], source.schema.key)
    pull_restrictions.check_bounds(meaning.where, source, keyed=isinstance(access, ByKey))
    return BoundPull(
        relation=relation,
        stored=stored,
        meaning=meaning,
        access=access,
        rows=lambda opened, _functions: lambda closed: opened[0].rows(access, closed),
        names=list(scope.sources[0].columns),
        scattered=catalog.scattered,
        windows=windows_of(meaning.where),
    )


def noted(notes: Iterable[str]) -> list[str]:
    """Return the notes, each one once."""
    return list(dict.fromkeys(filter(None, notes)))


def _stored_form(source: DataSource) -> DataSource:
    stored = source.queryable()
    if stored is None:
        raise NotQueryable(source.name)
    return stored


def result_columns(meaning: BoundSelect, relation: Relation) -> tuple[Column, ...]:
    """Return the result's header; columns that are the rows' key are marked so."""
    keys = _key_names(meaning, relation)
    return tuple(
        Column(
            named.name,
            type_of(named.expr),
            Role.KEY
            if isinstance(named.expr, b.Column) and named.expr.name in keys
            else Role.VALUE,
        )
        for named in meaning.columns
    )


def _key_names(meaning: BoundSelect, relation: Relation) -> set[str]:
    if meaning.grouping is not None:
        return {key.name for key in meaning.grouping.keys}
    if relation.join is None:
        return {c.name for c in relation.sources[0].source.schema.key} | set(WINDOW_COLUMNS)
    first = relation.joins[0].foreign
    if first is not None:
        return {joined_name(first.alias, column.name) for column in first.source.schema.key}
    equal = {expr.name for expr in relation.join.equal if isinstance(expr, b.Column)}
    return equal | set(relation.scope.extras)


# --- streams


def needs_all_rows(query: ast.Query, functions: Functions) -> bool:
    """Return whether a query over a stream needs more than the rows as they come."""
    return is_grouped(query, functions) or bool(query.order_by) or query.offset is not None


def raw_query(query: ast.Query, source: DataSource) -> ast.Query:
    """Return the query that gives the stream's rows as they are: FROM without its other clauses."""
    names = stream_columns(source)
    select = tuple(ast.SelectItem(ex.Ref(name)) for name in names)
    return ast.Query(select, query.source, span=query.span)


def stream_columns(source: DataSource) -> list[str]:
    """Return the columns of a stream's rows as a pull query sees them."""
    bounds = [] if source.window is None else list(WINDOW_COLUMNS)
    own = [column.name for column in source.schema.columns]
    return [ROWTIME, *bounds, *(name for name in own if name != ROWTIME)]


def bind_stream_pull(
    query: ast.Query,
    catalog: Catalog,
    functions: Functions,
    settings: Settings,
    query_id: str,
) -> Callable[[ResultStream], PullQuery]:
    """Bind a query over a stream that needs all its rows; they are those of ``raw_query``.

    Raises: StatementError.
    """
    relation = bind_relation(query.source, catalog, functions, frozenset())
    source = relation.sources[0].source
    names = stream_columns(source)
    known = Source.of(relation.sources[0].alias, source.schema, windowed=source.window is not None)
    visible = Source(known.alias, {name: known.columns[name] for name in names})
    meaning = bind_answer(query, relation, Scope((visible,)), functions)
    answer = compile_answer(
        meaning, names, functions, dict(settings.functions()), settings.number(SETTING)
    )

    def over(raw: ResultStream) -> PullQuery:
        return PullQuery(
            query_id=query_id,
            columns=tuple(
                replace(column, role=Role.VALUE) for column in result_columns(meaning, relation)
            ),
            answer=answer,
            rows=lambda closed: _values(raw, closed),
            on_close=raw.close,
            token=getattr(raw, "token", None),
            completed="Query Completed",
        )

    return over


def _values(raw: ResultStream, closed: Callable[[], bool]) -> Chunks:
    for batch in itertools.takewhile(lambda _: not closed(), raw.batches()):
        yield [row.values for row in batch]
