"""Which names a message may show to whom it is for: hints never name what a user may not see.

The layers below rights make messages, too. So who acts sets what it sees for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Kind = Literal["source", "topic", "connector"]
Sees = Callable[[Kind, str], bool]
"""Whether an object of that kind and name is seen."""

_sees: ContextVar[Sees | None] = ContextVar("sees", default=None)


@contextmanager
def seeing(sees: Sees | None) -> Iterator[None]:
    """Have messages that are made meanwhile show only that; None is everything."""
    token = _sees.set(sees)
    try:
        yield
    finally:
        _sees.reset(token)


def visible(names: Iterable[str], kind: Kind = "source") -> tuple[str, ...]:
    """Return those of some names that a message may show."""
    sees = _sees.get()
    return tuple(names) if sees is None else tuple(name for name in names if sees(kind, name))
