"""Regular expressions, with Java's syntax."""

from __future__ import annotations

from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java.regex import JavaRegex, compile_java, part, replace_all


def extract(pattern: str, text: str, group: int = 0) -> str | None:
    """Return the first match, or one of its groups; NULL if there is none."""
    regex = compile_java(pattern)
    spans = regex.search(text)
    if spans is None or not 0 <= group <= regex.groups:
        return None
    return part(text, spans, group)


def extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    """Return all matches, or one group of each; NULL if the pattern has no such group."""
    regex = compile_java(pattern)
    if not 0 <= group <= regex.groups:
        return None
    return [part(text, spans, group) for spans in regex.finditer(text)]


def split_to_array(text: str, pattern: str) -> list[str]:
    """Return the parts between matches, empty ones included.

    Single characters for an empty pattern.
    """
    regex = compile_java(pattern)
    if regex.matches_empty:
        return _java_split(text, regex)
    parts = []
    start = 0
    for spans in regex.finditer(text):
        parts.append(text[start : spans[0][0]])
        start = spans[0][1]
    return [*parts, text[start:]]


def _java_split(text: str, regex: JavaRegex) -> list[str]:
    """Split as ``Pattern.split``: no empty part at the end, nor first for an empty match."""
    parts = []
    start = 0
    for spans in regex.finditer(text):
        low, high = spans[0]
        if high > 0:
            parts.append(text[start:low])
            start = high
    parts.append(text[start:])
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


REGEXPS = family(
    "REGULAR EXPRESSION",
    {
        "regexp_extract": (
            "The first part of the text that matches the pattern, or a group of it.",
            Scalar(("STRING pattern", "STRING input"), "STRING", extract),
            Scalar(("STRING pattern", "STRING input", "INT group"), "STRING", extract),
        ),
        "regexp_extract_all": (
            "All parts of the text that match the pattern, or a group of each.",
            Scalar(("STRING pattern", "STRING input"), "ARRAY<STRING>", extract_all),
            Scalar(("STRING pattern", "STRING input", "INT group"), "ARRAY<STRING>", extract_all),
        ),
        "regexp_replace": (
            "The text with every match of the pattern replaced; $1 stands for a group.",
            Scalar(("STRING str", "STRING regexp", "STRING newStr"), "STRING", replace_all),
        ),
        "regexp_split_to_array": (
            "The parts of the text between matches of the pattern.",
            Scalar(("STRING string", "STRING regexp"), "ARRAY<STRING>", split_to_array),
        ),
    },
)
