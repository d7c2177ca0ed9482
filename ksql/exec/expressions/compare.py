"""Comparisons, IN and LIKE as Python code; LIKE in linear time.

With a NULL, comparisons and IN are false; LIKE raises.

Source: docs/sql/expressions.md#comparisons.

LIKE takes linear time: ``%`` is any run of characters and ``_`` any one, but for line ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

from ksql.core import excerpt
from ksql.core.types import decimals, model
from ksql.exec.expressions.emit import doubtful, is_atom, nullable
from ksql.exec.expressions.errors import NullOperand
from ksql.sql.binder import bound as b
from ksql.sql.binder import type_of

if TYPE_CHECKING:
    from ksql.exec.expressions.generate import Generator


_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def compare_code(gen: Generator, node: b.Compare) -> str:
    """Generate the code of a comparison."""
    types = (type_of(node.left), type_of(node.right))
    mixed = model.DOUBLE in types and any(isinstance(type_, model.Decimal) for type_ in types)
    if node.op in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        return _distinct(gen, node, mixed)
    if node.op == "=" and not mixed:
        return _equal(gen, node)
    left, right, tests = _operands(gen, node)
    if mixed:
        left, right = _exact(gen, node.left, left), _exact(gen, node.right, right)
    if node.op == "<>" and types[0] == model.DOUBLE and not mixed:
        tests.append(f"({left} < {right} or {left} > {right})")
    else:
        tests.append(f"{left} {_PYTHON[node.op]} {right}")
    return f"({' and '.join(tests)})"


def _operands(gen: Generator, node: b.Compare) -> tuple[str, str, list[str]]:
    """Return both sides, repeatable, and the tests that they are not NULL."""
    left, right = gen.value(node.left), gen.value(node.right)
    tests: list[str] = []
    if nullable(node.left) and not is_atom(left) and is_atom(right):
        name = gen.code.fresh()
        tests.append(f"({name} := {left}) is not None")
        left = name
    else:
        left = gen.code.atom(left)
        tests += [f"{left} is not None"] * doubtful(node.left, left)
    right = gen.code.atom(right)
    tests += [f"{right} is not None"] * doubtful(node.right, right)
    return left, right, tests


def _equal(gen: Generator, node: b.Compare) -> str:
    """Return the code of ``=``: Python's ``==`` with one None is false already."""
    left, right = gen.value(node.left), gen.value(node.right)
    if doubtful(node.left, left) and doubtful(node.right, right):
        left = gen.code.atom(left)
        return f"({left} == {right} and {left} is not None)"
    return f"({left} == {right})"


def _distinct(gen: Generator, node: b.Compare, mixed: bool) -> str:
    left, right = gen.atom(node.left), gen.atom(node.right)
    test = f"{left} != {right}"
    ordered = ""
    if mixed:
        ordered = f"{_exact(gen, node.left, left)} != {_exact(gen, node.right, right)}"
    elif type_of(node.left) == model.DOUBLE:
        ordered = f"{left} < {right} or {left} > {right}"
    if ordered:
        sides = ((node.left, left), (node.right, right))
        nulls = [f"{code} is None" for side, code in sides if doubtful(side, code)]
        test = f"({test} if {' or '.join(nulls)} else {ordered})" if nulls else ordered
    return f"({test})" if node.op == "IS DISTINCT FROM" else f"(not ({test}))"


def _exact(gen: Generator, node: b.Bound, code: str) -> str:
    """Return a double as the decimal that it prints as."""
    if type_of(node) != model.DOUBLE:
        return code
    return f"{gen.code.library(decimals.exact_double)}({code})"


def in_code(gen: Generator, node: b.In) -> str:
    """Generate the code of ``operand IN (..)``; constants are looked up together."""
    operand = gen.atom(node.operand)
    known = [o.value for o in node.options if isinstance(o, b.Const)]
    tests = []
    if known and all(isinstance(value, Hashable) for value in known):
        tests.append(f"{operand} in {gen.code.named(frozenset(known), 'set')}")
    tests += [
        f"{operand} == {gen.atom(option)}"
        for option in node.options
        if not isinstance(option, b.Const)
    ]
    if not tests:
        return "False"
    either = " or ".join(tests)
    if doubtful(node.operand, operand) and any(nullable(option) for option in node.options):
        return f"({operand} is not None and ({either}))"
    return f"({either})"


def like_code(gen: Generator, node: b.Like) -> str:
    """Generate the code of LIKE; a constant pattern is compiled once, a bad one fails each time."""
    text = gen.value(node.operand)
    constant = node.pattern.value if isinstance(node.pattern, b.Const) else None
    if constant is not None and is_like_pattern(constant, node.escape):
        test = like_test(constant, node.escape)
        return f"{gen.code.named(test, 'like')}({text})"
    args = (text, gen.value(node.pattern), gen.code.constant(node.escape))
    return f"{gen.code.library(like)}({', '.join(args)})"


# What Java's dot does not match: % and _ do not cross a line's end.
_LINE_ENDS = "\n\r\u0085\u2028\u2029"
_ANY = f"[^{_LINE_ENDS}]"
_split_lines = re.compile(f"([{_LINE_ENDS}])").split
_has_lines = re.compile(f"[{_LINE_ENDS}]").search
_MANY, _ONE = "%", "_"

Test = Callable[[str], bool]
Token = tuple[str, bool]
"""A character of the pattern, and whether it is a wildcard."""


class BadLikePattern(ValueError):
    """A LIKE pattern that ends in its escape character."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"the LIKE pattern '{excerpt(pattern)}' ends in its escape character")


class LongPattern(ValueError):
    """A LIKE pattern with single wildcards that is too long for the engine."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"the LIKE pattern '{excerpt(pattern)}' is too long")


@lru_cache(maxsize=1024)
def like_test(pattern: str, escape: str | None) -> Test:
    """Return a test whether a whole text fits the pattern.

    Raises: BadLikePattern, LongPattern.
    """
    tokens = _tokens(pattern, escape)
    if (_ONE, True) in tokens:
        return _by_engine(pattern, tokens)
    lines, ends = _lines(tokens)
    tests = [_of_line(line) for line in lines]
    if len(tests) == 1:
        only = tests[0]
        return lambda text: only(text) and not _has_lines(text)

    def fits(text: str) -> bool:
        parts = _split_lines(text)
        return parts[1::2] == ends and all(
            test(part) for test, part in zip(tests, parts[::2], strict=True)
        )

    return fits


def is_like_pattern(pattern: str, escape: str | None) -> bool:
    """Return whether the pattern can be compiled: it does not end in its escape character."""
    try:
        like_test(pattern, escape)
    except (BadLikePattern, LongPattern):
        return False
    return True


def like(text: str | None, pattern: str | None, escape: str | None) -> bool:
    """Return whether the whole text fits the pattern.

    Raises: NullOperand, BadLikePattern, LongPattern.
    """
    if text is None or pattern is None:
        raise NullOperand
    return like_test(pattern, escape)(text)


def _tokens(pattern: str, escape: str | None) -> list[Token]:
    tokens: list[Token] = []
    chars = iter(pattern)
    for char in chars:
        if char == escape:
            escaped = next(chars, None)
            if escaped is None:
                raise BadLikePattern(pattern)
            tokens.append((escaped, False))
        else:
            tokens.append((char, char in (_MANY, _ONE)))
    return tokens


def _lines(tokens: Sequence[Token]) -> tuple[list[list[Token]], list[str]]:
    """Return the pattern between its line ends, and those: a text has to have the same ones."""
    lines: list[list[Token]] = [[]]
    ends = []
    for token in tokens:
        if token[0] in _LINE_ENDS:
            ends.append(token[0])
            lines.append([])
        else:
            lines[-1].append(token)
    return lines, ends


def _of_line(tokens: Sequence[Token]) -> Test:
    """Return a test for a text in one line, by the fixed parts between the ``%``."""
    parts = [""]
    for char, wild in tokens:
        if wild:
            parts.append("")
        else:
            parts[-1] += char
    if len(parts) == 1:
        (only,) = parts
        return lambda text: text.startswith(only) and len(text) == len(only)  # a NULL raises
    first, *middle, last = parts
    inner = [part for part in middle if part]
    if not inner:
        return _ends_test(first, last)
    shortest = len(first) + len(last)

    def fits(text: str) -> bool:
        if len(text) < shortest or not (text.startswith(first) and text.endswith(last)):
            return False
        start, end = len(first), len(text) - len(last)
        for part in inner:
            index = text.find(part, start, end)
            if index < 0:
                return False
            start = index + len(part)
        return True

    return fits


def _ends_test(first: str, last: str) -> Test:
    shortest = len(first) + len(last)
    return lambda text: len(text) >= shortest and text.startswith(first) and text.endswith(last)


def _by_engine(pattern: str, tokens: Sequence[Token]) -> Test:
    """Return a test that RE2 makes, for patterns with single wildcards."""
    wild = {_MANY: f"{_ANY}*", _ONE: _ANY}
    source = "".join(wild[char] if is_wild else re.escape(char) for char, is_wild in tokens)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    pattern_ = re2._re2.RE2(source.encode("utf-8", "surrogatepass"), options)  # noqa: SLF001 (fast)
    if not pattern_.ok():
        raise LongPattern(pattern)
    match, whole = pattern_.Match, re2._re2.RE2.Anchor.ANCHOR_BOTH  # noqa: SLF001

    def fits(text: str) -> bool:
        raw = text.encode("utf-8", "surrogatepass")
        return bool(match(whole, raw, 0, len(raw))[0][0] >= 0)

    return fits
