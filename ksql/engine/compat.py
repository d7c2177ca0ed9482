"""May a source take another's place? The metastore's check.

Source: docs/upgrades.md#what-is-refused.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ksql.types.format import Format, as_written, capabilities
from ksql.types.schema import Column, Role

if TYPE_CHECKING:
    from collections.abc import Container

    from ksql.catalog.model import DataSource


def check_replacement(old: DataSource, new: DataSource) -> list[str]:
    """Every reason why not, in ksqlDB's words; empty if nothing stands against it."""
    stems = []
    if old.kind != new.kind:
        stems.append(
            f"DataSource '{old.name}' has type = {old.kind}, which cannot be upgraded to {new.kind}"
        )
    if _storage(old) != _storage(new):
        stems.append(
            f"DataSource '{old.name}' has topic = {_shown(old)} "
            f"which cannot be upgraded to {_shown(new)}"
        )
    if old.timestamp != new.timestamp:
        stems.append(
            f"DataSource '{old.name}' has timestampColumn = {_time(old)} "
            f"which cannot be upgraded to {_time(new)}"
        )
    stems += _columns(old, new)
    return stems


def check_growth(old: DataSource, new: DataSource, queries: Container[str]) -> list[str]:
    """Why a declaration may not add the columns that it adds; empty if nothing stands against it.

    ``queries`` are the ids of those that are there.
    """
    known = {column.name for column in old.schema.columns}
    added = ", ".join(str(c) for c in new.schema.columns if c.name not in known)
    if not added:
        return []
    stems = []
    if capabilities(old.value_format.name).fixed_columns:
        stems.append(
            f"The records of {old.value_format.name} have as many fields as '{old.name}' has "
            f"columns: with {added} what is in topic {old.topic} could not be read any more, and "
            "queries that run would skip what comes"
        )
    if old.created_by is not None and old.created_by in queries:
        stems.append(f"Query {old.created_by} writes '{old.name}' and does not give it {added}")
    return stems


def _storage(source: DataSource) -> tuple[object, ...]:
    formats = as_written(source.key_format), as_written(source.value_format)
    return (source.topic, *formats, source.window)


def _shown(source: DataSource) -> str:
    window = (
        f", {source.window.kind} {source.window.size_ms or ''}".rstrip() if source.window else ""
    )
    return f"{source.topic} ({_format(source.key_format)}/{_format(source.value_format)}{window})"


def _format(format_: Format) -> str:
    """The format's name, and its properties where they are not what they are by themselves."""
    plain = Format(format_.name)
    stated = {each.name: getattr(format_, each.name) for each in fields(Format)}
    shown = [f"{n}='{v}'" for n, v in stated.items() if v != getattr(plain, n)]
    return f"{format_.name} {', '.join(shown)}" if shown else format_.name


def _time(source: DataSource) -> str:
    found = source.timestamp
    if found is None:
        return "none"
    return found.name if found.pattern is None else f"{found.name} ({found.pattern})"


def _columns(old: DataSource, new: DataSource) -> list[str]:
    stems = []
    lost_keys = _lost(old.schema.key, new.schema.key)
    if old.schema.key != new.schema.key:
        shown = lost_keys or old.schema.key
        stems.append(
            "Key columns must be identical. The following key columns are changed, missing or "
            f"reordered: [{', '.join(map(str, shown))}]"
        )
    lost = _lost(
        tuple(c for c in old.schema.columns if c.role is not Role.KEY),
        tuple(c for c in new.schema.columns if c.role is not Role.KEY),
    )
    if lost:
        stems.append(
            "The following columns are changed, missing or reordered: "
            f"[{', '.join(map(str, lost))}]"
        )
    return stems


def _lost(old: tuple[Column, ...], new: tuple[Column, ...]) -> list[Column]:
    return [c for i, c in enumerate(old) if i >= len(new) or new[i] != c]
