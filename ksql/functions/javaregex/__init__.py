"""``java.util.regex`` on Python's ``re``: patterns and replacements translated, semantics kept."""

from __future__ import annotations

from ksql.functions.javaregex.replacement import replace_all
from ksql.functions.javaregex.translate import BadRegex, compile_java

__all__ = ["BadRegex", "compile_java", "replace_all"]
