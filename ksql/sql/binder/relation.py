"""FROM and JOIN: which sources a query reads and under which names their columns are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.core import PREPARING, ParseError, UnknownName, near, visible
from ksql.sql.binder import chains
from ksql.sql.binder.bound import type_of
from ksql.sql.binder.chains import BoundJoin
from ksql.sql.binder.errors import UnknownSource
from ksql.sql.binder.scope import FromSource, Scope, Source
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.walk import collect

if TYPE_CHECKING:
    from ksql.functions import Functions
    from ksql.sql.catalog.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Relation:
    """FROM with all names resolved; ``joins`` adds one source after the other to the first."""

    sources: tuple[FromSource, ...]
    joins: tuple[BoundJoin, ...]
    scope: Scope

    @property
    def join(self) -> BoundJoin | None:
        """Return the last join; its rows are those of FROM."""
        return self.joins[-1] if self.joins else None


def bind_relation(
    relation: ast.Relation, catalog: Catalog, functions: Functions, later: frozenset[str]
) -> Relation:
    """Resolve the sources of a query.

    Raises: UnknownSource for a name that is no source; StatementError for an illegal join.
    """
    match relation:
        case ast.SourceRef():
            sources = sources_of(relation, catalog)
            return Relation(sources, (), scope_of(sources, later=later))
        case ast.Join():
            return _joined(relation, catalog, functions, later)


def sources_of(relation: ast.Relation, catalog: Catalog) -> tuple[FromSource, ...]:
    """Return the sources that FROM names, in the order of the text.

    Raises: UnknownFromSource.
    """
    refs: list[ast.SourceRef] = []
    while isinstance(relation, ast.Join):
        refs.append(relation.right)
        relation = relation.left
    return tuple(_from(ref, catalog) for ref in (relation, *reversed(refs)))


def _joined(
    join: ast.Join, catalog: Catalog, functions: Functions, later: frozenset[str]
) -> Relation:
    sources = sources_of(join, catalog)
    scope = scope_of(sources, later=later)
    for step in chains.steps(join):
        _check_qualifiers(step.criteria, scope)
    joins = chains.bind_chain(join, sources, scope, functions)
    if joins[-1].synthetic:
        extras = {joins[-1].synthetic_name: type_of(joins[-1].left_key)}
        scope = replace(scope, extras=extras)
    return Relation(sources, joins, scope)


def _check_qualifiers(criteria: ex.Expr, scope: Scope) -> None:
    known = {source.alias: source.columns for source in scope.sources}
    for ref in collect(criteria, ex.Ref):
        if ref.source is not None and ref.source not in known:
            raise UnknownSource(ref, known)


def _from(ref: ast.SourceRef, catalog: Catalog) -> FromSource:
    source = catalog.sources.get(ref.name)
    if source is None:
        raise UnknownFromSource(ref, catalog)
    return FromSource(ref.alias, source)


class UnknownFromSource(UnknownName, ParseError):
    """FROM names a stream or table that does not exist."""

    def __init__(self, ref: ast.SourceRef, catalog: Catalog) -> None:
        text = f"{PREPARING}{ref.name} does not exist."
        super().__init__(text, near(ref.name, visible(catalog.sources)), span=ref.span)


def scope_of(sources: tuple[FromSource, ...], *, later: frozenset[str] = frozenset()) -> Scope:
    """Return the scope of expressions over these sources."""
    return Scope(
        tuple(
            Source.of(source.alias, source.source.schema, windowed=source.source.window is not None)
            for source in sources
        ),
        joined=len(sources) > 1,
        later=later,
    )
