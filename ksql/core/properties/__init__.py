"""The table of properties: one row for each, with its type, default, bounds and meaning."""

from __future__ import annotations

from ksql.core.properties.model import LONG_MAX, Property, is_javas

__all__ = [
    "LONG_MAX",
    "Property",
    "is_javas",
]
