"""Tables that can be read: their stores, what fills them, and scans over them."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.views.access_path import (
    MOST_ALTERNATIVES,
    Access,
    ByKey,
    Windows,
    access_to,
    alternatives,
    combined,
    windows_of,
)
from ksql.views.materialized_view import (
    MORE,
    PUSH_HINT,
    EndOffsets,
    MaterializedView,
    NotQueryable,
    Places,
    TableMoves,
    TableNotReady,
    TopicExtents,
)
from ksql.views.store_config import store_config_of
from ksql.views.store_manager import query_id_of
from ksql.views.store_writer import PartitionStore
from ksql.views.stores.base import StoreSize
from ksql.views.table_scan import CHUNK_ROWS, Chunks, TableScan, row_columns
from ksql.views.view_maintainer import ViewMaintainer
