"""The names that an expression sees: columns of the sources, arguments of lambdas.

The rows that a query reads have one column per column of its source, of the same name. Rows of a
join have ``ALIAS_NAME`` for the column NAME of the source ALIAS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, cast

from ksql.core import ident
from ksql.core.types import PSEUDO_COLUMNS, WINDOW_COLUMNS, SqlType
from ksql.sql.binder.bound import Bound, Column, LambdaVar
from ksql.sql.binder.errors import AmbiguousColumn, NotAvailableHere, UnknownColumn, UnknownSource
from ksql.sql.catalog.model import DataSource
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.walk import transform

if TYPE_CHECKING:
    from ksql.core.types import Schema


E = TypeVar("E", bound=ex.Expr)
JOIN_ON = "JOIN ON"
"""The clause of a join's condition."""
_WINDOWED_CLAUSES = ("GROUP BY", "HAVING", "SELECT")
Intercept = Callable[[ex.Expr], "Bound | None"]


@dataclass(frozen=True)
class Source:
    """A stream or table as FROM names it, with all columns that expressions may use."""

    alias: str
    columns: Mapping[str, SqlType]

    @classmethod
    def of(cls, alias: str, schema: Schema, *, windowed: bool = False) -> Source:
        """Return the source with its pseudo columns and, if its keys are windowed, their bounds."""
        columns = {column.name: column.type for column in schema.columns}
        extra = PSEUDO_COLUMNS | (WINDOW_COLUMNS if windowed else {})
        return cls(alias, columns | {k: v for k, v in extra.items() if k not in columns})


def joined_name(alias: str, column: str) -> str:
    """Return the name that a source's column has in the rows of a join."""
    return f"{alias}_{column}"


@dataclass(frozen=True)
class Scope:
    """The names that an expression may use.

    ``clause`` (SELECT, WHERE, JOIN ON, ..) is named in errors. ``joined``: columns are called
    ``ALIAS_NAME``. ``extras`` are columns of no source (the synthetic key of a join). ``later`` are
    names that other clauses know but not this one (the bounds of the query's own windows).
    ``aliases`` are SELECT's, which no clause knows: only messages do.
    ``intercept`` sees every expression before it is bound; what it returns stands for it:
    aggregates and grouping expressions become columns this way.
    """

    sources: tuple[Source, ...] = ()
    clause: str = "SELECT"
    joined: bool = False
    extras: Mapping[str, SqlType] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    intercept: Intercept | None = None
    aliases: Mapping[str, ex.Expr] = field(default_factory=dict)
    variables: Mapping[str, SqlType] = field(default_factory=dict)

    def resolve(self, ref: ex.Ref) -> Column | LambdaVar:
        """Return the column, or the argument of an enclosing lambda, that the name means.

        Raises: UnknownColumn, UnknownSource, AmbiguousColumn, NotAvailableHere.
        """
        if ref.source is None and ref.name in self.variables:
            return LambdaVar(ref.name, self.variables[ref.name])
        matches = list(self._matches(ref))
        if self._of_later_windows(ref):
            raise NotAvailableHere(self.clause, ref)
        match matches:
            case [column]:
                return column[1]
            case []:
                raise self._unknown(ref)
            case _:
                raise _ambiguous(ref, matches)

    def check_unique(self, ref: ex.Ref) -> None:
        """Refuse a name that several sources have.

        Raises: AmbiguousColumn, UnknownSource.
        """
        if len(matches := list(self._matches(ref))) > 1:
            raise _ambiguous(ref, matches)

    def _matches(self, ref: ex.Ref) -> Iterator[tuple[str, Column]]:
        if ref.source is not None and all(ref.source != source.alias for source in self.sources):
            raise UnknownSource(ref, {s.alias: s.columns for s in self.sources})
        for source in self.sources:
            type_ = source.columns.get(ref.name)
            if type_ is not None and ref.source in (None, source.alias):
                name = joined_name(source.alias, ref.name) if self.joined else ref.name
                yield f"{ident.quote(source.alias)}.{ident.quote(ref.name)}", Column(name, type_)
        if ref.source is None and ref.name in self.extras:
            yield ident.quote(ref.name), Column(ref.name, self.extras[ref.name])

    def _of_later_windows(self, ref: ex.Ref) -> bool:
        """Return whether the name means the query's own windows where there are none yet.

        They hide the bounds of a source's windows, except in WHERE, which reads the source alone.
        """
        return not self.joined and ref.name in self.later and self.clause in _WINDOWED_CLAUSES

    def _unknown(self, ref: ex.Ref) -> UnknownColumn | NotAvailableHere:
        if ref.source is None and ref.name in self.later:
            return NotAvailableHere(self.clause, ref)
        known = [name for source in self.sources for name in source.columns]
        alias = None if ref.source else self.aliases.get(ref.name)
        return UnknownColumn(self.clause, ref, known, alias)

    def named(self, expr: E) -> E:
        """Return the expression with its columns called as in the rows, for messages.

        The conditions of joins are read before there are such rows: they stay as written.

        Example: in a join ``L.B > 1`` becomes ``L_B > 1``, else ``B > 1``.
        """
        return expr if self.clause == JOIN_ON else cast("E", transform(expr, self._renamed))

    def _renamed(self, node: ex.Expr) -> ex.Expr:
        if not isinstance(node, ex.Ref) or (node.source is None and node.name in self.variables):
            return node
        owners = [s.alias for s in self.sources if node.name in s.columns]
        if node.source is not None:
            owners = [alias for alias in owners if alias == node.source]
        if len(owners) != 1:
            return node
        name = joined_name(owners[0], node.name) if self.joined else node.name
        return replace(node, name=name, source=None)

    def has_column(self, name: str) -> bool:
        """Return whether any source has a column of that name: a lambda's argument must not."""
        return name in self.extras or any(name in source.columns for source in self.sources)

    def with_variables(self, variables: Mapping[str, SqlType]) -> Scope:
        """Return the scope of a lambda's body."""
        return replace(self, variables={**self.variables, **variables})


def _ambiguous(ref: ex.Ref, matches: Iterable[tuple[str, Column]]) -> AmbiguousColumn:
    return AmbiguousColumn(ref, tuple(name for name, _ in matches))


NO_COLUMNS = Scope(clause="INSERT VALUES")


@dataclass(frozen=True, slots=True)
class FromSource:
    """One source of the query under its alias."""

    alias: str
    source: DataSource
