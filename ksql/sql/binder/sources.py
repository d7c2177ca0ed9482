"""A stream or table as a query names it."""

from __future__ import annotations

from dataclasses import dataclass

from ksql.sql.catalog.model import DataSource


@dataclass(frozen=True, slots=True)
class FromSource:
    """One source of the query under its alias."""

    alias: str
    source: DataSource
