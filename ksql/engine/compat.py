"""May a source take another's place? The metastore's check.

Source: reference, upgrades, section 2.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from ksql.types.format import Format
from ksql.types.schema import Column, Role

if TYPE_CHECKING:
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


def _storage(source: DataSource) -> tuple[object, ...]:
    return (source.topic, source.key_format, source.value_format, source.window)


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
