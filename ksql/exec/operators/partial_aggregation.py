"""Combines records by group before the exchange, where only the batch's last change is seen.

The loop over a batch is generated with the steps of the aggregates inside. Every record of a query
passes here, so a call per record would show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ksql.core import QueryFailed, codegen, indent, tuple_of
from ksql.exec.operators.commit_intervals import CommitIntervals, IntervalStates
from ksql.exec.operators.folds import Slot, State, change, fresh, functions_of, size_of
from ksql.exec.operators.keyed_batches import KeyedBatch
from ksql.exec.operators.keys import pack

if TYPE_CHECKING:
    from ksql.core import Row
    from ksql.exec.operators.base import LogError

_SOURCE = """\
def combine(rows, times, sequence_keys, intervals, log):
    begin = end = 0
    states = intervals.states
    find = states.get
    lost = []
    for r, t, h in zip(rows, times, sequence_keys):
        if r is None:
            continue
{lines}
    log_failed(lost, log)
"""

Combine = tuple[Callable[..., None], Callable[[Any], bytes]]
"""The generated loop, and what makes the packed key of the one that the loop uses."""


def compile_combine(slots: Sequence[Slot], width: int, *, plain: bool) -> Combine:
    """Return the loop over rows that start with ``width`` key columns.

    ``plain`` keys can stand for themselves while the loop runs; others are packed at once.
    """
    cells = arguments(slots, width)
    lines = fold_lines(slots, group_key("r", width, plain=plain), cells)
    text = _SOURCE.format(lines="\n".join(indent(lines, 2)))
    scope = codegen.define("combined aggregates", text, names_of(slots))
    return scope["combine"], packed_key(width, plain=plain)


def fold_lines(slots: Sequence[Slot], key: str, cells: Sequence[str]) -> list[str]:
    """Return the statements of a loop that fold a record of the time ``t`` into its group's state.

    It has the sequence key ``h``. ``states`` are those of ``intervals``, ``find`` is their ``get``;
    ``begin`` and ``end`` are 0 before the first record. ``key`` is the code of its group, ``cells``
    are those of the aggregates' arguments. A failure of a function is put into ``lost``, for
    ``log_failed``; ``names_of`` are known to the loop.
    """
    lines, assigns = change("step", slots, cells)
    return [
        "if not begin <= h < end:",
        "    begin, end = intervals.turn(h)",
        f"g = {key}",
        "s = find(g)",
        "if s is None:",
        f"    s = states[g] = {fresh(slots, size_of(slots))}",
        "try:",
        *indent(lines or ["pass"]),
        "except QueryFailed:",
        "    raise",
        "except Exception as error:",
        f"    lost.append((error, {tuple_of(cells)}))",
        "    if s[0] < 0:",
        "        del states[g]",
        "    continue",
        *assigns,
        "if t > s[0]:",
        "    s[0] = t",
    ]


def arguments(slots: Sequence[Slot], width: int) -> list[str]:
    """Return the code of the aggregates' arguments in a row ``r``, after so many key columns."""
    count = 1 + max((arg for slot in slots for arg in slot.args), default=-1)
    return [f"r[{width + arg}]" for arg in range(count)]


def group_key(row: str, width: int, *, plain: bool) -> str:
    """Return the code of the group of a row that starts with its key columns."""
    if not plain:
        return f"pack({row}[:{width}])"
    return f"{row}[0]" if width == 1 else f"{row}[:{width}]"


def names_of(slots: Sequence[Slot]) -> dict[str, Any]:
    """Return what the statements of ``fold_lines`` name."""
    known = {"pack": pack, "QueryFailed": QueryFailed, "log_failed": log_failed}
    return {**functions_of(slots), **known}


def log_failed(failed: Sequence[tuple[Exception, Row]], log: LogError) -> None:
    """Log the failures of functions, each with its arguments."""
    for error, row in failed:
        log("aggregate", str(error) or type(error).__name__, row)


def packed_key(width: int, *, plain: bool) -> Callable[[Any], bytes]:
    """Return the function that packs a loop's keys; those that are not ``plain`` are packed."""
    if not plain:
        return bytes
    return _pack_one if width == 1 else pack


def _pack_one(value: Any) -> bytes:
    return pack((value,))


class Combiner:
    """The partial states of one task."""

    def __init__(self, combine: Combine, intervals: CommitIntervals) -> None:
        self._fold, self._packed = combine
        #: By group, in the form that the loop uses.
        self.states: IntervalStates[State] = IntervalStates(intervals)

    def add(
        self,
        rows: Sequence[Row | None],
        times: Sequence[int],
        sequence_keys: Sequence[int],
        log: LogError,
    ) -> None:
        """Take rows in: key columns, then the aggregates' arguments; None is no row."""
        self._fold(rows, times, sequence_keys, self.states, log)

    def finish(self) -> KeyedBatch:
        """Return one record per group and commit interval, with its partial state as row.

        Its sequence key is the begin of the interval.
        """
        intervals = self.states.finish()
        keys = {key for _, states in intervals for key, _ in states}
        packed = {key: self._packed(key) for key in keys}
        rows = [
            (packed[key], 0, s[0], begin, 0, *s) for begin, states in intervals for key, s in states
        ]
        return KeyedBatch.of_rows((0, 0, 0), 0, rows)
