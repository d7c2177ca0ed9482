"""FROM and JOIN: which sources a query reads and under which names their columns are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.analysis import joins
from ksql.analysis.bound import Bound
from ksql.analysis.scope import Scope, Source
from ksql.base.errors import NotSupportedYet, StatementError
from ksql.base.ident import near
from ksql.catalog.model import DataSource
from ksql.syntax import ast

if TYPE_CHECKING:
    from ksql.catalog.catalog import Catalog
    from ksql.functions.registry import Functions


@dataclass(frozen=True, slots=True)
class FromSource:
    """One source of the query under its alias."""

    alias: str
    source: DataSource


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """A stream-table join with its keys bound.

    ``left_key`` reads the stream, ``right_key`` the table.
    """

    kind: str
    left_key: Bound
    right_key: Bound


@dataclass(frozen=True, slots=True)
class Relation:
    """What FROM gives: its sources in order, a join, the scope of the query's expressions."""

    sources: tuple[FromSource, ...]
    join: BoundJoin | None
    scope: Scope


def bind_relation(
    relation: ast.Relation, catalog: Catalog, functions: Functions, later: frozenset[str]
) -> Relation:
    """Resolve the sources of a query.

    Raises: UnknownSource for a name that is no source; StatementError for an illegal join.
    """
    match relation:
        case ast.SourceRef():
            found = (_from(relation, catalog),)
            return Relation(found, None, scope_of(found, later=later))
        case ast.Join(left=ast.SourceRef() as left):
            pair = (_from(left, catalog), _from(relation.right, catalog))
            scope = scope_of(pair, later=later)
            left_key, right_key = joins.bind_join(relation, pair, scope, functions)
            return Relation(pair, BoundJoin(relation.kind, left_key, right_key), scope)
        case ast.Join():
            raise NotSupportedYet("joining more than two sources", span=relation.span)


def _from(ref: ast.SourceRef, catalog: Catalog) -> FromSource:
    source = catalog.sources.get(ref.name)
    if source is None:
        raise UnknownFromSource(ref, catalog)
    return FromSource(ref.alias, source)


class UnknownFromSource(StatementError):
    """FROM names a stream or table that does not exist."""

    def __init__(self, ref: ast.SourceRef, catalog: Catalog) -> None:
        close = near(ref.name, catalog.sources)
        super().__init__(
            f"{ref.name} does not exist.",
            hint=f"Did you mean {close[0]}?" if close else "",
            span=ref.span,
        )


def scope_of(sources: tuple[FromSource, ...], *, later: frozenset[str] = frozenset()) -> Scope:
    """The scope of expressions over these sources."""
    return Scope(
        tuple(
            Source.of(each.alias, each.source.schema, windowed=each.source.window is not None)
            for each in sources
        ),
        joined=len(sources) > 1,
        later=later,
    )
