"""Pull queries: a table's rows as they are now, by key where the condition allows it.

Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ksql.analysis import bound as b
from ksql.analysis.bound import Named, type_of
from ksql.analysis.grouping import is_aggregate
from ksql.analysis.infer import bind, bind_predicate
from ksql.analysis.projection import check_unique, items
from ksql.analysis.relation import bind_relation
from ksql.analysis.scope import Scope, Source
from ksql.base.errors import KsqlError, StatementError
from ksql.catalog.model import DataSource
from ksql.compile.compile import Projection, compile_projection
from ksql.formats.schemas import topic_serde
from ksql.formats.table import DecodeError, Serde
from ksql.query import where
from ksql.query.results import ResultRow
from ksql.stores.base import Rows, StoredRow
from ksql.syntax import ast
from ksql.syntax import expr as ex
from ksql.syntax.walk import collect
from ksql.types.model import BIGINT, SqlType
from ksql.types.schema import ROWTIME, WINDOW_COLUMNS, Column, Role
from ksql.types.windowed import WindowedKeys

if TYPE_CHECKING:
    from ksql.base.config import Settings
    from ksql.catalog.catalog import Catalog
    from ksql.formats.schema_registry import Registry
    from ksql.functions.registry import Functions

_BATCH = 1000
_PUSH = "Add EMIT CHANGES if you intended to issue a push query."


class Tables(Protocol):
    """Where the rows are."""

    def stores(self, source: DataSource) -> Mapping[int, Rows]:
        """Return the table's partitions.

        Raises: KsqlError while they are not ready.
        """


@dataclass(eq=False, kw_only=True)  # one query is not another: the doors keep them in sets
class PullQuery:
    """A bound pull query over a table; ``batches`` runs it. See ``ResultStream``."""

    query_id: str
    columns: tuple[Column, ...]
    source: DataSource
    projection: Projection
    keys: list[tuple[Any, ...]] | None
    limit: int | None
    stores: Mapping[int, Rows]
    serdes: tuple[Serde, Serde]
    kind: Literal["pull", "push"] = "pull"
    final_message: str | None = None
    _closed: bool = field(default=False)

    def batches(self) -> Iterator[list[ResultRow]]:
        """Yield the rows, in no order."""
        rows = itertools.islice(self._results(), self.limit)
        while not self._closed:
            batch = list(itertools.islice(rows, _BATCH))
            if not batch:
                return
            yield batch

    def close(self) -> None:
        """End it early."""
        self._closed = True

    def _results(self) -> Iterator[ResultRow]:
        for stored in self._stored(self.serdes[0]):
            row = _decoded(self.source, stored, self.serdes)
            found = self.projection.run(row, _ignore) if row is not None else None
            if found is not None:
                yield ResultRow(found)

    def _stored(self, key_serde: Serde) -> Iterator[StoredRow]:
        if self.keys is None:
            for store in self.stores.values():
                yield from store.scan()
            return
        for values in self.keys:
            key = key_serde.encode(values)
            if key is not None:
                yield from self._of_key(key)

    def _of_key(self, key: bytes) -> Iterator[StoredRow]:
        window = self.source.window
        for store in self.stores.values():
            if window is None:
                found = store.get(key)
                if found is not None:
                    yield StoredRow(key, found.value, found.timestamp)
            else:
                length = len(key) + WindowedKeys(window.size_ms).suffix_bytes
                yield from (row for row in store.prefix(key) if len(row.key) == length)


def _ignore(_operator: str, _message: str, _row: object) -> None:
    """An error in a pull query's expression gives NULL or no row; there is no log to write to."""


def _decoded(
    source: DataSource, stored: StoredRow, serdes: tuple[Serde, Serde]
) -> tuple[Any, ...] | None:
    key = stored.key
    bounds: tuple[int, ...] = ()
    if source.window is not None:
        key, bounds = WindowedKeys(source.window.size_ms).split(key)
    try:
        key_row = serdes[0].decode(key) or (None,) * len(source.schema.key)
        value_row = serdes[1].decode(stored.value)
    except DecodeError:
        return None
    if value_row is None:
        return None
    return (stored.timestamp, *bounds, *key_row, *value_row)


def bind_pull(
    query: ast.Query,
    catalog: Catalog,
    functions: Functions,
    settings: Settings,
    tables: Tables,
    query_id: str,
    registry: Registry | None = None,
) -> PullQuery:
    """Check and bind a pull query over a table.

    Raises: StatementError for clauses that pull queries do not have, for tables that no query
    writes; RegistryMissing for formats that need a schema registry.
    """
    check_clauses(query, settings, functions)
    relation = bind_relation(query.source, catalog, functions, frozenset())
    source = relation.sources[0].source
    relation_scope = Scope((_pull_source(relation.sources[0].alias, source),))
    projected = _projected(query, relation, relation_scope, functions)
    predicate = None
    if query.where is not None:
        where_scope = Scope(relation_scope.sources, clause="WHERE")
        predicate = bind_predicate(query.where, where_scope, functions)
        where.check_keys(query.where, source.schema.key)
    stored = _stored_form(source)
    where.check_keyed(predicate, source, settings)
    keys = where.key_lookups(predicate, source.schema.key)
    where.check_bounds(predicate, source, keyed=keys is not None)
    projection = compile_projection(
        [name for name, _ in _columns(source)],
        predicate,
        [named.expr for named in projected],
        functions,
        {},
        "pull",
    )
    return PullQuery(
        query_id=query_id,
        columns=result_columns(projected, source),
        source=stored,
        projection=projection,
        keys=keys,
        limit=query.limit,
        stores=tables.stores(stored),
        serdes=(
            topic_serde(stored.key_format, stored.schema.key, "key", stored.topic, registry),
            topic_serde(stored.value_format, stored.schema.value, "value", stored.topic, registry),
        ),
    )


def check_clauses(query: ast.Query, settings: Settings, functions: Functions) -> None:
    """Refuse what pull queries cannot do.

    Raises: StatementError.
    """
    if not settings.flag("ksql.pull.queries.enable"):
        raise StatementError(
            "Pull queries are disabled. You can enable them by setting "
            f"ksql.pull.queries.enable=true. {where.MORE}",
            hint=_PUSH,
        )
    refused = {
        "JOIN": isinstance(query.source, ast.Join),
        "WINDOW": query.window is not None,
        "GROUP BY": query.group_by is not None,
        "PARTITION BY": query.partition_by is not None,
        "HAVING": query.having is not None,
    }
    for clause, there in refused.items():
        if there:
            raise StatementError(
                f"Pull queries don't support {clause} clauses. {where.MORE}", hint=_PUSH
            )
    _check_limit(query, settings)
    exprs = [item.expr for item in query.select if isinstance(item, ast.SelectItem)]
    _check_aggregates(exprs, functions)
    where.check_columns("SELECT", exprs)
    where.check_columns("WHERE", () if query.where is None else (query.where,))


def _check_limit(query: ast.Query, settings: Settings) -> None:
    if query.limit is None:
        return
    if query.limit < 0:
        raise StatementError(
            f"Pull queries don't support negative integers in the LIMIT clause. {where.MORE}",
            hint=_PUSH,
        )
    if not settings.flag("ksql.query.pull.limit.clause.enabled"):
        raise StatementError(
            "LIMIT clause in pull queries is currently disabled. You can enable them by setting "
            f"ksql.query.pull.limit.clause.enabled=true. {where.MORE}",
            hint=_PUSH,
        )


def _check_aggregates(exprs: Iterable[ex.Expr], functions: Functions) -> None:
    aggregates = dict.fromkeys(
        node.name
        for expr in exprs
        for node in collect(expr, ex.Call)
        if is_aggregate(node, functions)
    )
    if aggregates:
        raise StatementError(
            f"Pull queries don't support aggregate functions: {', '.join(aggregates)}. "
            f"{where.MORE}",
            hint=_PUSH,
        )


def check_stream(settings: Settings) -> None:
    """Refuse pull queries of streams where they are switched off.

    Raises: StatementError.
    """
    if not settings.flag("ksql.query.pull.stream.enabled"):
        raise StatementError(
            "Pull queries on streams are disabled. You can enable them by setting "
            f"ksql.query.pull.stream.enabled=true. {where.MORE}",
            hint=_PUSH,
        )


def _stored_form(source: DataSource) -> DataSource:
    stored = source.queryable()
    if stored is None:
        raise StatementError(
            f"The `{source.name}` table isn't queryable. To derive a queryable table, "  # noqa: S608 - a hint
            f"you can do 'CREATE TABLE QUERYABLE_{source.name} AS SELECT * FROM {source.name}'. "
            + where.MORE,
            hint=_PUSH,
        )
    return stored


def _columns(source: DataSource) -> list[tuple[str, SqlType]]:
    columns: list[tuple[str, SqlType]] = [(ROWTIME, BIGINT)]
    if source.window is not None:
        columns += WINDOW_COLUMNS.items()
    columns += [(c.name, c.type) for c in (*source.schema.key, *source.schema.value)]
    return columns


def _pull_source(alias: str, source: DataSource) -> Source:
    return Source(alias, dict(_columns(source)))


def _projected(query: ast.Query, relation: Any, scope: Scope, functions: Functions) -> list[Named]:
    found = items(
        query.select,
        relation,
        lambda expr: type_of(bind(expr, scope, functions)),
        persistent=False,
    )
    projected = [Named(item.name, bind(item.expr, scope, functions)) for item in found]
    check_unique((), ((n.name, type_of(n.expr)) for n in projected))
    return projected


def result_columns(projected: Iterable[Named], source: DataSource) -> tuple[Column, ...]:
    """Return the result's header; columns that are the table's key are marked so."""
    keys = {c.name for c in source.schema.key} | set(WINDOW_COLUMNS)
    return tuple(
        Column(
            named.name,
            type_of(named.expr),
            Role.KEY
            if isinstance(named.expr, b.Column) and named.expr.name in keys
            else Role.VALUE,
        )
        for named in projected
    )


class TableNotReady(KsqlError):
    """The stores of a table do not hold all of it yet."""

    code = 50302

    def __init__(self, name: str, missing: int = 0, reason: str = "") -> None:
        told = f"{missing} records of its topic are still to be read" if missing else ""
        super().__init__(
            f"The table {name} is not ready for pull queries yet",
            detail=reason or told,
            hint="Try again in a moment: an answer now would lack rows.",
        )
