"""The hosts of dataflows and their topics: Spark and Kafka in the service, memory in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ksql.base.ids import QueryId
    from ksql.catalog.model import PersistentQuery
    from ksql.catalog.topic import Topic


class Topics(Protocol):
    """Kafka's topics."""

    def describe(self, name: str) -> Topic | None:
        """Return the topic, or None."""

    def identity(self, name: str) -> str:
        """Return the mark that a later topic of that name does not have; empty if there is none."""

    def create(self, topic: Topic) -> bool:
        """Create it; False: it existed already, which is fine."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete them; unknown ones are fine."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Where an old plan ended and the new one began; offsets are per topic and partition."""

    batch: int
    offsets: Mapping[str, Mapping[int, int]]
    gap_ms: int


class Runner(Protocol):
    """Runs persistent queries.

    Every method blocks until it is done. They are called by one thread at a time, but for
    ``replace``, ``take_back`` and ``await_tried``, during which others may be called, and ``stop``
    and ``stop_soon`` of the same query end what they do.
    """

    def start(self, query: PersistentQuery) -> None:
        """Start a query that is new; what an earlier one of its id has left does not count.

        Raises: KsqlError if it cannot be started; nothing runs then.
        """

    def go_on(self, queries: Iterable[PersistentQuery]) -> None:
        """Let queries continue from their checkpoints; those that cannot start are tried again.

        A query that runs already is left alone; one that rests after a failure is tried at once.
        A checkpoint that is missing is an error of its query, and no new beginning.
        """

    def go_on_soon(self, queries: Iterable[PersistentQuery]) -> None:
        """Begin with that, without waiting for it."""

    def await_tried(self, query_ids: Iterable[QueryId]) -> None:
        """Wait some seconds, at most until each of them was tried once."""

    def stop(self, query_id: QueryId) -> None:
        """Stop at a batch boundary; the checkpoint stays. Unknown queries are fine."""

    def stop_soon(self, query_ids: Iterable[QueryId]) -> None:
        """Stop all of them within seconds; ``go_on`` repeats a batch that takes longer."""

    def forget(self, query_id: QueryId) -> None:
        """Delete what a terminated query left: checkpoint and state."""

    def replace(self, old: PersistentQuery, new: PersistentQuery) -> Switch:
        """Stop the old plan and start the new one on its checkpoint.

        Raises: KsqlError; the old plan continues then, or is tried again until it does.
        """

    def check_replaceable(self, paused: PersistentQuery) -> None:
        """Check that a query that rests may get another plan.

        Raises: KsqlError if it left a batch half done, which another plan must not finish.
        """

    def take_back(self, new: PersistentQuery, old: PersistentQuery) -> None:
        """Undo a switch that does not count: the old plan continues, or is tried until it does."""
