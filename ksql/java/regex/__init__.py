"""``java.util.regex``: patterns and replacements translated, semantics kept, time bounded."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.java.regex.matcher import (
    Budget,
    JavaRegex,
    TimedPattern,
    TooSlow,
    compile_java,
    compile_whole,
    part,
    use,
)
from ksql.java.regex.replacement import replace_all
from ksql.java.regex.translate import BadRegex
