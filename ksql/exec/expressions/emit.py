"""Writes generated code (blocks, temporaries, guards), and knows what cannot be NULL.

Every expression becomes a Python expression; what cannot be one (a guard, a branch with guards in
it) becomes statements before it. A guard is a ``try`` statement around its own part only. Since
Python 3.11 a ``try`` that catches nothing costs nothing, so there is no second, guarded version of
the code. Each expression is evaluated exactly once, functions with side effects included.

It also shows which expressions are known not to be NULL before they run.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ksql.core import indent
from ksql.sql.binder import Bound, Column, Const, LambdaVar
from ksql.sql.binder import bound as b

MAX_CODE = 400  # longer expressions are cut into statements: Python's parser limits nesting
MAX_DEPTH = 12  # deeper statements are put into functions of their own: CPython nests 20 blocks
_ATOM = re.compile(r"[A-Za-z_]\w*\Z|-?\d+(\.\d+)?(e[+-]?\d+)?\Z|'[^'\\\n]*'\Z", re.ASCII)
_CHEAP = (Column, Const, LambdaVar)


def is_atom(code: str) -> bool:
    """Return whether the code may be repeated: a name or a literal."""
    return bool(_ATOM.match(code))


def is_value(code: str) -> bool:
    """Return whether the code is a literal other than None.

    Python warns of tests of such for None.
    """
    return is_atom(code) and not code[0].isalpha() and code[0] != "_"


@dataclass(slots=True)
class Block:
    """Statements under way. ``safe`` ones cannot raise and go first; a guard is one of them.

    The depths count the statements that will be around ``body`` and around ``safe``. ``own``: the
    block lies so deep that it becomes a function.
    """

    depth: int = 1
    safe_depth: int = 1
    own: bool = False
    safe: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return all statements in order."""
        return self.safe + self.body


@dataclass(slots=True)
class Code:
    """The code of one function while it is being generated.

    ``namespace`` holds the values and functions that the code names, ``prologue`` the functions
    that read nothing of a row. ``nodes`` has the expressions whose failures may be reported, by
    number. ``used`` are the local variables that have been read. ``row`` is the code of the row
    that is reported with a failure.
    """

    columns: Mapping[str, int]
    namespace: dict[str, Any] = field(default_factory=dict)
    prologue: list[str] = field(default_factory=list)
    nodes: list[Bound] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    block: Block = field(default_factory=Block)
    used: set[str] = field(default_factory=set)
    row: str = "row"
    _count: int = 0

    def fresh(self, prefix: str = "t") -> str:
        """Return a new name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def named(self, value: Any, prefix: str = "k") -> str:
        """Return a name for a value that the code refers to."""
        name = self.fresh(prefix)
        self.namespace[name] = value
        return name

    def library(self, function: Any) -> str:
        """Return the name of a function of ours, the same each time."""
        name: str = function.__name__
        self.namespace[name] = function
        return name

    def constant(self, value: Any) -> str:
        """Return a literal, or the name of a value that has none."""
        match value:
            case None | bool() | int():
                return repr(value)
            case float() if math.isfinite(value):
                return repr(value)
            case str() if len(value) < MAX_CODE // 2 and value.isprintable():
                return repr(value)
            case _:
                return self.named(value)

    def column(self, name: str) -> str:
        """Return the local variable that holds a column of the row."""
        local = f"c{self.columns[name]}"
        self.used.add(local)
        return local

    def variable(self, name: str) -> str:
        """Return the local variable of a lambda's argument or of a value evaluated once."""
        local = self.variables[name]
        self.used.add(local)
        return local

    @contextlib.contextmanager
    def within(self, block: Block) -> Iterator[Block]:
        """Emit into that block for a while."""
        outer, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = outer

    def tried(self) -> Block:
        """Return a block for the part of a guard that may raise; its own guards go before it."""
        outer = self.block
        return Block(outer.safe_depth + 1, outer.safe_depth)

    def lazy(self) -> Block:
        """Return a block for what is evaluated only sometimes."""
        if self.block.depth >= MAX_DEPTH:
            return Block(own=True)
        depth = self.block.depth + 1
        return Block(depth, depth)

    def closed(self, block: Block, code: str) -> tuple[list[str], str]:
        """Return the statements of a finished block and its value."""
        lines = block.lines()
        if not block.own or not lines:
            return lines, code
        name = self.fresh("f")
        return [f"def {name}():", *indent([*lines, f"return {code}"])], f"{name}()"

    def spill(self, code: str) -> str:
        """Return a temporary that holds the value."""
        name = self.fresh()
        self.block.body.append(f"{name} = {code}")
        return name

    def atom(self, code: str) -> str:
        """Return the code itself if it may be repeated, else a temporary."""
        return code if is_atom(code) else self.spill(code)

    def short(self, code: str) -> str:
        """Return the code, or a temporary if it grew long."""
        return code if len(code) <= MAX_CODE else self.spill(code)

    def guard(self, node: Bound, block: Block, code: str) -> str:
        """Return the value of a block, NULL and reported if it raises."""
        if isinstance(node, _CHEAP) or (not block.body and is_atom(code)):
            self.block.safe += block.safe
            return code
        name = self.fresh()
        self.block.safe += [
            *block.safe,
            *self.guarded(node, [*block.body, f"{name} = {code}"], [f"{name} = None"]),
        ]
        return name

    def guarded(self, node: Bound, lines: Sequence[str], instead: Sequence[str]) -> list[str]:
        """Return the statements; if one raises, that is reported and the others are run."""
        number = len(self.nodes)
        self.nodes.append(node)
        self.used |= {"row", "log"}
        return [
            "try:",
            *indent(lines),
            "except Exception as error:",
            *indent([f"failed(log, {number}, error, {self.row})", *instead]),
        ]


def nullable(node: b.Bound) -> bool:
    """Return whether the value may be NULL; arithmetic on a NULL raises instead."""
    match node:
        case b.Const(value):
            return value is None
        case b.Compare() | b.Logical() | b.Not() | b.IsNull() | b.In() | b.Like():
            return False
        case b.Arith() | b.Negate() | b.MakeArray() | b.MakeMap() | b.MakeStruct():
            return False
        case b.Cast(operand, _, implicit):
            return not implicit or nullable(operand)
        case b.Let(_, _, body):
            return nullable(body)
        case _:
            return True


def doubtful(node: b.Bound, code: str) -> bool:
    """Return whether the code of the expression must be tested for None."""
    return nullable(node) and not is_value(code.strip("()"))
