"""Folding before the exchange, where only the last change per batch will be seen anyway.

The loop over a batch is generated with the steps of the aggregates inside: here every record of a
query passes, so a call per record would show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ksql.base import codegen
from ksql.base.errors import QueryFailed
from ksql.processors.base import LogError, Record
from ksql.processors.folds import Slot, State, change, fresh, functions_of, size_of
from ksql.processors.keys import pack

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ksql.base.records import Row

_SOURCE = """\
def combine(rows, times, states, log):
    find = states.get
    for r, t in zip(rows, times):
        if r is None:
            continue
        k = {key}
        s = find(k)
        if s is None:
            s = states[k] = {fresh}
        try:
{lines}
        except QueryFailed:
            raise
        except Exception as error:
            log("aggregate", str(error) or type(error).__name__, r[{width}:])
            if s[0] < 0:
                del states[k]
            continue
{assigns}
        if t > s[0]:
            s[0] = t
"""

Combine = tuple[Callable[..., None], Callable[[Any], bytes]]
"""The generated loop, and what makes the packed key of the one that the loop uses."""


def compile_combine(slots: Sequence[Slot], width: int, *, plain: bool) -> Combine:
    """The loop over rows that start with ``width`` key columns.

    ``plain`` keys can stand for themselves while the loop runs; others are packed at once.
    """
    columns = "r[0]" if width == 1 else f"r[:{width}]"
    lines, assigns = change("step", slots, width)
    source = _SOURCE.format(
        key=columns if plain else f"pack(r[:{width}])",
        fresh=fresh(slots, size_of(slots)),
        lines="\n".join(f"            {line}" for line in lines or ["pass"]),
        assigns="\n".join(f"        {line}" for line in assigns),
        width=width,
    )
    scope = {**functions_of(slots), "pack": pack, "QueryFailed": QueryFailed}
    codegen.define("combined aggregates", source, scope)
    if not plain:
        return scope["combine"], bytes
    return scope["combine"], (_pack_one if width == 1 else pack)


def _pack_one(value: Any) -> bytes:
    return pack((value,))


class Combiner:
    """The partial states of one task."""

    def __init__(self, combine: Combine) -> None:
        self._fold, self._packed = combine
        self._states: dict[Hashable, State] = {}

    def add(self, rows: Sequence[Row | None], times: Sequence[int], log: LogError) -> None:
        """Take rows in: key columns, then the aggregates' arguments; None is no row."""
        self._fold(rows, times, self._states, log)

    def finish(self) -> list[Record]:
        """One record per group, with its partial state as row."""
        packed = self._packed
        return [Record(0, packed(key), tuple(s), s[0]) for key, s in self._states.items()]
