"""The aggregates of one GROUP BY as generated functions over the group's state.

The state of a group is a list: its timestamp, then one cell per slot. An upgrade appends slots. An
upgrade that failed leaves its cells behind, and the next one gets the same numbers. So every slot
that an upgrade added has a generation. A state with such a slot is stored after its mark: the
generations of its cells. A cell is read only by the slot and generation that wrote it. Other slots
start empty, and the cells of a failed upgrade go at the next write. States without a mark hold
nothing but cells of generation 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ksql.core import QueryFailed, Row, codegen
from ksql.exec.operators.base import LogError, Record
from ksql.functions import AggregateFunction, InPlace, copied

State = list[Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """One aggregate: where its state lies and which columns of the row are its arguments."""

    number: int
    function: AggregateFunction
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Folds:
    """The operations on a group's state.

    ``step(state, row)`` and ``undo(state, row)`` change the state for one row, ``swap(state, old,
    row)`` for a row that replaces another one. If one of the functions fails no slot is changed.
    ``merge(state, other)`` adds a later state. ``result(state)`` gives the values in the order of
    the slots' declaration; if it fails there is no row, but the state counts. ``undo``, ``swap``
    and ``merge`` are None where a function has none. ``complete(stored)`` makes a state of what was
    stored; ``generation_mark`` goes before a state that is stored, if there is one. ``probe(row)``
    fails for a row that can never have counted; None if every row counts. ``undo_apart`` takes a
    row back wherever that does not fail, and logs where.
    """

    init: Callable[[], State]
    complete: Callable[[State], State]
    step: Callable[[State, Row], None]
    undo: Callable[[State, Row], None] | None
    swap: Callable[[State, Row, Row], None] | None
    merge: Callable[[State, Sequence[Any]], None] | None
    result: Callable[[Sequence[Any]], Row]
    generation_mark: bytes | None = None
    probe: Callable[[Row], None] | None = None
    undo_apart: Callable[[State, Row, LogError], None] | None = None


def compile_folds(slots: Sequence[Slot], generations: Sequence[int] = ()) -> Folds:
    """Generate the functions for these aggregates.

    ``generations`` are those of all slots, of the ones that no aggregate has any more too.
    """
    scope = functions_of(slots)
    size = max(size_of(slots), 1 + len(generations))
    generation_mark = _mark(generations, size)
    scope["mark"] = generation_mark
    parts = [
        _init(slots, size),
        _MARKED.format(size=1 + size) if generation_mark else _UNMARKED.format(size=size),
        _change("step", slots),
        _result(slots),
    ]
    undoable = all(slot.function.undo for slot in slots)
    mergeable = all(slot.function.merge for slot in slots)
    if undoable:
        parts += [_change("undo", slots), _swap(slots), *_probe(slots)]
    if mergeable:
        parts.append(_merge(slots))
    codegen.define("aggregates", "\n".join(parts), scope)
    scope["adopted"] = _adopter(scope["init"], generation_mark, size)
    return Folds(
        init=scope["init"],
        complete=scope["complete"],
        step=scope["step"],
        undo=scope.get("undo"),
        swap=scope.get("swap"),
        merge=scope.get("merge"),
        result=scope["result"],
        generation_mark=generation_mark,
        probe=scope.get("probe"),
        undo_apart=_undo_apart(slots) if undoable else None,
    )


def stepped(
    folds: Folds, record: Record, state: State, log: LogError, others: Sequence[State] = ()
) -> bool:
    """Fold other states and a stream's record into a state.

    If a function fails, log it: then the record does not count. A state without others is as it
    was.
    """
    row = record.row
    if row is None:
        return False
    try:
        for other in others:
            assert folds.merge is not None  # noqa: S101 - all that may be merged can merge
            folds.merge(state, other)
        folds.step(state, row)
    except Exception as error:  # noqa: BLE001 - any failure of a function skips the record
        log_failure(error, log, row)
        return False
    if record.timestamp > state[0]:
        state[0] = record.timestamp
    return True


def replaced(folds: Folds, state: State, old: Row, row: Row | None, log: LogError) -> bool:
    """Take a row of a table back and fold the one that follows it, if any.

    A row that never counted is not taken back. Each half that fails is logged, and the other one is
    done: otherwise the next change would take back what was never added. Where an aggregate cannot
    take a row back, the others do. Returns whether the state has changed.
    """
    probe, undo, swap = folds.probe, folds.undo, folds.swap
    assert undo is not None  # noqa: S101 - aggregates of tables have it
    assert swap is not None  # noqa: S101 - aggregates of tables have it
    counted = probe is None or _tried(probe, (old,), logged_before)
    if counted and row is not None and _tried(swap, (state, old, row), logged_before):
        return True
    if counted and not _tried(undo, (state, old), logged_before):
        assert folds.undo_apart is not None  # noqa: S101 - it is there if ``undo`` is
        folds.undo_apart(state, old, log)
    return (row is not None and _tried(folds.step, (state, row), log)) or counted


def _tried(change: Callable[..., None], given: tuple[Any, ...], log: LogError) -> bool:
    """Return whether it was possible; log, with its row, which is the last of them, if not."""
    try:
        change(*given)
    except Exception as error:  # noqa: BLE001 - any failure of a function leaves the row out
        log_failure(error, log, given[-1])
        return False
    return True


def log_failure(error: Exception, log: LogError, row: Row | None) -> None:
    """Log that a function failed for a row, which is left out then.

    Raises: the error, if it is one that ends its query.
    """
    if isinstance(error, QueryFailed):
        raise error
    log("aggregate", str(error) or type(error).__name__, row)


def logged_before(_operator: str, _message: str, _row: Row | None) -> None:
    """Leave out a failure that was logged when the state became the one that it is."""


def functions_of(slots: Sequence[Slot]) -> dict[str, Any]:
    """Return the functions that generated code calls, by their names."""
    scope: dict[str, Any] = {"copied": copied}
    for i, slot in enumerate(slots):
        f = slot.function
        scope |= {f"init{i}": f.init, f"step{i}": f.step, f"undo{i}": f.undo}
        scope |= {f"merge{i}": f.merge, f"result{i}": f.result}
    return scope


def size_of(slots: Sequence[Slot]) -> int:
    """Return how long the state of a group is."""
    return 1 + max((slot.number for slot in slots), default=-1) + 1


def fresh(slots: Sequence[Slot], size: int) -> str:
    """Return the code of an empty state."""
    cells = ["-1"] + ["None"] * (size - 1)
    for i, slot in enumerate(slots):
        plain = _LITERALS.get(slot.function.init)
        cells[1 + slot.number] = plain or f"init{i}()"
    return f"[{', '.join(cells)}]"


_LITERALS: dict[Any, str] = {int: "0", float: "0.0", list: "[]", dict: "{}"}


def _init(slots: Sequence[Slot], size: int) -> str:
    return f"def init():\n    return {fresh(slots, size)}"


_UNMARKED = """\
def complete(s):
    if len(s) == {size} and s[0].__class__ is not bytes:
        return s
    return adopted(s)
"""
_MARKED = """\
def complete(s):
    if s[0] == mark and len(s) == {size}:
        return s[1:]
    return adopted(s)
"""
_GENERATION = struct.Struct(">I")


def _mark(generations: Sequence[int], size: int) -> bytes | None:
    """Return the generations of the cells; None if no upgrade has added any."""
    if not any(generations):
        return None
    padded = (*generations, *(0,) * (size - 1 - len(generations)))
    return b"".join(map(_GENERATION.pack, padded))


def _adopter(
    init: Callable[[], State], generation_mark: bytes | None, size: int
) -> Callable[[Sequence[Any]], State]:
    """Return the function that makes a state of one that another plan has stored."""
    mine = _generations(generation_mark)

    def adopted(stored: Sequence[Any]) -> State:
        marked = isinstance(stored[0], bytes)
        theirs = _generations(stored[0] if marked else None)
        time, *cells = stored[1:] if marked else stored
        state = init()
        state[0] = time
        for number, cell in enumerate(cells[: size - 1]):
            if theirs.get(number, 0) == mine.get(number, 0):
                state[1 + number] = cell
        return state

    return adopted


def _generations(generation_mark: bytes | None) -> dict[int, int]:
    return {
        n: generation
        for n, (generation,) in enumerate(_GENERATION.iter_unpack(generation_mark or b""))
    }


def _change(name: InPlace, slots: Sequence[Slot]) -> str:
    lines, assigns = change(name, slots)
    body = [f"    {line}" for line in (*lines, *assigns)]
    return "\n".join([f"def {name}(s, r):", *body, "    return None"])


def change(
    name: InPlace, slots: Sequence[Slot], cells: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """Return lines that compute the slots' new values from row ``r``, and lines that set ``s``.

    ``cells`` are the code of the row's columns, where there is no row. Nothing that may fail comes
    after a change in place. Of several changes in place that may fail, all but the last are made in
    copies.
    """
    lines, assigns = [], []
    pure, unsure, sure = _by_risk(slots, (name,))
    for i, slot in (*pure, *unsure, *sure):
        cell = _cell(slot)
        given = f"copied({cell})" if (i, slot) in unsure[:-1] else cell
        lines += _loaded("a", i, slot, "r", cells)
        lines.append(f"n{i} = {_called(name, i, slot, given, 'a')}")
        assigns.append(f"{cell} = n{i}")
    return lines, assigns


def _swap(slots: Sequence[Slot]) -> str:
    """Return the function that takes one row back and adds another one.

    What may fail comes first and changes nothing in place.
    """
    lines, assigns = [], []
    pure, unsure, sure = _by_risk(slots, ("step", "undo"))
    early = [slot for slot in sure if "undo" not in slot[1].function.in_place]
    late = [slot for slot in sure if slot not in early]
    for i, slot in enumerate(slots):
        lines += [*_loaded("b", i, slot, "o"), *_loaded("a", i, slot, "r")]
        assigns.append(f"{_cell(slot)} = n{i}")
    lines += [f"n{i} = copied({_cell(slot)})" for i, slot in unsure]
    lines += [f"n{i} = {_cell(slot)}" for i, slot in (*pure, *sure)]
    order = [("undo", (*pure, *early, *unsure)), ("step", (*pure, *unsure))]
    for name, some in (*order, ("undo", late), ("step", sure)):
        letter = "b" if name == "undo" else "a"
        lines += [f"n{i} = {_called(name, i, slot, f'n{i}', letter)}" for i, slot in some]
    body = [f"    {line}" for line in (*lines, *assigns)]
    return "\n".join(["def swap(s, o, r):", *body, "    return None"])


def _probe(slots: Sequence[Slot]) -> list[str]:
    """Return the function that folds a row into empty states, where that may fail."""
    lines: list[str] = []
    for i, slot in enumerate(slots):
        if slot.function.raises:
            lines += [*_loaded("a", i, slot, "r"), _called("step", i, slot, f"init{i}()", "a")]
    body = [f"    {line}" for line in lines]
    return ["\n".join(["def probe(r):", *body])] if body else []


def _undo_apart(slots: Sequence[Slot]) -> Callable[[State, Row, LogError], None]:
    def undo_apart(state: State, row: Row, log: LogError) -> None:
        for slot in slots:
            function, values = slot.function, [row[arg] for arg in slot.args]
            assert function.undo is not None  # noqa: S101 - all of them have it
            if function.skips_null and any(value is None for value in values):
                continue
            cell = 1 + slot.number
            try:
                state[cell] = function.undo(copied(state[cell]), *values)
            except Exception as error:  # noqa: BLE001 - what cannot be taken back stays
                log_failure(error, log, row)

    return undo_apart


_Numbered = list[tuple[int, Slot]]


def _by_risk(
    slots: Sequence[Slot], names: Sequence[InPlace]
) -> tuple[_Numbered, _Numbered, _Numbered]:
    """Return slots that change nothing in place, those that do and may fail, the others."""
    groups: tuple[_Numbered, _Numbered, _Numbered] = ([], [], [])
    for i, slot in enumerate(slots):
        function = slot.function
        in_place = any(name in function.in_place for name in names)
        groups[in_place + (in_place and function.sure)].append((i, slot))
    return groups


def _cell(slot: Slot) -> str:
    return f"s[{1 + slot.number}]"


def _loaded(
    letter: str, i: int, slot: Slot, row: str, cells: Sequence[str] | None = None
) -> list[str]:
    codes = [f"{row}[{arg}]" if cells is None else cells[arg] for arg in slot.args]
    return [f"{letter}{i}_{j} = {code}" for j, code in enumerate(codes)]


def _called(name: str, i: int, slot: Slot, state: str, letter: str) -> str:
    """Return the new state of a slot; a row that does not reach its function leaves it as it is."""
    code = slot.function.step_code if name == "step" else None
    names = [f"{letter}{i}_{j}" for j in range(len(slot.args))]
    call = code.format(*names, s=state) if code else f"{name}{i}({', '.join([state, *names])})"
    if slot.function.skips_null and names:
        guard = " and ".join(f"{n} is not None" for n in names)
        call = f"({call}) if {guard} else {state}"
    return call


def merging(slots: Sequence[Slot]) -> tuple[list[str], list[str]]:
    """Return the lines of ``change``, for another state ``r`` that is merged into ``s``."""
    lines, assigns = [], []
    for i, slot in enumerate(slots):
        mine, other = _cell(slot), f"r[{1 + slot.number}]"
        code = slot.function.merge_code
        value = code.format(s=mine, o=other) if code else f"merge{i}({mine}, {other})"
        lines.append(f"n{i} = {value}")
        assigns.append(f"{mine} = n{i}")
    return lines, assigns


def _merge(slots: Sequence[Slot]) -> str:
    lines, assigns = merging(slots)
    body = [f"    {line}" for line in (*lines, *assigns)]
    return "\n".join(["def merge(s, r):", *body, "    if r[0] > s[0]: s[0] = r[0]"])


def _result(slots: Sequence[Slot]) -> str:
    values = [
        f"result{i}(s[{1 + slot.number}])" if slot.function.result else f"s[{1 + slot.number}]"
        for i, slot in enumerate(slots)
    ]
    return f"def result(s):\n    return ({''.join(v + ', ' for v in values)})"
