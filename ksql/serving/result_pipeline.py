"""The clauses of a pull query as steps over chunks of rows; GROUP BY in bounded memory.

FROM gives rows. WHERE, GROUP BY, HAVING and SELECT are the same compiled code as in queries that
run on. ORDER BY, OFFSET and LIMIT come after them.
Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ksql.core import NOT_ORDERABLE, QueryFailed, StatementError
from ksql.core.types import BIGINT, BOOLEAN, INTEGER, ROWTIME, Column, Role, model
from ksql.exec.expressions import Projection, compile_projection
from ksql.exec.operators import Folds, Slot, State, compile_folds, estimate, keys
from ksql.formats import MapInKey, within
from ksql.functions import instantiate_aggregate
from ksql.serving.ordering import ByteBudget, SortKey, in_order, orderable
from ksql.sql.binder import (
    Bound,
    Grouping,
    Named,
    Namer,
    NoGroupKey,
    NotBoolean,
    NotGrouped,
    bind,
    bind_predicate,
    check_unique,
    describe,
    is_aggregate,
    items,
    refuse_aggregates,
    type_of,
)
from ksql.sql.binder import bound as b
from ksql.sql.syntax import ast, collect
from ksql.sql.syntax import expr as ex
from ksql.views import CHUNK_ROWS, Chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ksql.core import Row
    from ksql.functions import Functions
    from ksql.sql.binder import AggregateCall, Relation, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSelect:
    """A query's clauses, bound. ``outputs`` are its columns, then what only ORDER BY needs."""

    where: Bound | None
    grouping: Grouping | None
    having: Bound | None
    outputs: tuple[Named, ...]
    width: int
    order: tuple[SortKey, ...]
    offset: int
    limit: int | None

    @property
    def columns(self) -> tuple[Named, ...]:
        """The columns of the result."""
        return self.outputs[: self.width]


def is_grouped(query: ast.Query, functions: Functions) -> bool:
    """Return whether its rows stand for groups of rows."""
    return query.group_by is not None or bool(aggregates(query, functions))


def aggregates(query: ast.Query, functions: Functions) -> list[ex.Call]:
    """Return the aggregates in SELECT, HAVING and ORDER BY."""
    exprs = [item.expr for item in query.select if isinstance(item, ast.SelectItem)]
    exprs += [item.base for item in query.select if isinstance(item, ast.SelectStructStar)]
    exprs += [] if query.having is None else [query.having]
    exprs += [item.expr for item in query.order_by or ()]
    calls = (call for expr in exprs for call in collect(expr, ex.Call))
    return [call for call in calls if is_aggregate(call, functions)]


def bind_answer(
    query: ast.Query, relation: Relation, scope: Scope, functions: Functions
) -> BoundSelect:
    """Bind the clauses after FROM; ``scope`` has the columns of the rows that it gives.

    Raises: StatementError for everything that the language refuses.
    """
    return _Binder(query, relation, scope, functions).bound()


class _Binder:
    def __init__(
        self, query: ast.Query, relation: Relation, scope: Scope, functions: Functions
    ) -> None:
        self.query = query
        self.relation = relation
        self.scope = scope
        self.functions = functions

    def bound(self) -> BoundSelect:
        query, grouping = self.query, None
        if is_grouped(query, self.functions):
            grouping = Grouping(self.scope, self.functions, self._group_keys(), windowed=False)
        projected = self._projected(grouping)
        where = None
        if query.where is not None:
            scope = replace(self.scope, clause="WHERE")
            where = bind_predicate(query.where, scope, self.functions)
        having = None
        if query.having is not None and grouping is not None:
            having = grouping.bind(query.having, "HAVING")
            if type_of(having) != BOOLEAN:
                raise NotBoolean("HAVING", query.having, type_of(having))
        outputs = list(projected)
        order = [self._sort_key(item, outputs, len(projected), grouping) for item in self._order()]
        return BoundSelect(
            where=where,
            grouping=grouping,
            having=having,
            outputs=tuple(outputs),
            width=len(projected),
            order=tuple(order),
            offset=query.offset or 0,
            limit=query.limit,
        )

    # --- GROUP BY

    def _group_keys(self) -> tuple[Named, ...]:
        exprs = self.query.group_by
        if exprs is None:
            return ()
        if not exprs:
            raise NoGroupKey
        scope = replace(self.scope, clause="GROUP BY")
        scope = replace(scope, intercept=refuse_aggregates(self.functions, "GROUP BY", scope))
        namer = Namer(self.relation)
        keys: list[Named] = []
        for expr in exprs:
            key = bind(expr, scope, self.functions)
            if any(key == known.expr for known in keys):
                shown = describe(self.scope.named(expr))
                raise StatementError(f"Duplicate GROUP BY expression: {shown}")
            name = key.name if isinstance(key, b.Column) else namer.name(expr)
            if any(isinstance(type_, model.Map) for type_ in within(type_of(key))):
                raise MapInKey(Column(name, type_of(key), Role.KEY))
            keys.append(Named(name, key))
        return tuple(keys)

    # --- SELECT

    def _projected(self, grouping: Grouping | None) -> list[Named]:
        loose: list[str] = []

        def bound(expr: ex.Expr) -> Bound:
            if grouping is None:
                return bind(expr, self.scope, self.functions)
            try:
                return grouping.bind(expr, "SELECT")
            except NotGrouped as error:
                loose.append(error.shown)
                return b.Const(False, BOOLEAN)

        terms = items(
            self.query.select,
            self.relation,
            lambda expr: type_of(bound(expr)),
            persistent=False,
            grouped=grouping is not None,
        )
        projected = [Named(item.name, bound(item.expr)) for item in terms]
        if loose:
            raise NotGrouped("SELECT", ", ".join(loose))
        check_unique((), projected)
        return projected

    # --- ORDER BY

    def _order(self) -> Sequence[ast.OrderItem]:
        return self.query.order_by or ()

    def _sort_key(
        self,
        item: ast.OrderItem,
        outputs: list[Named],
        width: int,
        grouping: Grouping | None,
    ) -> SortKey:
        """Return the place of its value in the rows.

        One that SELECT does not have is added to them.
        """
        index = self._selected(item, outputs[:width])
        if index is None:
            expression = self._ordered_by(item.expr, grouping)
            places = (at for at, output in enumerate(outputs) if output.expr == expression)
            index = next(places, len(outputs))
            if index == len(outputs):
                outputs.append(Named("", expression))
        type_ = type_of(outputs[index].expr)
        if not orderable(type_):
            raise NOT_ORDERABLE(
                shown=describe(self.scope.named(item.expr)), type_=type_, span=item.span
            )
        first = item.descending if item.nulls is None else item.nulls == "FIRST"
        return SortKey(index, type_, item.descending, first)

    def _selected(self, item: ast.OrderItem, columns: Sequence[Named]) -> int | None:
        """Return the column of the result that is meant by its name or its number."""
        match item.expr:
            case ex.Ref(name, None):
                return next((at for at, column in enumerate(columns) if column.name == name), None)
            case ex.IntLit(number) if 1 <= number <= len(columns):
                return number - 1
            case ex.IntLit(number):
                raise StatementError(
                    f"ORDER BY {number}: the result has {len(columns)} columns.", span=item.span
                )
            case _:
                return None

    def _ordered_by(self, expr: ex.Expr, grouping: Grouping | None) -> Bound:
        if grouping is not None:
            return grouping.bind(expr, "ORDER BY")
        return bind(expr, replace(self.scope, clause="ORDER BY"), self.functions)


# --- running it


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPipeline:
    """The compiled steps of a query; ``most_bytes`` bounds the rows that it keeps."""

    meaning: BoundSelect
    first: Projection
    groups: Groups | None
    second: Projection | None
    most_bytes: int

    def rows(self, chunks: Chunks) -> Iterator[list[Row]]:
        """Yield the result's rows from those of FROM; a chunk may be empty.

        Raises: TooManyRows.
        """
        meaning = self.meaning
        chunks = _mapped(self.first, chunks)
        if self.groups is not None and self.second is not None:
            groups = self.groups.rows(chunks, ByteBudget("GROUP BY", self.most_bytes))
            chunks = _mapped(self.second, groups)
        if meaning.order:
            most_rows = None if meaning.limit is None else meaning.offset + meaning.limit
            chunks = in_order(
                chunks, meaning.order, most_rows, ByteBudget("ORDER BY", self.most_bytes)
            )
        if meaning.offset or meaning.limit is not None:
            chunks = _cut(chunks, meaning.offset, meaning.limit)
        if len(meaning.outputs) > meaning.width:
            width = meaning.width
            chunks = ([row[:width] for row in chunk] for chunk in chunks)
        return chunks


def compile_answer(
    meaning: BoundSelect,
    columns: Sequence[str],
    functions: Functions,
    settings: Mapping[str, str],
    most_bytes: int,
) -> ResultPipeline:
    """Compile a query over rows of these columns.

    Raises: TooDeep.
    """

    def compiled(names: Sequence[str], where: Bound | None, exprs: Sequence[Bound]) -> Projection:
        return compile_projection(names, where, exprs, functions, dict(settings), "pull")

    results = [named.expr for named in meaning.outputs]
    grouping = meaning.grouping
    if grouping is None:
        first = compiled(columns, meaning.where, results)
        return ResultPipeline(
            meaning=meaning, first=first, groups=None, second=None, most_bytes=most_bytes
        )
    time: Bound = b.Column(ROWTIME, BIGINT) if ROWTIME in columns else b.Const(-1, INTEGER)
    keys, calls = grouping.keys, grouping.calls
    given = [*(key.expr for key in keys), *(arg for call in calls for arg in call.args), time]
    names = [*(key.name for key in keys), *(call.name for call in calls), ROWTIME]
    return ResultPipeline(
        meaning=meaning,
        first=compiled(columns, meaning.where, given),
        groups=Groups.of(len(keys), calls, functions, settings),
        second=compiled(names, meaning.having, results),
        most_bytes=most_bytes,
    )


def _mapped(projection: Projection, chunks: Chunks) -> Iterator[list[Row]]:
    run: Callable[[Sequence[Row], Any], list[Row | None]] = projection.batch
    for chunk in chunks:
        yield [row for row in run(chunk, _ignore) if row is not None]


def _cut(chunks: Chunks, offset: int, limit: int | None) -> Iterator[list[Row]]:
    """Leave out the first rows, and stop reading with the last that is wanted."""
    skipped = given = 0
    if limit == 0:
        return
    for chunk in chunks:
        rest = chunk[offset - skipped :] if skipped < offset else chunk
        skipped += len(chunk) - len(rest)
        part = rest if limit is None else rest[: limit - given]
        given += len(part)
        yield part
        if limit is not None and given >= limit:
            return


def _ignore(_operator: str, _message: str, _row: object) -> None:
    """Ignore an error in a pull query's expression: NULL or no row; there is no log to write to."""


_GROUP_BYTES = 400


@dataclass(frozen=True, slots=True)
class Groups:
    """The aggregates over rows of ``width`` grouping values, their arguments and the row's time.

    The rows that it gives are the grouping values, the aggregates' results, the latest time.
    """

    width: int
    folds: Folds

    @classmethod
    def of(
        cls,
        width: int,
        calls: Sequence[AggregateCall],
        functions: Functions,
        settings: Mapping[str, str],
    ) -> Groups:
        """Return the groups for these aggregates, whose arguments have their order."""
        slots, column = [], width
        for number, call in enumerate(calls):
            function = instantiate_aggregate(
                functions.get(call.function),
                call.overload,
                [type_of(arg) for arg in call.args],
                call.literals,
                settings,
            )
            slots.append(Slot(number, function, tuple(range(column, column + len(call.args)))))
            column += len(call.args)
        return cls(width, compile_folds(slots))

    def rows(self, chunks: Chunks, room: ByteBudget) -> Iterator[list[Row]]:
        """Yield the groups' rows; while rows are still read the chunks are empty.

        As in every GROUP BY of the language a row with NULL in its grouping values is in no group.
        Without any there is one group, even of no rows.
        """
        states: dict[bytes, tuple[Row, State]] = {}
        sizes: dict[bytes, int] = {}
        if not self.width:
            states[keys.pack(())] = (), self.folds.init()
        for chunk in chunks:
            for key in self._fold(chunk, states):
                size = _GROUP_BYTES + len(key) + estimate(states[key][1])
                room.take(size - sizes.get(key, 0))
                sizes[key] = size
            yield []
        result = self.folds.result
        rows = ((*key, *result(state), state[0]) for key, state in states.values())
        while page := list(itertools.islice(rows, CHUNK_ROWS)):
            yield page

    def _fold(self, chunk: Sequence[Row], states: dict[bytes, tuple[Row, State]]) -> set[bytes]:
        """Fold the rows into their groups; return the groups that changed."""
        changed: set[bytes] = set()
        width, folds = self.width, self.folds
        for row in chunk:
            values = row[:width]
            if None in values:
                continue
            key = keys.pack(values)
            known = states.get(key)
            state = folds.init() if known is None else known[1]
            if not _stepped(folds, state, row):
                continue
            if known is None:
                states[key] = values, state
            if row[-1] > state[0]:
                state[0] = row[-1]
            changed.add(key)
        return changed


def _stepped(folds: Folds, state: Any, row: Row) -> bool:
    """Return whether the row counts: one on which a function fails does not, as in every query."""
    try:
        folds.step(state, row)
    except QueryFailed:
        raise
    except Exception:  # noqa: BLE001 - a function's failure; pull queries have no processing log
        return False
    return True
