"""Backup and restore of a service: its topics and its state directory."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.app.backup.restore import Restore, RestoreOptions
