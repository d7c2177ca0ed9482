"""The functions that the test files call besides the built-in ones."""

from __future__ import annotations

from pathlib import Path

from ksql.functions.registry import BUILTINS
from ksql.functions.udf import load_sources, read_directory

SOURCES, _unread = read_directory(Path(__file__).parent / "functions")
_functions, _problems = load_sources(SOURCES)
if _unread or _problems:
    raise RuntimeError(f"the test functions cannot be loaded: {[*_unread, *_problems]}")
FUNCTIONS = BUILTINS.with_(_functions)
