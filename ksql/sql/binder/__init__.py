"""Names, types and clauses: the meaning of a query, found or refused before it runs."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.sql.binder import bound, keys, trees
    from ksql.sql.binder.bound import *
    from ksql.sql.binder.chains import BoundJoin
    from ksql.sql.binder.errors import *
    from ksql.sql.binder.grouping import *
    from ksql.sql.binder.infer import *
    from ksql.sql.binder.projection import *
    from ksql.sql.binder.relation import *
    from ksql.sql.binder.scope import *
    from ksql.sql.binder.show import sql_of
    from ksql.sql.binder.trees import columns
    from ksql.sql.binder.windows import check_overlap
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "bound": "Bound Column Const LambdaVar Named type_of",
            "chains": "BoundJoin",
            "errors": (
                "BadValue NoGroupKey NotBoolean OPERATORS UnknownSource describe of_value "
                "position_text"
            ),
            "grouping": "AggregateCall Grouping NotGrouped is_aggregate refuse_aggregates",
            "infer": "bind bind_predicate",
            "projection": "Namer check_unique items",
            "relation": "Relation bind_relation sources_of",
            "scope": "NO_COLUMNS Scope Source joined_name",
            "show": "sql_of",
            "trees": "columns",
            "windows": "check_overlap",
        },
    )
