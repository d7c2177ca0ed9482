"""The materialized answer by key, and how far it has read."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.views.stores import formats
from ksql.views.stores.base import (
    HiddenWindows,
    Rows,
    Store,
    StoreClosed,
    Stored,
    StoredRow,
    united,
)
from ksql.views.stores.format_upgrade import SETTING
from ksql.views.stores.memory import MemoryStore
from ksql.views.stores.retention_store import RetentionStore
