"""One copy of a partition as its readers see it, here or on another server.

Source: KIP-535.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.views.stores.base import Hidden, Stored, StoredRow

if TYPE_CHECKING:
    from ksql.cluster.replicas.read_request import ReadRequest


class ReadRejected(Exception):
    """The copy may not answer on these terms."""

    def __init__(self, standing: ReplicaStatus) -> None:
        super().__init__(standing.text())
        self.standing = standing


class Unreachable(Exception):
    """The copy's server did not answer, or not to the end."""


def _unknown() -> None:
    return None


@dataclass(slots=True)
class ReadResult:
    """How far the copy is, and its answer as it comes: what of both ``ReadRequest`` asked for.

    Iterating raises Unreachable if the server does not answer to the end; ``close`` ends it early.
    Once it has come to its end, ``seen`` returns an offset after all that was in it. ``hidden``
    returns which windows a retention has hidden from it. Before that both may return None.
    """

    standing: ReplicaStatus
    answers: Iterator[list[Stored | None]] | None = None
    rows: Iterator[list[StoredRow]] | None = None
    seen: Callable[[], int | None] = _unknown
    hidden: Callable[[], Hidden | None] = _unknown


class ReplicaReader(Protocol):
    """The copies that one server holds."""

    def read(self, ask: ReadRequest) -> ReadResult:
        """Begin a read.

        Raises: Turned, Unreachable.
        """
