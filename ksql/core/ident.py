"""Identifiers: case, quoting and suggestions, and which names a message may show to whom.

Hints never name what a user may not see. The layers below rights make messages, too. So who acts
sets what it sees for all of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

_BARE = re.compile(r"[A-Z_][A-Z0-9_@]*\Z|(?![0-9]+(E[0-9]+)?\Z)[0-9][A-Z0-9_@]+\Z")

_RESERVED = """
    SELECT FROM WHERE WITHIN WINDOW GROUP BY HAVING LIMIT AS ALL DISTINCT AT OR AND IN NOT EXISTS
    BETWEEN LIKE IS NULL TRUE FALSE MILLISECOND YEARS MONTHS DAYS HOURS MINUTES SECONDS MILLISECONDS
    TUMBLING HOPPING SIZE ADVANCE RETENTION CASE WHEN THEN ELSE END JOIN FULL OUTER INNER LEFT RIGHT
    ON WITH VALUES CREATE TABLE TOPIC STREAM STREAMS INSERT DELETE INTO DESCRIBE EXTENDED PRINT CAST
    LIST TOPICS QUERY QUERIES TERMINATE PAUSE RESUME LOAD DROP TO RENAME SAMPLE EXPORT CATALOG
    PROPERTIES BEGINNING UNSET RUN SCRIPT DECIMAL CONNECTOR CONNECTORS NAMESPACE MATERIALIZED VIEW
"""
RESERVED = frozenset(_RESERVED.split())


def quote(name: str) -> str:
    """Return the name as a statement must have it: bare if that reads back, else in backticks."""
    if _BARE.match(name) and name not in RESERVED:
        return name
    return quote_always(name)


def quote_always(name: str) -> str:
    """Return the name in backticks, as schemas are printed."""
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    """Return the text as a STRING is written in a statement."""
    return "'" + text.replace("'", "''") + "'"


def listed(names: Sequence[str], word: str) -> str:
    """Return names as a sentence lists them.

    Example: ``A, B or C`` for three names and the word ``or``.
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


_LIKELY: Final = 0.65
"""The share of letters in common of two names that may be one, mistyped; STATUS is not TAGS."""

_SURE: Final = 0.9
"""That of two names that are almost surely one."""


def near(
    name: str, known: Iterable[str], count: int = 1, least: float = _LIKELY
) -> tuple[str, ...]:
    """Return the known names that look most like ``name``, best first, quoted if need be."""
    return tuple(map(quote, similar(name, known, count, least)))


def similar(
    name: str, known: Iterable[str], count: int = 1, least: float = _LIKELY
) -> tuple[str, ...]:
    """Return the known names that look most like ``name``, best first and as they are.

    A mere difference of case counts; ``least`` is the share of letters in common, from 0 to 1.
    """
    by_upper = {candidate.upper(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.upper(), by_upper, n=count, cutoff=least)
    return tuple(by_upper[upper] for upper in matches)


def did_you_mean(name: str, known: Iterable[str], *, sure: bool = False) -> str:
    """Return the hint for a name that is not known; empty if no known one looks like it.

    ``sure`` is for statements that end something: who follows the hint unseen must not end another
    thing.
    """
    close = near(name, known, least=_SURE if sure else _LIKELY)
    return f"Did you mean {close[0]}?" if close else ""


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
