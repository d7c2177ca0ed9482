"""One copy of a partition as its readers see it, here or on another server.

Source: KIP-535.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ksql.replicas.standing import Standing
from ksql.stores.base import Hidden, Stored, StoredRow

if TYPE_CHECKING:
    from ksql.replicas.asking import Ask


class Turned(Exception):
    """The copy may not answer on these terms."""

    def __init__(self, standing: Standing) -> None:
        super().__init__(standing.text())
        self.standing = standing


class Unreachable(Exception):
    """The copy's server did not answer, or not to the end."""


def _unknown() -> None:
    return None


@dataclass(slots=True)
class Reading:
    """How far the copy is, and its answer as it comes: what of both ``Ask`` asked for.

    Iterating raises Unreachable if the server does not answer to the end; ``close`` ends it early.
    Once it has come to its end, ``seen`` returns an offset behind all that was in it, and
    ``hidden`` which windows a retention has hidden from it; before that both may return None.
    """

    standing: Standing
    answers: Iterator[list[Stored | None]] | None = None
    rows: Iterator[list[StoredRow]] | None = None
    seen: Callable[[], int | None] = _unknown
    hidden: Callable[[], Hidden | None] = _unknown


class Copy(Protocol):
    """The copies that one server holds."""

    def read(self, ask: Ask) -> Reading:
        """Begin a read.

        Raises: Turned, Unreachable.
        """
