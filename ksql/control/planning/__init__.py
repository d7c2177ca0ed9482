"""The pure steps from a parsed statement to a command: resolve, plan, compare, effects."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.control.planning.columns import columns_of
    from ksql.control.planning.plan_queries import transient_plan
    from ksql.control.planning.properties import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "columns": "columns_of",
            "plan_queries": "transient_plan",
            "properties": "FormatClause With configured_formats with_configured_wrap",
        },
    )
