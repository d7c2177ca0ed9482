"""The aggregates of one GROUP BY as generated functions over the group's state.

The state of a group is a list: its timestamp, then one entry per slot. A state written by an older
plan may be shorter: the slots that it lacks start empty (upgrades append slots, and never use a
number again).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ksql.functions.spec import Aggregate
from ksql.processors.base import Row

State = list[Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """One aggregate: where its state lies and which columns of the row are its arguments."""

    number: int
    function: Aggregate
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Folds:
    """What can be done with a group's state.

    ``step(state, row)`` and ``undo(state, row)`` change the state for one row; if one of the
    functions fails no slot is changed. ``merge(state, other)`` adds a later state.
    ``result(state)`` gives the values in the order of the slots' declaration. ``undo``/``merge``
    are None where a function has none.
    """

    init: Callable[[], State]
    complete: Callable[[State], State]
    step: Callable[[State, Row], None]
    undo: Callable[[State, Row], None] | None
    merge: Callable[[State, Sequence[Any]], None] | None
    result: Callable[[Sequence[Any]], Row]


def compile_folds(slots: Sequence[Slot]) -> Folds:
    """Generate the functions for these aggregates."""
    scope = functions_of(slots)
    size = size_of(slots)
    parts = [
        _init(slots, size),
        _complete(slots, size),
        _change("step", slots),
        _result(slots),
    ]
    undoable = all(slot.function.undo for slot in slots)
    mergeable = all(slot.function.merge for slot in slots)
    if undoable:
        parts.append(_change("undo", slots))
    if mergeable:
        parts.append(_merge(slots))
    exec(compile("\n".join(parts), "<folds>", "exec"), scope)  # noqa: S102 - source made here
    return Folds(
        init=scope["init"],
        complete=scope["complete"],
        step=scope["step"],
        undo=scope.get("undo"),
        merge=scope.get("merge"),
        result=scope["result"],
    )


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


def _complete(slots: Sequence[Slot], size: int) -> str:
    lines = [
        "def complete(s):",
        "    n = len(s)",
        f"    if n < {size}:",
        f"        s.extend([None] * ({size} - n))",
    ]
    lines += [
        f"        if n <= {1 + slot.number}: s[{1 + slot.number}] = init{i}()"
        for i, slot in enumerate(slots)
    ]
    return "\n".join([*lines, "    return s"])


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
    """What changes in place comes last: nothing that fails may come after it.

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
