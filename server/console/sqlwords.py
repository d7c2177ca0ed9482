"""Writes the words of the language for the console's editor: ``python -m server.console.sqlwords``.

They are those of the terminal, which reads them from the grammar; a test holds the file against it.
"""

from __future__ import annotations

import json
from pathlib import Path

from server.cli import words

FILE = Path(__file__).parent / "static" / "sqlwords.js"
_HEAD = "// The words of the language, written by server/console/sqlwords.py."


def text() -> str:
    """Return the module."""
    lists = {
        "KEYWORDS": sorted(words.KEYWORDS | words.RESERVED),
        "RESERVED": sorted(words.RESERVED),
        "TYPES": sorted(words.TYPES),
        "CLAUSES": list(words.CLAUSES),
    }
    lines = [f"export const {name} = {json.dumps(values)};" for name, values in lists.items()]
    return "\n".join([_HEAD, "", *lines, ""])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
