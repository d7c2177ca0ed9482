"""A table's stores for pull queries, how far they are, and why a table cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ksql.core import KsqlError, StatementError
from ksql.sql.catalog import DataSource
from ksql.views.store_config import StoreConfig
from ksql.views.store_writer import PartitionStore
from ksql.views.stores.base import Rows, Store, StoreClosed, StoreSize

if TYPE_CHECKING:
    from ksql.core import PartitionId
    from ksql.kafka import Identity


MORE = "See https://cnfl.io/queries for more info."
PUSH_HINT = "Add EMIT CHANGES if you intended to issue a push query."


class NotQueryable(StatementError):
    """A table that no query keeps."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The `{name}` table isn't queryable. To derive a queryable table, "  # noqa: S608 - a hint
            f"you can do 'CREATE TABLE QUERYABLE_{name} AS SELECT * FROM {name}'. {MORE}",
            hint=PUSH_HINT,
        )


class TableNotReady(KsqlError):
    """The stores of a table do not hold all of it yet.

    ``is_ready`` says, without waiting, whether they do by now; ``patience_s`` is how long it may
    be worth asking.
    """

    code = 50302

    def __init__(
        self,
        name: str,
        missing: int = 0,
        reason: str = "",
        is_ready: Callable[[], bool] = lambda: False,
        patience_s: float = 0.0,
    ) -> None:
        lag = f"{missing} records of its topic are still to be read" if missing else ""
        super().__init__(
            f"The table {name} is not ready for pull queries yet",
            detail=reason or lag,
            hint="Try again in a moment: an answer now would lack rows.",
        )
        self.is_ready = is_ready
        self.patience_s = patience_s


_MOVING_S = 10.0


class TableMoves(TableNotReady):
    """The stores of a table are being replaced by new ones, which have its rows at once."""

    def __init__(self, closed: StoreClosed) -> None:
        super().__init__("", is_ready=lambda: True, patience_s=_MOVING_S)
        self.message, self.detail, self.hint = closed.message, "", closed.hint


@dataclass(frozen=True)
class MaterializedView:
    """A table's stores, one per partition of its topic that is kept here.

    ``partitions``: how many its topic has; if 0, all are here. ``topic_id``: Kafka's id of it.
    """

    source: DataSource
    config: StoreConfig
    parts: Mapping[int, PartitionStore]
    partitions: int = 0
    topic_id: str = ""

    @property
    def count(self) -> int:
        """How many partitions the topic has."""
        return self.partitions or len(self.parts)

    @property
    def stores(self) -> Mapping[int, Store]:
        return {partition: part.store for partition, part in self.parts.items()}

    def rows(self, *, committed: bool = False) -> Mapping[int, Rows]:
        """Return the rows by partition, on request only those that are committed."""
        return {
            partition: part.store.committed() if committed else part.store
            for partition, part in self.parts.items()
        }

    @property
    def uncommitted_bytes(self) -> int:
        """How many bytes its stores hold that they have not committed, about."""
        return sum(part.store.uncommitted_bytes for part in self.parts.values())

    def size(self) -> StoreSize:
        """Return about how large its stores here are.

        Raises: KsqlError for a store that is being closed.
        """
        sizes = [part.store.size() for part in self.parts.values()]
        return StoreSize(sum(size.rows for size in sizes), sum(size.bytes for size in sizes))

    def is_of(self, topic: Identity | None) -> bool:
        """Return whether its topic is the one that the stores follow, as far as is known."""
        if topic is None:  # a broker that has just come up may not know it yet
            return True
        return topic.id in ("", self.topic_id) and topic.partitions in (0, self.count)

    def missing(
        self, ends: Mapping[PartitionId, int] | None = None, *, committed: bool = False
    ) -> int:
        """Return how many offsets are still to be read, up to these or up to its stores' goals."""
        return sum(
            max(0, _goal(part, ends) - part.at(committed=committed)) for part in self.parts.values()
        )

    def shows(self, *, committed: bool = False) -> bool:
        """Return whether its stores may be read; of what is committed, whole transactions only."""
        return all(part.shows(committed=committed) for part in self.parts.values())

    def behind(self, at_least: Mapping[PartitionId, int], *, committed: bool = False) -> str:
        """Return which of its stores has not reached these offsets, in words; empty if all have."""
        for part in self.parts.values():
            at, offset = part.at(committed=committed), at_least.get(part.place, 0)
            if at < offset:
                topic, partition = part.place
                return (
                    f"the store of {self.source.name} has followed partition {partition} of "
                    f"{topic} up to the offset {at}; {offset} is asked for"
                )
        return ""


def _goal(part: PartitionStore, ends: Mapping[PartitionId, int] | None) -> int:
    return part.goal if ends is None else ends.get(part.place, 0)


Places = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


class EndOffsets(Protocol):
    """Where topics end."""

    def end_offsets(self, topics: Iterable[str]) -> Places:
        """Return the offset after the last record of each partition."""


class TopicExtents(EndOffsets, Protocol):
    """Which topics there are, where they begin and end."""

    def topics(self) -> Collection[str]:
        """Return the names of all topics."""

    def begin_offsets(self, topics: Iterable[str]) -> Places:
        """Return the offset of the first record of each partition."""

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Places:
        """Return the offset of the first record at or after that time; the end without one."""
