"""The table of properties: one row for each, with its type, default, bounds and meaning."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.core.properties.model import LONG_MAX, Property, is_javas
