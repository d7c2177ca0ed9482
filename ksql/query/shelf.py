"""The copies that this server holds, as queries of any server read them.

Source: KIP-535.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ksql.base.errors import KsqlError
from ksql.query.storedtable import CHUNK_ROWS
from ksql.query.storeroom import home_of
from ksql.replicas.copies import Copy, Reading, Turned, Unreachable
from ksql.replicas.standing import MISSING, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.query.filling import Filled, Place
    from ksql.query.materialize import Materializer
    from ksql.replicas.asking import Ask
    from ksql.replicas.gauge import Gauge
    from ksql.replicas.placement import Role

T = TypeVar("T")
_FRESH_S: Final = 0.25
_OLD_S: Final = 1.0


class Roles(Protocol):
    """The roles of this server."""

    def role(self, topic: str, partition: int) -> Role:
        """Return it."""


class Shelf(Copy):
    """The stores of one server; for any number of threads."""

    def __init__(self, tables: Materializer, roles: Roles, gauge: Gauge) -> None:
        self._tables = tables
        self._roles = roles
        self._gauge = gauge

    def read(self, ask: Ask) -> Reading:
        """Begin a read of a store.

        Raises: Turned, Unreachable.
        """
        try:
            part = self._part(ask.home, ask.partition)
            standing = self._standing_for(part, ask)
            if part is None or not ask.terms.accept(standing):
                raise Turned(standing)
            return self._reading(part, ask)
        except KsqlError as error:
            raise Unreachable(error.text()) from error

    def _reading(self, part: Filled, ask: Ask) -> Reading:
        """Begin to read a store; the position that is shown is that of the rows that are read.

        Raises: Turned, KsqlError.
        """
        rows = part.store.committed() if ask.committed else part.store
        seen = partial(part.seen, committed=ask.committed)
        if ask.keys is None:
            stored, position, shown = part.read(
                lambda: rows.range(*ask.span), committed=ask.committed
            )
            chunks = iter(lambda: list(itertools.islice(stored, CHUNK_ROWS)), [])
            standing = self._accepted(part, ask, position, shown=shown)
            return Reading(standing, rows=_reported(chunks), seen=seen, hidden=rows.hidden)
        keys = ask.keys
        answers, position, shown = part.read(
            lambda: [
                rows.get_many(keys[at : at + CHUNK_ROWS]) for at in range(0, len(keys), CHUNK_ROWS)
            ],
            committed=ask.committed,
        )
        standing = self._accepted(part, ask, position, shown=shown)
        return Reading(standing, answers=iter(answers), seen=seen, hidden=rows.hidden)

    def _accepted(self, part: Filled, ask: Ask, position: int, *, shown: bool) -> Standing:
        """Return how far a copy was at that position, if it may answer.

        Raises: Turned.
        """
        standing = self._standing(part, position)
        if not shown:
            raise Turned(replace(standing, state="RESTORING"))
        if not ask.terms.accept(standing):
            raise Turned(standing)
        return standing

    def standings(self) -> dict[tuple[str, int], Standing]:
        """Return how far every copy is, by query and partition, as far as its topic was seen."""
        return {
            (home_of(table.source), number): self._standing(part, part.at())
            for table in self._tables.tables()
            for number, part in sorted(table.parts.items())
        }

    def look(self) -> None:
        """Ask how far the topics of all copies are.

        Raises: KsqlError.
        """
        topics = {table.source.topic for table in self._tables.tables() if table.parts}
        self._gauge.keep(topics)
        if topics:
            self._gauge.look(topics)

    def measured(self, partition: Place, standing: Standing) -> Standing:
        """Return how far a copy is behind by a look of this moment.

        Raises: KsqlError.
        """
        self._gauge.freshen(*partition, _FRESH_S)
        offsets, time_ms = self._gauge.lag(partition, standing.position)
        return replace(standing, offset_lag=offsets, time_lag_ms=time_ms)

    def _part(self, home: str, partition: int) -> Filled | None:
        table = self._tables.of_home(home)
        return None if table is None else table.parts.get(partition)

    def _standing_for(self, part: Filled | None, ask: Ask) -> Standing:
        """Return how far a copy is; looked at anew if it stands under a limit."""
        if part is None:
            return MISSING
        if not ask.terms.limited:
            return self._standing(part, part.at(committed=ask.committed))
        self._gauge.freshen(*part.place, _OLD_S)
        standing = self._standing(part, part.at(committed=ask.committed))
        if not ask.terms.accept(standing):
            self._gauge.freshen(*part.place, _FRESH_S)
            standing = self._standing(part, part.at(committed=ask.committed))
        return standing

    def _standing(self, part: Filled, position: int) -> Standing:
        offsets, time_ms = self._gauge.lag(part.place, position)
        runs = 0 <= part.goal <= position and not self._tables.waits
        return Standing(
            state="RUNNING" if runs else "RESTORING",
            role=self._roles.role(*part.place),
            position=position,
            offset_lag=offsets,
            time_lag_ms=time_ms,
        )


def _reported(chunks: Iterator[T]) -> Iterator[T]:
    """Yield chunks; a store that fails or is closed meanwhile is as good as out of reach."""
    try:
        yield from chunks
    except KsqlError as error:
        raise Unreachable(error.text()) from error
