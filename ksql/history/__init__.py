"""The history of upgrades, in a database; the only user of SQLAlchemy."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.history.database import LedgerUnavailable, configured_url, parse_url, shown, sqlite_path
from ksql.history.entries import KnownUpgrade
from ksql.history.model import Base
from ksql.history.resilient import ResilientLedger
from ksql.history.store import holds_schemas
from ksql.history.upgrade_recorder import UpgradeMetrics, UpgradeRecorder
