"""Clauses that pull queries do not have: refused in ksqlDB's words.

Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.base.errors import StatementError
from ksql.query import where
from ksql.query.answers import aggregates
from ksql.query.where import MORE
from ksql.syntax import ast
from ksql.syntax import expr as ex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.base.config import Settings
    from ksql.catalog.catalog import Catalog
    from ksql.functions.registry import Functions

_PUSH = "Add EMIT CHANGES if you intended to issue a push query."


class NotInPullQueries(StatementError):
    """A clause that pull queries do not have, or not there; ``more`` says what they have."""

    def __init__(self, clause: str, more: str = "") -> None:
        super().__init__(
            f"Pull queries don't support {clause} clauses. {MORE}",
            hint="\n".join(filter(None, (_PUSH, more))),
        )


class SwitchedOff(StatementError):
    """A kind of pull query that the configuration does not allow."""

    def __init__(self, what: str, verb: str, setting: str) -> None:
        super().__init__(
            f"{what} {verb} disabled. You can enable them by setting {setting}=true. {MORE}",
            hint=_PUSH,
        )


class NotQueryable(StatementError):
    """A table that no query keeps."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The `{name}` table isn't queryable. To derive a queryable table, "  # noqa: S608 - a hint
            f"you can do 'CREATE TABLE QUERYABLE_{name} AS SELECT * FROM {name}'. {MORE}",
            hint=_PUSH,
        )


def check_clauses(
    query: ast.Query, catalog: Catalog, settings: Settings, functions: Functions
) -> None:
    """Refuse what pull queries cannot do.

    Raises: StatementError.
    """
    if not settings.flag("ksql.pull.queries.enable"):
        raise SwitchedOff("Pull queries", "are", "ksql.pull.queries.enable")
    if isinstance(query.source, ast.Join) and _joins_streams(query.source, catalog):
        raise NotInPullQueries("JOIN", "Tables that queries write can be joined without it.")
    if query.window is not None:
        raise NotInPullQueries("WINDOW")
    calls = aggregates(query, functions)
    if query.group_by is not None and not calls:
        raise NotInPullQueries(
            "GROUP BY", "Or use an aggregate function in SELECT or HAVING: they have those."
        )
    if query.partition_by is not None:
        raise NotInPullQueries("PARTITION BY")
    if query.having is not None and query.group_by is None:
        raise NotInPullQueries("HAVING", "Or add a GROUP BY clause: they have HAVING behind one.")
    _check_limit(query, settings)
    exprs = [item.expr for item in query.select if isinstance(item, ast.SelectItem)]
    where.check_columns("SELECT", exprs)
    where.check_columns("JOIN", _criteria(query.source))
    where.check_columns("WHERE", () if query.where is None else (query.where,))
    where.check_columns("GROUP BY", query.group_by or ())
    where.check_columns("HAVING", () if query.having is None else (query.having,))
    where.check_columns("ORDER BY", [item.expr for item in query.order_by or ()])


def check_stream(settings: Settings) -> None:
    """Refuse pull queries of streams where they are switched off.

    Raises: StatementError.
    """
    if not settings.flag("ksql.query.pull.stream.enabled"):
        raise SwitchedOff("Pull queries on streams", "are", "ksql.query.pull.stream.enabled")


def _joins_streams(join: ast.Join, catalog: Catalog) -> bool:
    sources = (catalog.sources.get(ref.name) for ref in _refs(join))
    return any(source is not None and source.kind == "STREAM" for source in sources)


def _refs(relation: ast.Relation) -> Iterator[ast.SourceRef]:
    while isinstance(relation, ast.Join):
        yield relation.right
        relation = relation.left
    yield relation


def _criteria(relation: ast.Relation) -> Iterator[ex.Expr]:
    while isinstance(relation, ast.Join):
        yield relation.criteria
        relation = relation.left


def _check_limit(query: ast.Query, settings: Settings) -> None:
    if query.limit is None:
        return
    if query.limit < 0:
        raise StatementError(
            f"Pull queries don't support negative integers in the LIMIT clause. {MORE}", hint=_PUSH
        )
    if not settings.flag("ksql.query.pull.limit.clause.enabled"):
        raise SwitchedOff(
            "LIMIT clause in pull queries", "is currently", "ksql.query.pull.limit.clause.enabled"
        )
