"""The SELECT list: stars expanded, every item named. Source: docs/sql/queries.md#select."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.core import StatementError, did_you_mean, quote_always
from ksql.core.types import (
    PSEUDO_COLUMNS,
    SYSTEM_NAMES,
    WINDOW_COLUMNS,
    WINDOWEND,
    WINDOWSTART,
    Struct,
)
from ksql.sql.binder.bound import Named, type_of
from ksql.sql.binder.errors import CannotInfer
from ksql.sql.binder.scope import FromSource, joined_name
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ksql.core.types import SqlType
    from ksql.sql.binder.relation import Relation


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the result before binding."""

    name: str
    expr: ex.Expr


class ReservedName(StatementError):
    """A pseudo column's name is used for a column of the result."""


def items(
    select: Iterable[ast.SelectTerm],
    relation: Relation,
    type_of: Callable[[ex.Expr], SqlType],
    *,
    persistent: bool,
    rekeyed: Sequence[Item] | None = None,
    grouped: bool = False,
) -> list[Item]:
    """Return the result's columns in the order of the text.

    What is ``grouped`` has another key than its source: the source's window is not in it.
    ``rekeyed`` are the columns of PARTITION BY: ``*`` begins with them then, and ends with the
    former key. ``type_of`` gives the type of an expression over the sources (for ``struct->*``).
    Raises: ReservedName; UnknownName for ``x.*`` of an unknown x.
    """
    namer = Namer(relation)
    bounded = not (grouped and persistent)
    out: list[Item] = []
    for term in select:
        match term:
            case ast.SelectStar():
                out += _star(term, relation, persistent=persistent, rekeyed=rekeyed)
            case ast.SelectStructStar():
                out += _struct_star(term, type_of, persistent=persistent)
            case ast.SelectItem():
                bound = bounded and _is_window_bound(term, relation)
                out.append(_item(term, namer, relation, persistent=persistent, bound=bound))
    return out


def _item(
    term: ast.SelectItem, namer: Namer, relation: Relation, *, persistent: bool, bound: bool
) -> Item:
    if term.alias is not None:
        if term.alias in SYSTEM_NAMES and not bound:
            _check_alias(term.alias, term.expr, relation, persistent=persistent)
        return Item(term.alias, term.expr)
    if isinstance(term.expr, ex.NullLit):
        raise CannotInfer
    if isinstance(term.expr, ex.Ref) and relation.scope.joined:
        relation.scope.check_unique(term.expr)
    name = namer.name(term.expr)
    if persistent and name in SYSTEM_NAMES and not bound:
        _check_bound(term.expr, relation)
        raise _reserved(name)
    return Item(name, term.expr)


def _check_bound(expr: ex.Expr, relation: Relation) -> None:
    """Refuse a bound of windows that neither the query nor its sources have: there is no column.

    Raises: UnknownColumn.
    """
    if isinstance(expr, ex.Ref) and expr.name in WINDOW_COLUMNS:
        scope = relation.scope
        if scope.joined or expr.name not in scope.later:
            replace(scope, later=frozenset()).resolve(expr)


def _check_alias(alias: str, expr: ex.Expr, relation: Relation, *, persistent: bool) -> None:
    """Refuse a system column's name as an alias, unless it is the column's own name.

    Even that cannot be stored.
    """
    if not isinstance(expr, ex.Ref) or expr.name != alias:
        raise ReservedName(
            f"`{alias}` is a reserved column name. You cannot use it as an alias for a column."
        )
    if persistent:
        _check_bound(expr, relation)
        raise _reserved(alias)


def _reserved(name: str) -> ReservedName:
    return ReservedName(
        f"Reserved column name in select: `{name}`. Please remove or alias the column."
    )


def _is_window_bound(term: ast.SelectItem, relation: Relation) -> bool:
    """Return whether it is a windowed source's own bound by its own name, which is in the key."""
    windowed = not relation.scope.joined and relation.sources[0].source.window is not None
    expr = term.expr
    return (
        windowed
        and isinstance(expr, ex.Ref)
        and expr.name in (WINDOWSTART, WINDOWEND)
        and term.alias in (None, expr.name)
    )


def _star(
    term: ast.SelectStar,
    relation: Relation,
    *,
    persistent: bool,
    rekeyed: Sequence[Item] | None,
) -> Iterator[Item]:
    chosen = [s for s in relation.sources if term.source in (None, s.alias)]
    if not chosen:
        known = [source.alias for source in relation.sources]
        raise StatementError(
            f"'{term.source}' is not a valid stream/table name or alias.",
            hint=did_you_mean(term.source or "", known),
            span=term.span,
        )
    joined = relation.scope.joined
    if rekeyed is not None and not joined:
        yield from _rekeyed_star(chosen[0], rekeyed)
        return
    if rekeyed is not None and term.source is None:
        yield from _rekeyed_join(relation, rekeyed)
        return
    if term.source is None:
        yield from (Item(name, ex.Ref(name, span=term.span)) for name in relation.scope.extras)
    for source in chosen:
        for name in _star_columns(source, bounds=joined or not persistent):
            shown = joined_name(source.alias, name) if joined else name
            yield Item(shown, ex.Ref(name, source.alias, span=term.span))


def _rekeyed_star(source: FromSource, rekeyed: Sequence[Item]) -> Iterator[Item]:
    yield from rekeyed
    taken = {item.expr.name for item in rekeyed if isinstance(item.expr, ex.Ref)}
    schema = source.source.schema
    for column in (*schema.value, *schema.headers, *schema.key):
        if column.name not in taken:
            yield Item(column.name, ex.Ref(column.name, source.alias))


def _rekeyed_join(relation: Relation, rekeyed: Sequence[Item]) -> Iterator[Item]:
    """Return the columns of a join after PARTITION BY: the new key, then those of each source.

    A source's values come first, its pseudo columns next, its key last.
    """
    taken = set()
    for item in rekeyed:
        expr, name = item.expr, item.name
        if isinstance(expr, ex.Ref):
            owners = (s.alias for s in relation.sources if s.source.schema.find(expr.name))
            owner = expr.source or next(owners, "")
            name = joined_name(owner, expr.name) if owner else name
            taken.add(name)
        yield Item(name, expr)
    for source in relation.sources:
        schema = source.source.schema
        values = [column.name for column in (*schema.value, *schema.headers)]
        for name in (*values, *PSEUDO_COLUMNS, *(column.name for column in schema.key)):
            shown = joined_name(source.alias, name)
            if shown not in taken:
                yield Item(shown, ex.Ref(name, source.alias))
    loose = (name for name in relation.scope.extras if name not in taken)
    yield from (Item(name, ex.Ref(name)) for name in loose)


def _star_columns(source: FromSource, *, bounds: bool) -> Iterator[str]:
    """Yield the names of a source's columns; ``bounds``: those of its window are columns, too.

    After a join they are: the key of the result has one window, its sources had one each.
    """
    schema = source.source.schema
    yield from (column.name for column in schema.key)
    if source.source.window is not None and bounds:
        yield from (WINDOWSTART, WINDOWEND)
    yield from (column.name for column in schema.columns if column not in schema.key)


def _struct_star(
    term: ast.SelectStructStar, type_of: Callable[[ex.Expr], SqlType], *, persistent: bool
) -> Iterator[Item]:
    type_ = type_of(term.base)
    if not isinstance(type_, Struct):
        raise StatementError(
            f"Cannot select all fields of {type_}: '->*' needs a STRUCT", span=term.span
        )
    for field in type_.fields:
        if persistent and field.name in SYSTEM_NAMES:
            raise _reserved(field.name)
        yield Item(field.name, ex.Deref(term.base, field.name, span=term.span))


class Namer:
    """Names for items without alias; one per query, since generated names count up."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._taken = {
            column.name for source in relation.sources for column in source.source.schema.columns
        }
        self._counter = 0

    def name(self, expr: ex.Expr) -> str:
        """Return the name of an item: the column's, the field's, else ``KSQL_COL_n``."""
        match expr:
            case ex.Ref():
                return self._column(expr)
            case ex.Deref():
                return self._field(expr.field)
            case _:
                return self._generated()

    def _column(self, ref: ex.Ref) -> str:
        owners = [
            source
            for source in self._relation.sources
            if any(column.name == ref.name for column in source.source.schema.columns)
            or ref.name in SYSTEM_NAMES
        ]
        if ref.source is not None and len(owners) > 1:
            return joined_name(ref.source, ref.name)
        return ref.name

    def _field(self, field: str) -> str:
        name, number = field, 0
        while name in self._taken:
            number += 1
            name = f"{field}_{number}"
        self._taken.add(name)
        return name

    def _generated(self) -> str:
        while f"KSQL_COL_{self._counter}" in self._taken:
            self._counter += 1
        name = f"KSQL_COL_{self._counter}"
        self._counter += 1
        return name


def check_unique(key: Iterable[Named], value: Iterable[Named]) -> None:
    """Refuse two columns of a result with one name.

    Raises: StatementError naming those that do.
    """
    seen = set()
    for kind, end, columns in (("key", " KEY", key), ("value", "", value)):
        for column in columns:
            if column.name in seen:
                raise StatementError(
                    f"Duplicate {kind} columns found in schema: "
                    f"{quote_always(column.name)} {type_of(column.expr)}{end}"
                )
            seen.add(column.name)
