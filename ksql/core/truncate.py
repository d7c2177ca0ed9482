"""The part of a long text that a message or a log may carry."""

from __future__ import annotations

EXCERPT = 200
"""Characters of a user's value in a message."""


def excerpt(text: str, longest: int = EXCERPT) -> str:
    """Return the text, or its start and how much was left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text) - longest} more characters)"
