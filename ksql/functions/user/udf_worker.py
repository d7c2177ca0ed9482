"""A process that calls user functions for another one, which can end it.

It reads requests from its standard input and writes answers to its standard output, both pickled.
The texts of the files and the limits come first, then calls. It ends with the process that started
it.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ksql.functions.spec import AggregateFactory, Function, Overload
from ksql.functions.user.load import load_sources
from ksql.functions.user.watch import EXIT, CallWatch, Limits, Overrun, watched

FACTS: Final = "facts"
PLAIN: Final = ("params", "skips_null")
"""An aggregate's facts besides its callables."""


class FunctionPart(NamedTuple):
    """Which part of a function is meant: the overload by its number, and what it is made with."""

    function: str
    overload: int
    part: str
    made_with: tuple[Any, ...] = ()


class Failed(NamedTuple):
    """The answer of a call that raised."""

    message: str
    fatal: bool = False


def part_of(overload: Overload, part: str, made_with: tuple[Any, ...]) -> Any:
    """Return the callable of that part."""
    if part == FACTS:
        instance = overload.make(*made_with) if isinstance(overload, AggregateFactory) else overload
        facts = (getattr(instance, name, None) for name in PLAIN)
        return lambda values=tuple(facts): values
    if part == "typed":
        typed: Any = getattr(overload, "typed")  # noqa: B009 - some overloads have none
        return typed(*made_with)
    instance = overload.make(*made_with) if isinstance(overload, AggregateFactory) else overload
    return getattr(instance, part)


def main() -> None:
    """Serve until the other end closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what functions print must not be taken for answers
    requests = sys.stdin.buffer
    sources, limits = pickle.load(requests)  # noqa: S301 - our own parent's
    watch = CallWatch(Limits(*limits))
    functions: dict[str, Function] = {
        one.name: watched(one, watch) for one in load_sources(sources)[0]
    }

    @lru_cache(maxsize=256)
    def resolve(pickled: bytes) -> Any:
        place: FunctionPart = pickle.loads(pickled)  # noqa: S301 - our own parent's
        overload = functions[place.function].overloads[place.overload]
        return part_of(overload, place.part, place.made_with)

    while True:
        try:
            reference, values = pickle.load(requests)  # noqa: S301 - our own parent's
        except EOFError:
            return
        answer, fatal = _answer(resolve, reference, values)
        answers.write(answer)
        answers.flush()
        if fatal:
            os._exit(EXIT)


def _answer(
    resolve: Callable[[bytes], Any], reference: bytes, values: tuple[Any, ...]
) -> tuple[bytes, bool]:
    """Return the pickled answer, and whether this process is of no use any more."""
    try:
        return pickle.dumps(resolve(reference)(*values)), False
    except Overrun as error:
        return pickle.dumps(Failed(str(error), fatal=True)), True
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        return pickle.dumps(Failed(str(error) or type(error).__name__)), False
