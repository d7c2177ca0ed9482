"""The plan that a replacement expects to run: it is refused if another one does by then.

A user who edits a statement has read it some time before. Two users who replace the same query
could otherwise undo each other's work without a word.
Source: docs/upgrades.md#two-who-replace-the-same-query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import REPLACED_MEANWHILE, canonical

if TYPE_CHECKING:
    from ksql.core import Settings
    from ksql.sql.catalog import PersistentQuery

EXPECTED: Final = "ksql.upgrade.expected.offset"
_ANY: Final = -1


def check_expected(running: PersistentQuery | None, name: str, settings: Settings) -> None:
    """Refuse to replace another plan than the expected one; ``name`` is that of the result.

    Raises: REPLACED_MEANWHILE.
    """
    expected = settings.number(EXPECTED)
    if expected == _ANY or (running is not None and running.offset == expected):
        return
    now = "No query writes it now" if running is None else f"That of offset {running.offset} runs"
    query = name if running is None else running.id
    raise REPLACED_MEANWHILE(query=query, expected=expected, now=now)


def stated_properties(settings: Settings) -> dict[str, str]:
    """Return the properties that a query keeps as its own: this one is of its request alone."""
    return {name: text for name, text in settings.overrides.items() if canonical(name) != EXPECTED}
