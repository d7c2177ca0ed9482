"""A compiled pattern: RE2 in linear time where it can say the same, else with a time limit.

RE2 knows no back references, lookaround, atomic groups and possessive quantifiers. Its end of a
text is Java's ``$`` only for a text without a line's end. Both engines prefer matches as Java does.

A match may take a limited time if it cannot be promised to be linear.

Each query has a budget of its own: what one wastes is not taken from the others.
"""

from __future__ import annotations

import functools
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import re2
import regex

from ksql.java.regex.dialect import Backtracking, Linear, NotLinear
from ksql.java.regex.translate import BadRegex, shown, translate
from ksql.java.values import LONGEST_RESULT, EvaluationError, ResultTooLong

Spans = Sequence[tuple[int, int]]
"""Where the match and its groups are; -1 for a group without a part in it."""

_line_end = re.compile("[\n\r\x85\u2028\u2029]").search
_UNANCHORED = re2._re2.RE2.Anchor.UNANCHORED  # noqa: SLF001 (its wrapper costs four times a match)
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OFTEN = 32  # searches: an engine is compiled at once, another one for a pattern that stays
_QUICKLY_COMPILED = 1_000  # characters for ``re``, which takes milliseconds for each large set


class TooSlow(EvaluationError):
    """A match that did not end in time."""

    def __init__(self, pattern: str, limit_s: float) -> None:
        super().__init__(
            f"The regular expression {shown(pattern)} was given up after {limit_s * 1000:.0f} ms"
        )


class TimedPattern:
    """A pattern of our own that a user's choices may make explode; with the time limit.

    ASCII only, and of any case.
    """

    def __init__(self, source: str) -> None:
        self.pattern = source
        self._regex = regex.compile(source, regex.ASCII | regex.IGNORECASE | regex.VERSION0)

    def fullmatch(self, text: str) -> regex.Match[str] | None:
        """Return the match of the whole text.

        Raises: TooSlow.
        """
        budget = current()
        limit = budget.limit_s()
        try:
            return self._regex.fullmatch(text, timeout=limit, concurrent=True)
        except TimeoutError as error:
            budget.lost(limit)
            raise TooSlow(self.pattern, limit) from error


class _Engine(Protocol):
    """Matches from left to right, as ``java.util.regex.Matcher.find`` finds them."""

    groups: int
    names: dict[str, int]

    def find(self, text: str) -> Iterator[Spans]:
        """Return the matches, each sought when it is asked for."""


class _Re2:
    """RE2 over the text's UTF-8 form; places are counted in characters."""

    def __init__(self, pattern: str, source: str, budget: Budget | None) -> None:
        compiled = re2._re2.RE2(source.encode("utf-8", "surrogatepass"), _OPTIONS)  # noqa: SLF001
        if not compiled.ok():
            raise NotLinear
        self.pattern = pattern
        self.budget = budget
        self.groups: int = compiled.NumberOfCapturingGroups()
        self.names: dict[str, int] = {
            name.decode(): number for name, number in compiled.NamedCapturingGroups()
        }
        self._match = compiled.Match

    def first(self, text: str) -> Spans | None:
        """Return the first match in a text of ASCII characters."""
        spans: Spans = self._match(_UNANCHORED, raw := text.encode(), 0, len(raw))
        return None if spans[0][0] < 0 else spans

    def find(self, text: str) -> Iterator[Spans]:
        raw = text.encode("utf-8", "surrogatepass")
        match, size, plain = self._match, len(raw), len(raw) == len(text)
        position = seen = characters = 0
        budget = self.budget or current()
        until = budget.clock() + budget.limit_s()
        while position <= size:
            spans: Spans = match(_UNANCHORED, raw, position, size)
            start, end = spans[0]
            if start < 0:
                return
            if not plain:
                characters += len(raw[seen:start].decode("utf-8", "surrogatepass"))
                seen = start
            yield spans if plain else tuple(_in_characters(raw, start, characters, spans))
            position = end if end > start else _after(raw, end)
            if budget.clock() > until:
                limit = budget.limit_s()
                budget.lost(limit)
                raise TooSlow(self.pattern, limit)


def _after(raw: bytes, position: int) -> int:
    """Return where the next character starts."""
    position += 1
    while position < len(raw) and raw[position] & 0xC0 == 0x80:
        position += 1
    return position


def _in_characters(
    raw: bytes, start: int, characters: int, spans: Spans
) -> Iterator[tuple[int, int]]:
    for low, high in spans:
        if low < 0:
            yield low, high
            continue
        before = characters + len(raw[start:low].decode("utf-8", "surrogatepass"))
        yield before, before + len(raw[low:high].decode("utf-8", "surrogatepass"))


class _Timed:
    """Backtracking with a time limit, without the interpreter's lock."""

    def __init__(self, pattern: str, source: str, budget: Budget | None) -> None:
        try:
            self._regex = regex.compile(source, regex.ASCII | regex.VERSION0)
        except (regex.error, RecursionError, OverflowError, MemoryError) as error:
            raise BadRegex(pattern, str(error)) from error
        self.pattern = pattern
        self.budget = budget
        self.groups: int = self._regex.groups
        self.names: dict[str, int] = dict(self._regex.groupindex)

    def find(self, text: str) -> Iterator[Spans]:
        budget = self.budget or current()
        limit = left = budget.limit_s()
        until = budget.clock() + limit
        position = 0
        while position <= len(text):
            try:
                match = self._regex.search(text, position, timeout=left, concurrent=True)
            except TimeoutError as error:
                budget.lost(limit)
                raise TooSlow(self.pattern, limit) from error
            if match is None:
                return
            yield match.regs
            start, end = match.span()
            position = end if end > start else end + 1
            left = max(until - budget.clock(), SHORTEST_S / 10)


class _Short:
    """Python's ``re``, the fastest, for texts so short that it cannot take long."""

    def __init__(self, source: str, longest: int) -> None:
        self.longest = longest  # characters
        self.search = re.compile(source, re.ASCII).search

    def find(self, text: str) -> Iterator[Spans]:
        position = 0
        while position <= len(text):
            match = self.search(text, position)
            if match is None:
                return
            yield match.regs
            start, end = match.span()
            position = end if end > start else end + 1


class JavaRegex:
    """A compiled pattern; groups keep their numbers.

    ``budget``: what its matches spend from, if not from that of the query at hand.
    """

    def __init__(self, pattern: str, budget: Budget | None = None) -> None:
        self.pattern = pattern
        self._budget = budget
        self._linear: _Re2 | None = None
        self._searches = 0
        self._harmless = 0
        self._ends = self._lines = False
        dialect = Linear()
        try:
            translated = translate(pattern, dialect)
            self._linear = _Re2(pattern, translated.source, budget)
        except NotLinear:
            engine: _Engine = self._timed
        else:
            engine = self._linear
            self._ends, self._lines = dialect.at_end, dialect.at_lines
            self._harmless = translated.harmless
        self.groups = engine.groups
        self.names = engine.names

    @functools.cached_property
    def _timed(self) -> _Timed:
        return _Timed(self.pattern, translate(self.pattern, Backtracking()).source, self._budget)

    @functools.cached_property
    def _short(self) -> _Short | None:
        """The fastest engine; None where a short text or compiling may take it long."""
        if not self._harmless:
            return None
        source = translate(self.pattern, Backtracking()).source
        return _Short(source, self._harmless) if len(source) <= _QUICKLY_COMPILED else None

    def _short_for(self, text: str) -> _Short | None:
        """Return the fastest engine for a text, once the pattern has been used often."""
        if len(text) > self._harmless:
            return None
        if self._searches < _OFTEN:
            self._searches += 1
            return None
        return self._short

    @functools.cached_property
    def matches_empty(self) -> bool:
        """Whether the empty text matches."""
        return self.search("") is not None

    def search(self, text: str) -> Spans | None:
        """Return the first match.

        Raises: TooSlow.
        """
        short = self._short_for(text)
        if short is not None:
            match = short.search(text)
            return None if match is None else match.regs
        linear = self._linear
        if linear is None or self._differs(text):
            return next(self._timed.find(text), None)
        return linear.first(text) if text.isascii() else next(linear.find(text), None)

    def finditer(self, text: str) -> Iterator[Spans]:
        """Return all matches; TooSlow and ResultTooLong may come with any of them."""
        short = self._short_for(text)
        if short is not None:
            yield from short.find(text)
            return
        linear = self._linear
        engine = self._timed if linear is None or self._differs(text) else linear
        for count, spans in enumerate(engine.find(text)):
            if count > LONGEST_RESULT:
                raise ResultTooLong("the regular expression", count)
            yield spans

    def _differs(self, text: str) -> bool:
        """Return whether the text has line ends that mean more in Java's pattern than in RE2's."""
        if self._lines:
            return _line_end(text) is not None
        return self._ends and _line_end(text[-1:]) is not None


@functools.lru_cache(maxsize=512)
def compile_java(pattern: str) -> JavaRegex:
    """Return the compiled counterpart of a Java pattern.

    Raises: BadRegex.
    Source: java.util.regex.Pattern.
    """
    return JavaRegex(pattern)


def compile_whole(pattern: str) -> JavaRegex:
    """Return a pattern that the whole text has to match.

    Raises: BadRegex.
    Source: java.util.regex.Matcher.matches.
    """
    compile_java(pattern)
    return compile_java(rf"\A(?:{pattern})\z")


def part(text: str, spans: Spans, group: int) -> str | None:
    """Return the text of a group of a match; None if it has no part in it."""
    start, end = spans[group]
    return None if start < 0 else text[start:end]


LONGEST_S = 1.0
SHORTEST_S = 0.001
PERIOD_S = 60.0
PER_PERIOD_S = 5.0


class Budget:
    """One match may take a second; all matches that were cut short, five in a minute.

    Afterwards each gets a millisecond until the minute is over. A pattern that explodes on every
    record must not hold its batch, while ordinary texts still match.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._began = clock()
        self._spent_s = 0.0

    def limit_s(self) -> float:
        """Return how long the next match may take."""
        if self._spent_s < PER_PERIOD_S:
            return LONGEST_S
        if self.clock() - self._began < PERIOD_S:
            return SHORTEST_S
        self._spent_s = 0.0
        return LONGEST_S

    def lost(self, spent_s: float) -> None:
        """Take note that a match was given up after that time."""
        if self._spent_s == 0.0:
            self._began = self.clock()
        self._spent_s += spent_s


class _Thread(threading.local):
    """The budget of what this thread evaluates; one for all that belongs to no query."""

    budget = Budget()


_thread = _Thread()


def use(budget: Budget) -> None:
    """Have this thread spend from that budget until it gets another one."""
    _thread.budget = budget


def current() -> Budget:
    """Return the budget that this thread spends from."""
    return _thread.budget
