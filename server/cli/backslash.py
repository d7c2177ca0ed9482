"""Commands of other terminals, which begin with a backslash: what to write here instead."""

from __future__ import annotations

import re
from collections.abc import Callable

_HERE = {
    "?": "help",
    "h": "help",
    "q": "exit",
    "quit": "exit",
    "c": "server <url>",
    "connect": "server <url>",
    "d": "SHOW STREAMS; SHOW TABLES;",
    "ds": "SHOW STREAMS;",
    "dt": "SHOW TABLES;",
    "df": "SHOW FUNCTIONS;",
    "dT": "SHOW TYPES;",
    "l": "SHOW TOPICS;",
    "i": "run script '<file>'",
    "ir": "run script '<file>'",
    "o": "spool '<file>'",
    "s": "history",
    "set": "DEFINE <name> = '<value>';",
    "unset": "UNDEFINE <name>;",
    "pset": "output TABLE | JSON | CSV, pager ON | OFF, or set cli wrap ON | OFF",
    "a": "output TABLE | JSON | CSV",
}
_WORDS = re.compile(r"\\+\s*(\S*)\s*(.*)", re.DOTALL)


def has_backslash(text: str) -> bool:
    """Return whether the text begins with a backslash, as no statement does."""
    return text.lstrip().startswith("\\")


def advice(text: str, is_command: Callable[[str], bool]) -> str:
    """Return the sentence that refuses such a text and names the command or statement to use."""
    plain = text.strip().rstrip(";").strip()
    match = _WORDS.fullmatch(plain)
    word, rest = (match[1].rstrip("+"), match[2]) if match else ("", "")
    same = plain.lstrip("\\").strip()
    if same and is_command(same):
        instead = same
    elif word in ("d", "dt", "ds") and rest:
        instead = f"DESCRIBE {rest};"
    else:
        instead = _HERE.get(word, "")
    return f"commands have no backslash here; {f'write: {instead}' if instead else 'try: help'}"
