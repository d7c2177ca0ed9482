"""``java.util.regex``: patterns and replacements translated, semantics kept, time bounded."""

from __future__ import annotations

from ksql.functions.javaregex.matcher import (
    JavaRegex,
    TimedPattern,
    TooSlow,
    compile_java,
    compile_whole,
    part,
)
from ksql.functions.javaregex.replacement import replace_all
from ksql.functions.javaregex.translate import BadRegex

__all__ = [
    "BadRegex",
    "JavaRegex",
    "TimedPattern",
    "TooSlow",
    "compile_java",
    "compile_whole",
    "part",
    "replace_all",
]
