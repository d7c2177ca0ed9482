"""The aggregates of one GROUP BY as generated functions over the group's state.

The state of a group is a list: its timestamp, then one cell per slot. An upgrade appends slots. One
that failed leaves its cells behind, and the next one gets the same numbers; so every slot that an
upgrade added has a generation, and a state in which there is such a slot is stored behind its mark:
the generations of its cells. A cell is read by none but the slot and generation that wrote it; what
else there is starts empty, and what a failed upgrade left goes at the next write. States without a
mark hold nothing but cells of generation 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.base import codegen
from ksql.base.errors import QueryFailed
from ksql.base.records import Row
from ksql.functions.spec import AggregateFunction

if TYPE_CHECKING:
    from ksql.processors.base import LogError, Record

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

    ``step(state, row)`` and ``undo(state, row)`` change the state for one row; if one of the
    functions fails no slot is changed. ``merge(state, other)`` adds a later state.
    ``result(state)`` gives the values in the order of the slots' declaration. ``undo``/``merge``
    are None where a function has none. ``complete(stored)`` makes a state of what was stored;
    ``mark`` goes before a state that is stored, if there is one.
    """

    init: Callable[[], State]
    complete: Callable[[State], State]
    step: Callable[[State, Row], None]
    undo: Callable[[State, Row], None] | None
    merge: Callable[[State, Sequence[Any]], None] | None
    result: Callable[[Sequence[Any]], Row]
    mark: bytes | None = None


def compile_folds(slots: Sequence[Slot], generations: Sequence[int] = ()) -> Folds:
    """Generate the functions for these aggregates.

    ``generations`` are those of all slots, of the ones that no aggregate has any more too.
    """
    scope = functions_of(slots)
    size = max(size_of(slots), 1 + len(generations))
    mark = _mark(generations, size)
    scope["mark"] = mark
    parts = [
        _init(slots, size),
        _MARKED.format(size=1 + size) if mark else _UNMARKED.format(size=size),
        _change("step", slots),
        _result(slots),
    ]
    undoable = all(slot.function.undo for slot in slots)
    mergeable = all(slot.function.merge for slot in slots)
    if undoable:
        parts.append(_change("undo", slots))
    if mergeable:
        parts.append(_merge(slots))
    codegen.define("aggregates", "\n".join(parts), scope)
    scope["adopted"] = _adopter(scope["init"], mark, size)
    return Folds(
        init=scope["init"],
        complete=scope["complete"],
        step=scope["step"],
        undo=scope.get("undo"),
        merge=scope.get("merge"),
        result=scope["result"],
        mark=mark,
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
    except QueryFailed:
        raise
    except Exception as error:  # noqa: BLE001 - any failure of a function skips the record
        log("aggregate", str(error) or type(error).__name__, row)
        return False
    if record.timestamp > state[0]:
        state[0] = record.timestamp
    return True


def functions_of(slots: Sequence[Slot]) -> dict[str, Any]:
    """The functions that generated code calls, by their names."""
    scope: dict[str, Any] = {}
    for i, slot in enumerate(slots):
        f = slot.function
        scope |= {f"init{i}": f.init, f"step{i}": f.step, f"undo{i}": f.undo}
        scope |= {f"merge{i}": f.merge, f"result{i}": f.result}
    return scope


def size_of(slots: Sequence[Slot]) -> int:
    """How long the state of a group is."""
    return 1 + max((slot.number for slot in slots), default=-1) + 1


def fresh(slots: Sequence[Slot], size: int) -> str:
    """The code of an empty state."""
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
    """The generations of the cells; None if no upgrade has added any."""
    if not any(generations):
        return None
    padded = (*generations, *(0,) * (size - 1 - len(generations)))
    return b"".join(map(_GENERATION.pack, padded))


def _adopter(
    init: Callable[[], State], mark: bytes | None, size: int
) -> Callable[[Sequence[Any]], State]:
    """Return the function that makes a state of one that another plan has stored."""
    mine = _generations(mark)

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


def _generations(mark: bytes | None) -> dict[int, int]:
    return {n: found for n, (found,) in enumerate(_GENERATION.iter_unpack(mark or b""))}


def _change(name: str, slots: Sequence[Slot]) -> str:
    lines, assigns = change(name, slots)
    body = [f"    {line}" for line in (*lines, *assigns)]
    return "\n".join([f"def {name}(s, r):", *body, "    return None"])


def change(name: str, slots: Sequence[Slot], before: int = 0) -> tuple[list[str], list[str]]:
    """Lines that compute the slots' new values from a row ``r``, and lines that set them in ``s``.

    The arguments follow ``before`` other columns.
    """
    lines, assigns = [], []
    for i, slot in sorted(enumerate(slots), key=lambda numbered: _turn(numbered[1])):
        cell = f"s[{1 + slot.number}]"
        code = slot.function.step_code if name == "step" else None
        names = [f"a{i}_{j}" for j in range(len(slot.args))]
        lines += [f"{n} = r[{before + arg}]" for n, arg in zip(names, slot.args, strict=True)]
        call = code.format(*names, s=cell) if code else f"{name}{i}({', '.join([cell, *names])})"
        if slot.function.skips_null and names:
            guard = " and ".join(f"{n} is not None" for n in names)
            call = f"({call}) if {guard} else {cell}"
        lines.append(f"n{i} = {call}")
        assigns.append(f"{cell} = n{i}")
    return lines, assigns


_IN_PLACE = (dict, list)


def _turn(slot: Slot) -> int:
    """Put changes in place last: nothing that fails may come after it.

    Lists come after maps, for HISTOGRAM may have nothing to undo.
    """
    init = slot.function.init
    return 1 + _IN_PLACE.index(init) if init in _IN_PLACE else 0


def _merge(slots: Sequence[Slot]) -> str:
    lines, assigns = ["def merge(s, o):"], []
    for i, slot in enumerate(slots):
        mine, other = f"s[{1 + slot.number}]", f"o[{1 + slot.number}]"
        code = slot.function.merge_code
        value = code.format(s=mine, o=other) if code else f"merge{i}({mine}, {other})"
        lines.append(f"    n{i} = {value}")
        assigns.append(f"    {mine} = n{i}")
    return "\n".join([*lines, *assigns, "    if o[0] > s[0]: s[0] = o[0]"])


def _result(slots: Sequence[Slot]) -> str:
    values = [
        f"result{i}(s[{1 + slot.number}])" if slot.function.result else f"s[{1 + slot.number}]"
        for i, slot in enumerate(slots)
    ]
    return f"def result(s):\n    return ({''.join(v + ', ' for v in values)})"
