"""Generated Python functions, and those of users' files: the one place where text becomes code.

Each text is in ``linecache`` under a name of its own for as long as one of its functions lives. So
a traceback through a generated function shows the line. Where Python runs the text does not matter:
a worker compiles its plan itself, and its tracebacks show lines too.
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from types import CodeType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
INDENT = "    "
_log = logging.getLogger(__name__)
_numbers = itertools.count(1)
_gathering: ContextVar[list[Generated] | None] = ContextVar("generated", default=None)


@dataclass(frozen=True, slots=True)
class Generated:
    """A text that was compiled, its subject, and the name under which tracebacks show it."""

    subject: str
    file: str
    text: str


class _LifetimeToken:
    """Lives as long as the namespace of a text's functions: a dict takes no weak references."""

    __slots__ = ("__weakref__",)


def define(subject: str, text: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run generated text in a namespace; return the namespace with its functions.

    ``subject`` says in tracebacks where the text comes from.
    Raises: SyntaxError, RecursionError or MemoryError for a text that Python cannot compile.
    """
    file = f"<generated {next(_numbers)}: {subject}>"
    _run(file, text, _under(file, _code(text)), names)
    gathering = _gathering.get()
    if gathering is not None:
        gathering.append(Generated(subject, file, text))
    _log.debug("code_generated", extra={"file": file, "text": text})
    return names


def execute(file: str, text: str, names: dict[str, Any]) -> None:
    """Run a text in a namespace; tracebacks find its lines under the name of the file.

    Raises: what the text raises, and as in ``define``.
    """
    _run(file, text, compile(text, file, "exec"), names)


@lru_cache(maxsize=256)
def _code(text: str) -> CodeType:
    """Compile a text once: a statement is tried before it runs, and queries are alike."""
    return compile(text, "<generated>", "exec")


def _under(file: str, code: CodeType) -> CodeType:
    """Return the code, and that of its functions, under the name of a file."""
    consts = (
        _under(file, const) if isinstance(const, CodeType) else const for const in code.co_consts
    )
    return code.replace(co_filename=file, co_consts=tuple(consts))


def _run(file: str, text: str, code: CodeType, names: dict[str, Any]) -> None:
    # no modification time: linecache then never looks for a file of that name
    entry = (len(text), None, text.splitlines(keepends=True), file)
    linecache.cache[file] = entry
    names[file] = life = _LifetimeToken()
    weakref.finalize(life, _forget, file, entry).atexit = False
    exec(code, names)  # noqa: S102 - a generator's text, or a file of the extension directory


def _forget(file: str, entry: object) -> None:
    if linecache.cache.get(file) is entry:
        del linecache.cache[file]


@contextlib.contextmanager
def gathered() -> Iterator[list[Generated]]:
    """Collect the texts that are compiled meanwhile in this thread."""
    codes: list[Generated] = []
    token = _gathering.set(codes)
    try:
        yield codes
    finally:
        _gathering.reset(token)


def cached(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make ``lru_cache`` for a function that generates code: while texts are collected it is new.

    Otherwise a text that was compiled before would be missing in the collection.
    """

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        kept = cast("Callable[P, T]", lru_cache(maxsize)(make))

        @wraps(make)
        def compiled(*args: P.args, **kwargs: P.kwargs) -> T:
            if _gathering.get() is not None:
                return make(*args, **kwargs)
            return kept(*args, **kwargs)

        return compiled

    return decorate


def tuple_of(values: Sequence[str]) -> str:
    """Return the code of a tuple."""
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"


def indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Return the lines, so many levels deeper."""
    return [INDENT * depth + line for line in lines]


@dataclass
class Draft:
    """Functions under way as text, and a name for every value that they refer to."""

    names: dict[str, Any] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)

    def add(self, value: object) -> str:
        """Make a value known to the text; return its name there."""
        name = f"g{len(self.names)}"
        self.names[name] = value
        return name

    def define(self, head: str, body: Sequence[str]) -> None:
        """Add a function."""
        self.functions.append("\n".join([f"def {head}:", *indent(body), ""]))

    def compiled(self, subject: str) -> dict[str, Any]:
        """Run the text; return the names with the functions among them."""
        return define(subject, "\n".join(self.functions), self.names)
