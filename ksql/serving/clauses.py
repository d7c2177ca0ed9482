"""Refuses the clauses that pull queries do not have, in ksqlDB's words.

Source: docs/sql/reading.md#pull-queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import StatementError
from ksql.serving import pull_restrictions
from ksql.serving.result_pipeline import aggregates
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.views import MORE, PUSH_HINT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.core import Settings
    from ksql.functions import Functions
    from ksql.sql.catalog import Catalog


class NotInPullQueries(StatementError):
    """A clause that pull queries do not have, or not there; ``more`` says what they have."""

    def __init__(self, clause: str, more: str = "") -> None:
        super().__init__(
            f"Pull queries don't support {clause} clauses. {MORE}",
            hint="\n".join(filter(None, (PUSH_HINT, more))),
        )


class SwitchedOff(StatementError):
    """A kind of pull query that the configuration does not allow."""

    def __init__(self, what: str, verb: str, setting: str) -> None:
        super().__init__(
            f"{what} {verb} disabled. You can enable them by setting {setting}=true. {MORE}",
            hint=PUSH_HINT,
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
    pull_restrictions.check_columns("SELECT", exprs)
    pull_restrictions.check_columns("JOIN", _criteria(query.source))
    pull_restrictions.check_columns("WHERE", () if query.where is None else (query.where,))
    pull_restrictions.check_columns("GROUP BY", query.group_by or ())
    pull_restrictions.check_columns("HAVING", () if query.having is None else (query.having,))
    pull_restrictions.check_columns("ORDER BY", [item.expr for item in query.order_by or ()])


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
            f"Pull queries don't support negative integers in the LIMIT clause. {MORE}",
            hint=PUSH_HINT,
        )
    if not settings.flag("ksql.query.pull.limit.clause.enabled"):
        raise SwitchedOff(
            "LIMIT clause in pull queries", "is currently", "ksql.query.pull.limit.clause.enabled"
        )
