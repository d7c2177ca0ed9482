"""GROUP BY in a pull query: rows to one row per group, in bounded memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.core.errors import QueryFailed
from ksql.exec.operators import keys
from ksql.exec.operators.bounded import estimate
from ksql.exec.operators.folds import Folds, Slot, State, compile_folds
from ksql.functions.instantiate import instantiate_aggregate
from ksql.sql.binder.bound import type_of
from ksql.views.table_scan import CHUNK_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.core.records import Row
    from ksql.functions.registry import Functions
    from ksql.serving.ordering import ByteBudget
    from ksql.sql.binder.grouping import AggregateCall
    from ksql.views.table_scan import Chunks

_GROUP_BYTES = 400


@dataclass(frozen=True, slots=True)
class Groups:
    """The aggregates over rows of ``width`` grouping values, their arguments and the row's time.

    The rows that it gives are the grouping values, the aggregates' results, the latest time.
    """

    width: int
    folds: Folds

    @classmethod
    def of(
        cls,
        width: int,
        calls: Sequence[AggregateCall],
        functions: Functions,
        settings: Mapping[str, str],
    ) -> Groups:
        """Return the groups for these aggregates, whose arguments have their order."""
        slots, column = [], width
        for number, call in enumerate(calls):
            function = instantiate_aggregate(
                functions.get(call.function),
                call.overload,
                [type_of(arg) for arg in call.args],
                call.literals,
                settings,
            )
            slots.append(Slot(number, function, tuple(range(column, column + len(call.args)))))
            column += len(call.args)
        return cls(width, compile_folds(slots))

    def rows(self, chunks: Chunks, room: ByteBudget) -> Iterator[list[Row]]:
        """Yield the groups' rows; while rows are still read the chunks are empty.

        As in every GROUP BY of the language a row with NULL in its grouping values is in no group.
        Without any there is one group, even of no rows.
        """
        states: dict[bytes, tuple[Row, State]] = {}
        sizes: dict[bytes, int] = {}
        if not self.width:
            states[keys.pack(())] = (), self.folds.init()
        for chunk in chunks:
            for key in self._fold(chunk, states):
                size = _GROUP_BYTES + len(key) + estimate(states[key][1])
                room.take(size - sizes.get(key, 0))
                sizes[key] = size
            yield []
        result = self.folds.result
        rows = ((*key, *result(state), state[0]) for key, state in states.values())
        while page := list(itertools.islice(rows, CHUNK_ROWS)):
            yield page

    def _fold(self, chunk: Sequence[Row], states: dict[bytes, tuple[Row, State]]) -> set[bytes]:
        """Fold the rows into their groups; return the groups that changed."""
        changed: set[bytes] = set()
        width, folds = self.width, self.folds
        for row in chunk:
            values = row[:width]
            if None in values:
                continue
            key = keys.pack(values)
            known = states.get(key)
            state = folds.init() if known is None else known[1]
            if not _stepped(folds, state, row):
                continue
            if known is None:
                states[key] = values, state
            if row[-1] > state[0]:
                state[0] = row[-1]
            changed.add(key)
        return changed


def _stepped(folds: Folds, state: Any, row: Row) -> bool:
    """Return whether the row counts: one on which a function fails does not, as in every query."""
    try:
        folds.step(state, row)
    except QueryFailed:
        raise
    except Exception:  # noqa: BLE001 - a function's failure; pull queries have no processing log
        return False
    return True
