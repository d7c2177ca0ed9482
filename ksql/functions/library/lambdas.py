"""Functions of functions: TRANSFORM, FILTER, REDUCE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ksql.core.types import entries
from ksql.functions.build import family
from ksql.functions.errors import ResultBudget
from ksql.functions.spec import Scalar
from ksql.java import EvaluationError


class DuplicateKey(EvaluationError):
    """Two entries of a transformed map got the same key."""

    def __init__(self, key: object) -> None:
        super().__init__(f"Duplicate key {key}")


class NullValue(EvaluationError):
    """A new map would hold a NULL value."""

    def __init__(self, name: str, key: object) -> None:
        super().__init__(f"{name} cannot keep the key {key}: its value is NULL")


class NullCondition(EvaluationError):
    """The condition of a filter is neither true nor false."""

    def __init__(self) -> None:
        super().__init__("the condition of FILTER is NULL")


def transform_array(values: list[Any], function: Callable[[Any], Any]) -> list[Any]:
    """Return each element through the function."""
    room, changed = ResultBudget("TRANSFORM"), []
    for value in values:
        new = function(value)
        room.take(new)
        changed.append(new)
    return changed


def transform_map(
    values: dict[Any, Any],
    of_key: Callable[[Any, Any], Any],
    of_value: Callable[[Any, Any], Any],
) -> dict[Any, Any]:
    """Return each entry through one function for its key and one for its value."""
    room = ResultBudget("TRANSFORM")
    changed: dict[Any, Any] = {}
    for key, value in values.items():
        new = of_key(key, value)
        if new in changed:
            raise DuplicateKey(new)
        changed[new] = of_value(key, value)
        if changed[new] is None:
            raise NullValue("TRANSFORM", new)
        room.take(new)
        room.take(changed[new])
    return changed


def _holds(answer: Any) -> bool:
    if answer is None:
        raise NullCondition
    return bool(answer)


def filter_array(values: list[Any], test: Callable[[Any], Any]) -> list[Any]:
    """Return the elements for which the test holds."""
    return [value for value in values if _holds(test(value))]


def filter_map(values: dict[Any, Any], test: Callable[[Any, Any], Any]) -> dict[Any, Any]:
    """Return the entries for which the test holds."""
    kept = {key: value for key, value in values.items() if _holds(test(key, value))}
    for key, value in kept.items():
        if value is None:
            raise NullValue("FILTER", key)
    return kept


def reduce_array(values: list[Any] | None, state: Any, step: Callable[[Any, Any], Any]) -> Any:
    """Return the state after the step has been done with each element."""
    if state is None:
        return None
    room = ResultBudget("REDUCE")
    for value in values or ():
        state = step(state, value)
        room.only(state)
    return state


def reduce_map(
    values: dict[Any, Any] | None, state: Any, step: Callable[[Any, Any, Any], Any]
) -> Any:
    """Return the state after the step has been done with each entry, in Java's order."""
    if state is None:
        return None
    room = ResultBudget("REDUCE")
    for key, value in entries(values or {}):
        state = step(state, key, value)
        room.only(state)
    return state


LAMBDAS = family(
    "LAMBDA",
    {
        "transform": (
            "Every element, or every key and value, through a function.",
            Scalar(("ARRAY<T> array", "T => R function"), "ARRAY<R>", transform_array),
            Scalar(
                ("MAP<K, V> map", "(K, V) => R keyFunction", "(K, V) => S valueFunction"),
                "MAP<R, S>",
                transform_map,
            ),
        ),
        "filter": (
            "The elements or entries for which a condition holds.",
            Scalar(("ARRAY<T> array", "T => BOOLEAN condition"), "ARRAY<T>", filter_array),
            Scalar(("MAP<K, V> map", "(K, V) => BOOLEAN condition"), "MAP<K, V>", filter_map),
        ),
        "reduce": (
            "One value from all elements or entries, starting from a first one.",
            Scalar(
                ("ARRAY<T> array", "S initialState", "(S, T) => S function"),
                "S",
                reduce_array,
                nulls="pass",
            ),
            Scalar(
                ("MAP<K, V> map", "S initialState", "(S, K, V) => S function"),
                "S",
                reduce_map,
                nulls="pass",
            ),
        ),
    },
)
