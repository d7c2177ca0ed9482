"""Signs of a Python or Java stack trace, which no answer may show."""

from __future__ import annotations

TRACES = ("Traceback", 'File "', "\tat ", "    at ", ".java:", "Py4J", "py4j", "Exception:")


def assert_plain(text: str) -> None:
    """Fail if the text shows a stack trace."""
    for sign in TRACES:
        assert sign not in text, text
