"""Loads the files in which users declare functions; a broken file is reported and left out."""

from __future__ import annotations

import contextlib
import hashlib
import io
import sys
import tokenize
import traceback
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ksql.core import codegen
from ksql.functions.build import kind_of
from ksql.functions.spec import Function
from ksql.functions.user.declare import MARK, Declaration

CATEGORY = "USER DEFINED"
MODULE_PREFIX = "ksql_user_functions_"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file, or a function in it, was left out."""

    file: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.message}"


def read_directory(path: Path | str) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts of the files by their names, and what could not be read.

    Files whose names start with an underscore or a dot are not read. A directory that does not
    exist has no functions.
    """
    sources: dict[str, str] = {}
    problems: list[Problem] = []
    folder = Path(path)
    for file in sorted(folder.glob("*.py")) if folder.is_dir() else ():
        if file.name.startswith(("_", ".")):
            continue
        try:
            sources[file.name] = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(file.name, str(error)))
    return sources, problems


def load_sources(sources: Mapping[str, str]) -> tuple[list[Function], list[Problem]]:
    """Return the functions that texts declare, by the names of their files."""
    declared: dict[str, list[tuple[str, Declaration]]] = {}
    problems: list[Problem] = []
    for file, text in sorted(sources.items()):
        try:
            for one in _declarations(_executed(file, text)):
                declared.setdefault(one.name.upper(), []).append((file, one))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may raise anything
            problems.append(_problem(file, error))
    functions = []
    for entries in declared.values():
        kinds = {kind_of(one.overload) for _, one in entries}
        if len(kinds) > 1:
            files = sorted({file for file, _ in entries})
            message = f"{entries[0][1].name} is declared as functions of several kinds"
            problems.append(Problem(", ".join(files), message))
        else:
            functions.append(_function(entries, sources))
    return functions, problems


def code_digest(text: str) -> str:
    """Return 16 hexadecimal digits of a file's code: neither comments nor blank lines count."""
    lines = text.splitlines()
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # then all of it counts
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _executed(file: str, text: str) -> types.ModuleType:
    """Return the module of a text. Its name has the text's digest.

    Another text is another module.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = f"{MODULE_PREFIX}{Path(file).stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module  # annotations are looked up there
    try:
        codegen.execute(file, text, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _declarations(module: types.ModuleType) -> Iterator[Declaration]:
    seen: set[int] = set()
    for value in vars(module).values():
        if id(value) not in seen and getattr(value, "__module__", None) == module.__name__:
            seen.add(id(value))
            yield from reversed(getattr(value, "__dict__", {}).get(MARK, ()))


def _problem(file: str, error: BaseException) -> Problem:
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == file:
            line = frame.lineno
    return Problem(file, f"{type(error).__name__}: {error}", line)


def _function(entries: list[tuple[str, Declaration]], sources: Mapping[str, str]) -> Function:
    file, first = entries[0]
    digests = [code_digest(sources[file]) for file in sorted({file for file, _ in entries})]
    return Function(
        first.name.upper(),
        kind_of(first.overload),
        CATEGORY,
        first.description,
        tuple(one.overload for _, one in entries),
        author=first.author,
        version=first.version,
        path=file,
        spelling=first.name,
        code="-".join(digests),
    )
