"""Copies of aggregates' states: plain data, so lists and dicts are all that can change."""

from __future__ import annotations

from typing import Any

_CONTAINERS = (list, dict)


def copied(state: Any) -> Any:
    """Return a state that shares nothing with this one that could change."""
    kind = state.__class__
    if kind is list:
        return [copied(each) if each.__class__ in _CONTAINERS else each for each in state]
    if kind is dict:
        return {
            key: copied(each) if each.__class__ in _CONTAINERS else each
            for key, each in state.items()
        }
    return state
