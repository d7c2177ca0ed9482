"""Combines records by group and window before the exchange; late ones are decided after it.

The windows of a record depend on the pane that its time is in. A partition's records of one group
and pane are folded into one state, those of each commit interval apart. It represents them after
the exchange, in the place of the first of them. A window has closed when the clock of its lane has
reached its end and grace. That moment lies between two panes. So all times of a pane move the clock
equally far, and the state may bring its latest one. Take a record whose sequence key, the highest
time of its partition, is still before the moment at which its first window closes. No record before
it in this micro-batch closes one of its windows: they all have lower sequence keys. So it is late
only if the clock was there when the micro-batch began, as then are all records of its state. Any
other record leaves as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ksql.core import codegen, indent
from ksql.exec.operators.base import LateRecord, LogError, Record
from ksql.exec.operators.commit_intervals import CommitIntervals, IntervalStates
from ksql.exec.operators.folds import Slot, State, change, fresh, size_of
from ksql.exec.operators.keyed_batches import KeyedBatch, longs
from ksql.exec.operators.keys import unpack
from ksql.exec.operators.partial_aggregation import arguments, group_key, names_of, packed_key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from ksql.core import Row
    from ksql.exec.operators.windows import Windows

_SOURCE = """\
def fold(rows, times, offsets, sequence_keys, intervals, lost):
    low = high = begin = end = 0
    panes = intervals.states
    for i, r, t, h in zip(range(len(rows)), rows, times, sequence_keys):
        if r is None:
            continue
{lines}
"""

_ENOUGH: Final = 5_000
"""So many records of a partition show how many of them are alike."""


class PaneFold(NamedTuple):
    """The generated loop, what makes a packed key of its keys, and how long a state is."""

    windows: Windows
    fold: Callable[..., None]
    packed: Callable[[Any], bytes]
    size: int


def compile_panes(slots: Sequence[Slot], width: int, windows: Windows, *, plain: bool) -> PaneFold:
    """Return the loop over rows that start with ``width`` key columns.

    ``plain`` as in ``combine``.
    """
    key, cells = group_key("r", width, plain=plain), arguments(slots, width)
    lines = pane_lines(slots, windows, key, cells, "lost.append(i)")
    text = _SOURCE.format(lines="\n".join(indent(lines, 2)))
    scope = codegen.define("combined windows", text, names_of(slots))
    return PaneFold(windows, scope["fold"], packed_key(width, plain=plain), size_of(slots))


def pane_lines(
    slots: Sequence[Slot], windows: Windows, key: str, cells: Sequence[str], lose: str
) -> list[str]:
    """Return statements that fold the record ``i`` of the time ``t`` into its pane's state.

    It has the sequence key ``h``. ``panes`` are those of ``intervals``. ``key`` and ``cells`` as in
    ``partial_aggregation.fold_lines``. Where a function fails ``lose`` is done, and the record is
    not folded. ``low``, ``high``, ``begin`` and ``end`` are 0 before the first record.
    """
    size = size_of(slots)
    lines, assigns = change("step", slots, cells)
    return [
        "if not begin <= h < end:",
        "    begin, end = intervals.turn(h)",
        "    low = high = 0",
        "if not low <= t < high:",
        *indent(_bounds(windows)),
        "    states = panes.get(low)",
        "    if states is None:",
        "        states = panes[low] = {}",
        "    find = states.get",
        f"g = {key}",
        "s = find(g)",
        "if s is None:",
        f"    s = states[g] = [{fresh(slots, size)[1:-1]}, 0, offsets[i], h]",
        "try:",
        *indent(lines or ["pass"]),
        "except Exception:",
        f"    {lose}",
        f"    if not s[{size}]:",
        "        del states[g]",
        "    continue",
        *assigns,
        f"s[{size}] += 1",
        "if t > s[0]:",
        "    s[0] = t",
    ]


def _bounds(windows: Windows) -> list[str]:
    """Return the code of the bounds of a time's pane.

    Within it neither windows begin nor any close.
    """
    length = windows.pane_ms
    shift = windows.grace_ms % length
    lines = [f"low = t - t % {length}", f"high = low + {length}"]
    if shift:
        cut = [f"if t < low + {shift}:", f"    high = low + {shift}"]
        lines += [*cut, "else:", f"    low += {shift}"]
    return lines


class Panes:
    """The states of one partition's records, which come in their order."""

    def __init__(self, fold: PaneFold, intervals: CommitIntervals | None) -> None:
        self._fold = fold
        self._folded = 0
        #: By the beginning of the pane, then by group.
        self.states: IntervalStates[dict[Hashable, State]] = IntervalStates(intervals)

    def add(
        self,
        rows: list[Row | None],
        times: Sequence[int],
        offsets: Sequence[int],
        sequence_keys: Sequence[int],
    ) -> list[int]:
        """Fold the rows that may be folded; return the places of the others.

        None is no row; the rows that are not folded become None.
        """
        apart = self.undecided(times, sequence_keys)
        kept = [index for index in apart if rows[index] is not None]
        if kept:
            rows = list(rows)
            for index in kept:
                rows[index] = None
        failed: list[int] = []
        self._fold.fold(rows, times, offsets, sequence_keys, self.states, failed)
        return sorted([*kept, *failed]) if failed else kept

    def undecided(self, times: Sequence[int], sequence_keys: Sequence[int]) -> list[int]:
        """Return the places of records that one of this micro-batch may make late."""
        windows = self._fold.windows
        grace = windows.grace_ms
        if sequence_keys is times or sequence_keys[-1] - min(times) <= grace:
            return []
        closing = windows.first_closing
        return [
            index
            for index, (time, sequence_key) in enumerate(zip(times, sequence_keys, strict=True))
            if sequence_key - time > grace and sequence_key >= closing(time)
        ]

    def is_sparse(self, records: int) -> bool:
        """Return whether folding does not pay, now that so many more records were folded.

        Most of them have a state of their own then, which costs more than to leave them as they
        are. Where a record is in several windows folding pays all the same.
        """
        self._folded += records
        if not self._fold.windows.tumbling or self._folded < _ENOUGH:
            return False
        return 2 * sum(map(len, self.states.each())) > self._folded

    def finish(self, head: tuple[int, int, int]) -> KeyedBatch:
        """Return a record for each state, and forget them; ``head`` is that of ``KeyedBatch``.

        A state ends with the number of its records. The latest of these has the time, the first
        one the place among others.
        """
        packed, size = self._fold.packed, self._fold.size
        known: dict[Hashable, bytes] = {}
        keys: list[bytes] = []
        states: list[State] = []
        for some in (states for _, panes in self.states.finish() for _, states in panes):
            known |= {key: packed(key) for key in some.keys() - known.keys()}
            keys += [known[key] for key in some]
            states += some.values()
        times, offsets, sequence_keys = (
            longs([state[cell] for state in states]) for cell in (0, size + 1, size + 2)
        )
        partials = [tuple(state[: size + 1]) for state in states]
        places = times, sequence_keys, offsets
        folded = KeyedBatch(*head, 0, keys, *places, (), partials)
        if (offsets[1:] < offsets[:-1]).any():
            folded = folded.taken(np.argsort(offsets, kind="stable"))
        return folded


def log_late(
    record: Record, start: int, starts: Sequence[int], last: int, stream_time: int, log: LogError
) -> None:
    """Log that a record is late for windows: with the first of its own for all up to the last one.

    So the log entries of one record are together, and it counts once.
    """
    if start != starts[0]:
        return
    behind_ms = stream_time - record.timestamp
    late = [
        LateRecord.of(_LATE.format(pane_start), behind_ms, record.topic, record.partition)
        for pane_start in starts
        if pane_start <= last
    ]
    for row in logged_rows(record):
        for message in late:
            log("aggregate", message, row)


_LATE = "late record for the window starting at {}"


def logged_rows(record: Record) -> Iterable[Row]:
    """Yield the row to log for a record, or for each one that a state stands for: the group's key.

    A state has no arguments, and which records it stands for depends on the micro-batches. So no
    record shows its arguments. Each row is a tuple of its own.
    """
    count = 1 if record.old is None else record.old[-1]
    return (tuple(unpack(record.key)) for _ in range(count))
