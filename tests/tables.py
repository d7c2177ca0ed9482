"""Waits for the rows of a table's stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tests.waits import PATIENCE_S, await_true

if TYPE_CHECKING:
    from ksql.core import PartitionId
    from ksql.sql.catalog import DataSource
    from ksql.views import MaterializedView, ViewMaintainer


def await_table(
    views: ViewMaintainer,
    source: DataSource,
    ends: Mapping[PartitionId, int],
    patience_s: float = PATIENCE_S,
    lag: int = 0,
    *,
    committed: bool = False,
) -> MaterializedView:
    """Return the stores once they hold what lies before these offsets.

    Raises: AssertionError if that takes too long.
    """

    def filled() -> MaterializedView | None:
        table = views.readable_view(source, lag, committed=committed)
        if table is None or table.missing(ends, committed=committed) > lag:
            return None
        return table

    view: MaterializedView = await_true(f"the rows of {source.name}", filled, patience_s)
    return view
