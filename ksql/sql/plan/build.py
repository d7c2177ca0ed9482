"""A query's meaning as a plan: FROM, WHERE, PARTITION BY or GROUP BY, HAVING, SELECT. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.core import StatementError, listed
from ksql.core.types import BOOLEAN, INTEGER, WINDOW_COLUMNS, Column, KeyWindow, SqlType, holds_null
from ksql.functions import instantiate_aggregate
from ksql.sql.binder import bound as b
from ksql.sql.binder import keys, projection
from ksql.sql.binder.bound import Bound, Named, type_of
from ksql.sql.binder.errors import CannotInfer, NoGroupKey, NotBoolean, describe
from ksql.sql.binder.grouping import AggregateCall, Grouping, NotGrouped, refuse_aggregates
from ksql.sql.binder.infer import bind, bind_predicate
from ksql.sql.binder.relation import Relation, bind_relation
from ksql.sql.binder.scope import FromSource, Scope
from ksql.sql.binder.tables import TableCalls, has_table_functions
from ksql.sql.binder.windows import sizes
from ksql.sql.plan import clauses
from ksql.sql.plan.clauses import table_call
from ksql.sql.plan.joined import exchanged, key_parts, read
from ksql.sql.plan.nodes import (
    Aggregate,
    EmitFinal,
    Explode,
    Filter,
    Fold,
    Plan,
    Rekey,
    Select,
    TimeWindow,
)
from ksql.sql.plan.walk import result_kind
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.ast import SourceKind
from ksql.sql.syntax.walk import collect, transform

if TYPE_CHECKING:
    from ksql.functions import Functions
    from ksql.sql.catalog.catalog import Catalog


_EVERYTHING = Named("ALL", b.Const(1, INTEGER))
"""The key of the one group where there is no GROUP BY: no record is without it."""
_BindItem = Callable[[ex.Expr], Bound]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A query without its sink: what it computes and the shape of the result.

    ``states`` are the types that the aggregates keep. ``key`` is empty for keyless streams. All
    columns of a transient query are in ``value``; a table's keys are in ``key`` as well.
    ``exchanged`` are the keys under which the sides of the joins meet.
    """

    plan: Plan
    key: tuple[Named, ...]
    value: tuple[Named, ...]
    kind: SourceKind
    window: KeyWindow | None
    sources: tuple[FromSource, ...]
    keyless: bool = False
    states: tuple[SqlType, ...] = ()
    exchanged: tuple[Column, ...] = ()


def build(
    query: ast.Query,
    catalog: Catalog,
    functions: Functions,
    *,
    sink: str = "",
    persistent: bool = True,
    keys_as_written: bool = False,
) -> Built:
    """Plan a query; ``sink`` is the name of its result, for messages.

    The result's keys come in the order of the source or GROUP BY, unless ``keys_as_written``.

    Raises: StatementError for everything that the language refuses.
    """
    return _Builder(query, catalog, functions, sink, persistent, keys_as_written).build()


class _Builder:
    def __init__(
        self,
        query: ast.Query,
        catalog: Catalog,
        functions: Functions,
        sink: str,
        persistent: bool,
        keys_as_written: bool,
    ) -> None:
        self.query = query
        self.keys_as_written = keys_as_written
        self.functions = functions
        self.sink = sink
        self.persistent = persistent
        later = frozenset(WINDOW_COLUMNS) if query.window else frozenset[str]()
        self.relation: Relation = bind_relation(query.source, catalog, functions, later)
        self.scope = replace(self.relation.scope, aliases=clauses.aliases(query))

    def build(self) -> Built:
        self._check_clauses()
        plan = self._filtered(read(self.relation))
        grouped = self._is_grouped()
        tables = has_table_functions(clauses.selected(self.query), self.functions)
        if grouped:
            if tables:
                raise StatementError("Table functions cannot be used with aggregations.")
            built = self._grouped(plan)
        elif tables and result_kind(plan) == "TABLE":
            raise StatementError("Table source is not supported with table functions")
        else:
            built = self._plain(plan)
        met = tuple(map(exchanged, self.relation.joins))
        return replace(built, exchanged=met)

    def _check_clauses(self) -> None:
        query = self.query
        clauses.check_order(query)
        if query.window is not None and query.group_by is None:
            self._is_grouped()
        clauses.check_windows(query)
        if query.having is not None and query.group_by is None and not self._aggregates():
            raise StatementError("HAVING requires a GROUP BY clause.")
        clauses.check_tables(query, self.relation, persistent=self.persistent)

    def _aggregates(self) -> list[ex.Call]:
        return [
            node
            for expr in clauses.selected(self.query)
            for node in collect(expr, ex.Call)
            if self.functions.get(node.name, node.span).kind == "AGGREGATE"
        ]

    def _is_grouped(self) -> bool:
        calls = self._aggregates()
        if self.query.group_by is not None:
            if not calls:
                raise StatementError(
                    "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."
                )
            return True
        if calls and self.persistent:
            self._grouped_projection(Grouping(self.scope, self.functions, (), False))
            raise clauses.NoGroupBy([self.scope.named(call) for call in calls], self.sink)
        return bool(calls)

    # --- FROM, WHERE

    def _row_scope(self, clause: str) -> Scope:
        """Return the scope of a clause that looks at single rows: no aggregate may be there."""
        scope = replace(self.scope, clause=clause)
        return replace(scope, intercept=refuse_aggregates(self.functions, clause, scope))

    def _filtered(self, plan: Plan) -> Plan:
        if self.query.where is None:
            return plan
        scope = self._row_scope("WHERE")
        return Filter(plan, bind_predicate(self.query.where, scope, self.functions), "WHERE")

    # --- without aggregates

    def _plain(self, plan: Plan) -> Built:
        clauses.check_formats(self.relation.sources, "JOIN" if self.relation.join else "")
        parts, origin, keyless = self._plain_key()
        if self.query.partition_by is not None and not self._is_keyed_by(parts):
            plan = Rekey(plan, tuple(Named(self._key_name(p), p.exprs[0]) for p in parts))
        tables = TableCalls(self.scope, self.functions)
        projected = self._project(tables.bind, rekeyed=self._rekeyed())
        if tables.calls:
            plan = Explode(plan, tuple(map(table_call, tables.calls)))
        kind = result_kind(plan)
        if not self.persistent:
            return self._transient(plan, projected, kind, parts)
        if parts:
            key, value = self._split(projected, parts, origin)
        else:
            key, value = (), tuple(projected)
        value = self._without_bounds(value)
        return self._finish(plan, key, value, kind, self.relation.sources[0].source.window, keyless)

    def _is_keyed_by(self, parts: Sequence[keys.KeyPart]) -> bool:
        """Return whether the rows are partitioned so already: by their key, in its order."""
        join = self.relation.join
        key = [join.left_key] if join and not join.foreign else self._source_key()
        return bool(parts) and [part.exprs[0] for part in parts] == key

    def _source_key(self) -> list[Bound]:
        """Return the key columns of the first source."""
        columns = self.relation.sources[0].source.schema.key
        return [b.Column(column.name, column.type) for column in columns]

    def _plain_key(self) -> tuple[list[keys.KeyPart], keys.KeyOrigin, bool]:
        if self.query.partition_by is not None:
            parts = self._partition_parts(self.query.partition_by)
            return parts, "partitioning expression", not parts
        if self.relation.join is not None:
            return key_parts(self.relation.join), "join expression", False
        source = self.relation.sources[0].source
        parts = [
            keys.KeyPart((key,), (column.name,))
            for key, column in zip(self._source_key(), source.schema.key, strict=True)
        ]
        return parts, "key column", not parts

    def _partition_parts(self, exprs: tuple[ex.Expr, ...]) -> list[keys.KeyPart]:
        if not exprs:
            raise StatementError("PARTITION BY requires at least one expression")
        if any(isinstance(expr, ex.NullLit) for expr in exprs):
            if len(exprs) > 1:
                raise StatementError("Cannot PARTITION BY multiple columns including NULL")
            self._check_windowed([])
            return []
        scope = self._row_scope("PARTITION BY")
        parts = []
        for expr in exprs:
            expression = bind(expr, scope, self.functions)
            parts.append(keys.KeyPart((expression,), (self._shown(expr),)))
        self._refuse_repeats([part.exprs[0] for part in parts], exprs, "PARTITION BY")
        self._check_windowed([part.exprs[0] for part in parts])
        return parts

    def _check_windowed(self, bounds: list[Bound]) -> None:
        """Check that the key of a windowed source stays: its windows would not fit another one."""
        join, windowed = self.relation.join, self.relation.sources[0].source.window is not None
        kept = [join.left_key] if join else self._source_key()
        outer = join is not None and join.kind in ("RIGHT", "FULL")  # that column may be NULL
        if windowed and (outer or bounds != kept):
            raise StatementError(
                "Implicit repartitioning of windowed sources is not supported. "
                "See https://github.com/confluentinc/ksql/issues/4385."
            )

    def _refuse_repeats(
        self, keys_: Sequence[Bound], exprs: Sequence[ex.Expr], clause: str
    ) -> None:
        for index, key in enumerate(keys_):
            if key in keys_[:index]:
                shown = self._shown(exprs[index])
                raise StatementError(f"Duplicate {clause} expression: {shown}")

    def _shown(self, expr: ex.Expr) -> str:
        """Return the expression with its sources named, as messages about keys show it."""
        known = self.scope.sources

        def qualify(node: ex.Expr) -> ex.Expr:
            if isinstance(node, ex.Ref) and node.source is None:
                owner = next((source for source in known if node.name in source.columns), known[0])
                return ex.Ref(node.name, owner.alias)
            return node

        return describe(transform(expr, qualify))

    def _key_name(self, part: keys.KeyPart) -> str:
        expr = part.exprs[0]
        return expr.name if isinstance(expr, b.Column) else part.shown[0]

    def _without_bounds(self, value: tuple[Named, ...]) -> tuple[Named, ...]:
        """Leave out a windowed source's own bounds: they live in the key."""
        return tuple(named for named in value if named.name not in WINDOW_COLUMNS)

    # --- with aggregates

    def _grouped(self, plan: Plan) -> Built:
        clauses.check_formats(self.relation.sources, "GROUP BY")
        if self.query.partition_by is not None:  # what is grouped next need not be moved before
            self._partition_parts(self.query.partition_by)
        group = self._group_keys()
        window = self._window()
        named = tuple(key for key, _ in group)
        grouping = Grouping(self.scope, self.functions, named, window is not None)
        projected = self._grouped_projection(grouping)
        having = None
        if self.query.having is not None:
            having = grouping.bind(self.query.having, "HAVING")
            if type_of(having) != BOOLEAN:
                raise NotBoolean("HAVING", self.query.having, type_of(having))
        folds = tuple(
            Fold(
                slot=slot,
                name=call.name,
                function=call.function,
                overload=call.overload,
                args=call.args,
                literals=call.literals,
                type=call.type,
            )
            for slot, call in enumerate(grouping.calls)
        )
        if result_kind(plan) == "TABLE":
            self._check_undo(grouping)
        plan = Aggregate(
            source=plan,
            group=named or (_EVERYTHING,),
            folds=folds,
            window=window,
            next_slot=len(folds),
        )
        if having is not None:
            plan = Filter(plan, having, "HAVING")
        if self.query.emit == "FINAL":
            plan = EmitFinal(plan)
        parts = [
            keys.KeyPart((b.Column(key.name, type_of(key.expr)),), (shown,)) for key, shown in group
        ]
        if not self.persistent:
            return self._transient(plan, projected, "TABLE", parts)
        key, value = self._split(projected, parts, "grouping expression")
        bounds = clauses.key_window(window) if window else None
        built = self._finish(plan, key, value, "TABLE", bounds, keyless=False)
        return replace(built, states=tuple(call.state for call in grouping.calls))

    def _grouped_projection(self, grouping: Grouping) -> list[Named]:
        """Return the SELECT list over the grouped row; one error names all that is not grouped."""
        loose: list[str] = []

        def bind_item(expr: ex.Expr) -> Bound:
            try:
                return grouping.bind(expr, "SELECT")
            except NotGrouped as error:
                loose.append(error.shown)
                return b.Const(False, BOOLEAN)

        projected = self._project(bind_item, grouped=True)
        if loose:
            raise NotGrouped("SELECT", ", ".join(loose))
        return projected

    def _check_undo(self, grouping: Grouping) -> None:
        """Refuse functions without undo: on a table the old row is taken back first."""
        if self.query.window is not None:
            raise StatementError("Windowing not supported for table aggregations.")
        names = list(dict.fromkeys(c.function for c in grouping.calls if not self._undoes(c)))
        if names:
            plural = "s" if len(names) > 1 else ""
            raise StatementError(
                f"The aggregation function{plural} {listed(names, 'and')} cannot be applied to a "
                "table source, only to a stream source."
            )

    def _undoes(self, call: AggregateCall) -> bool:
        function = self.functions.get(call.function)
        types = [type_of(arg) for arg in call.args]
        return instantiate_aggregate(function, call.overload, types, call.literals).undo is not None

    def _group_keys(self) -> list[tuple[Named, str]]:
        exprs = self.query.group_by
        if exprs is None:
            return []
        if not exprs:
            raise NoGroupKey
        scope = self._row_scope("GROUP BY")
        bound = [bind(expr, scope, self.functions) for expr in exprs]
        self._refuse_repeats(bound, exprs, "GROUP BY")
        namer = projection.Namer(self.relation)
        aliases = {
            item.expr: item.alias
            for item in self.query.select
            if isinstance(item, ast.SelectItem) and item.alias
        }
        return [
            (Named(aliases.get(expr) or namer.name(expr), key), describe(self.scope.named(expr)))
            for expr, key in zip(exprs, bound, strict=True)
        ]

    def _window(self) -> TimeWindow | None:
        if self.query.window is None:
            return None
        window = sizes(self.query.window, final=self.query.emit == "FINAL")
        return TimeWindow(
            kind=window.kind,
            size_ms=window.size_ms,
            advance_ms=window.advance_ms,
            grace_ms=window.grace_ms,
            retention_ms=window.retention_ms,
        )

    # --- SELECT

    def _split(
        self, projected: list[Named], parts: list[keys.KeyPart], origin: keys.KeyOrigin
    ) -> tuple[tuple[Named, ...], tuple[Named, ...]]:
        foreign = self.relation.join.foreign if self.relation.join else None
        if foreign is not None and origin == "join expression":
            present = {named.expr for named in projected}
            if any(part.exprs[0] not in present for part in parts):
                raise keys.foreign_missing(projected, parts, foreign.alias)
            origin = "key column"
        key, value = keys.split(projected, parts, origin, self.sink)
        if self.keys_as_written:
            positions = {column.name: number for number, column in enumerate(projected)}
            key = tuple(sorted(key, key=lambda column: positions[column.name]))
        return key, value

    def _rekeyed(self) -> list[projection.Item] | None:
        """Return the columns that PARTITION BY adds to the row, for ``*``."""
        exprs = self.query.partition_by
        if exprs is None:
            return None
        namer = projection.Namer(self.relation)
        return [
            projection.Item(namer.name(expr), expr)
            for expr in exprs
            if not isinstance(expr, ex.NullLit)
        ]

    def _project(
        self,
        bind_item: _BindItem,
        *,
        rekeyed: list[projection.Item] | None = None,
        grouped: bool = False,
    ) -> list[Named]:
        items = projection.items(
            self.query.select,
            self.relation,
            lambda expr: type_of(TableCalls(self.scope, self.functions).bind(expr)),
            persistent=self.persistent,
            rekeyed=rekeyed,
            grouped=grouped,
        )
        named = [Named(item.name, bind_item(item.expr)) for item in items]
        if any(holds_null(type_of(column.expr)) for column in named):
            raise CannotInfer
        return named

    def _transient(
        self,
        plan: Plan,
        projected: Sequence[Named],
        kind: SourceKind,
        parts: Sequence[keys.KeyPart],
    ) -> Built:
        value = tuple(projected)
        projection.check_unique((), value)
        bounds = tuple(b.Column(name, type_) for name, type_ in WINDOW_COLUMNS.items())
        of_key = [*bounds, *(expr for part in parts for expr in part.exprs)]
        key = tuple(n for n in value if n.expr in of_key) if kind == "TABLE" else ()
        return Built(
            plan=Select(plan, (), value),
            key=key,
            value=value,
            kind=kind,
            window=None,
            sources=self.relation.sources,
            keyless=True,
        )

    def _finish(
        self,
        plan: Plan,
        key: tuple[Named, ...],
        value: tuple[Named, ...],
        kind: SourceKind,
        window: KeyWindow | None,
        keyless: bool,
    ) -> Built:
        projection.check_unique(key, value)
        plan = Select(plan, key, value)
        return Built(
            plan=plan,
            key=key,
            value=value,
            kind=kind,
            window=window,
            sources=self.relation.sources,
            keyless=keyless,
        )
