"""NONE: nothing is read and nothing written; for streams without keys.

Source: docs/formats.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.formats.serde import Serde

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.formats.serde import DecodeError, Row, Skip


def _nothing(_data: bytes | None) -> Row:
    return ()


def _no_bytes(_row: Row | None) -> None:
    return None


def _nothings(
    items: Sequence[bytes | None], _failed: Callable[[int, DecodeError], None]
) -> list[Row | Skip | None]:
    return [()] * len(items)


def _no_byteses(rows: Sequence[Row | None]) -> list[bytes | None]:
    return [None] * len(rows)


def serde() -> Serde:
    """The serde of no columns: whatever the bytes are, the row is empty."""
    return Serde(_nothing, _no_bytes, _nothings, _no_byteses)
