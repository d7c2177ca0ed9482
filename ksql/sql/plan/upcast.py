"""Make the newest form of plans that earlier versions have stored, one step per version.

A released format is never edited. Another one gets a number of its own, and here a step that makes
a plan of it out of one of the format before. A step works on the stored JSON and on data that is
frozen with it. So it means the same whatever classes and functions there are later.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ksql.functions.registry import BUILTINS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.functions.registry import Functions


def upcast(plan: Any, version: int, functions: Functions) -> Any:
    """Return a plan of that format as one of the newest format."""
    for step in range(version, max(UPCASTERS, default=0) + 1):
        plan = UPCASTERS[step](plan, functions)
    return plan


def _signed(plan: Any, functions: Functions) -> Any:
    """Format 1 to 2: name each overload by its signature instead of its number.

    The number of a user's function stays (``ksql.functions.identity`` knows what it means): only
    the user's files say which overload that is.
    """
    match plan:
        case list():
            return [_signed(item, functions) for item in plan]
        case {"$": "bound.Call" | "nodes.Fold" | "nodes.TableCall", "overload": int(number)} if (
            type(number) is int
        ):
            name = _signature(plan.get("function"), number, functions)
            return {k: _signed(v, functions) for k, v in plan.items()} | {"overload": name}
        case dict():
            return {key: _signed(value, functions) for key, value in plan.items()}
        case _:
            return plan


def _signature(function: Any, number: int, functions: Functions) -> str | int:
    known = _numbered().get(function, ()) if isinstance(function, str) else ()
    hidden = known and functions.find(function) is not BUILTINS.find(function)
    return number if hidden or not 0 <= number < len(known) else known[number]


@lru_cache(maxsize=1)
def _numbered() -> Mapping[str, list[str]]:
    """Return the signatures of the built-in functions in the order that gave them their numbers."""
    text = files(__package__).joinpath("overloads1.json").read_text(encoding="utf-8")
    names: dict[str, list[str]] = json.loads(text)
    return names


def _without_lanes(plan: Any, functions: Functions) -> Any:
    """Format 2 to 3: a plan says how many lanes it has; one that does not has none."""
    del functions
    return plan


def _by_whole_keys(plan: Any, functions: Functions) -> Any:
    """Format 3 to 4: a sink says where the windows of a key go; one that does not goes as ever."""
    del functions
    return plan


def _without_placement(plan: Any, functions: Functions) -> Any:
    """Format 4 to 5: a plan says how its results are placed; one that does not has no order."""
    del functions
    return plan


def _without_code(plan: Any, functions: Functions) -> Any:
    """Format 5 to 6: a plan says what its functions and its kept rows were made of, or nothing."""
    del functions
    return plan


UPCASTERS: Final[Mapping[int, Callable[[Any, Functions], Any]]] = {
    1: _signed,
    2: _without_lanes,
    3: _by_whole_keys,
    4: _without_placement,
    5: _without_code,
}
"""By the version that they read; each gives the next one."""
