"""Copies the states of aggregates: plain data, in which only lists and dicts can change.

A state is stored after each batch and read back before the next one. Objects that are no plain data
would come back as something else, a date as a text and a Counter as a dict. A function would see
the one or the other, depending on how its records were cut into batches.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_CONTAINERS = (list, dict)
_KEYS = frozenset({type(None), bool, int, float, str, bytes})
_SCALARS = _KEYS | {Decimal}


def copied(state: Any) -> Any:
    """Return a state that shares nothing with this one that could change."""
    kind = state.__class__
    if kind is list:
        return [copied(member) if member.__class__ in _CONTAINERS else member for member in state]
    if kind is dict:
        return {
            key: copied(member) if member.__class__ in _CONTAINERS else member
            for key, member in state.items()
        }
    return state


def plain(state: Any, *, deep: bool = True) -> Any:
    """Return a state as it comes back from where it is stored: with lists for tuples.

    Without ``deep`` nothing in it is looked at, and a list or dict is the same object.

    Raises:
        TypeError: It has what cannot be stored as it is; the message is that part's type.
    """
    kind = state.__class__
    if kind in _SCALARS or (not deep and kind in _CONTAINERS):
        return state
    if kind is list or kind is tuple:
        if kind is list and _SCALARS.issuperset(map(type, state)):
            return state
        return [plain(member) for member in state]
    if kind is not dict:
        raise TypeError(kind.__name__)
    if not _KEYS.issuperset(map(type, state)):
        wrong = next(key for key in state if type(key) not in _KEYS)
        raise TypeError(f"{type(wrong).__name__} as a key")
    if _SCALARS.issuperset(map(type, state.values())):
        return state
    return {key: plain(member) for key, member in state.items()}
