"""Hides passwords in the texts of statements that are kept: the history, what a migration says.

The terminal knows the service by its wire only, so it has a list of names of its own. A test
compares both lists.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "***"
_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|user\.info"
    r"|(?:api|access|private|account|master|shared|encryption|signing)[._-]?key\b"
    r"|ssl\.(?:keystore\.key|key\.pem)",
    re.IGNORECASE,
)
_STATED: Final = re.compile(
    r"""((?:'(?:[^']|'')*+'|"[^"]*+"|`[^`]*+`|(?<![\w.])[\w.]++)\s*+=\s*+)'((?:[^']|'')*+)('|\Z)"""
)
_SCHEME: Final = "://"
_URL: Final = re.compile(r"[^\s,'\"<>]++")


def without_secrets(text: str) -> str:
    """Return a text without the values of names that speak of a secret, and the users of URLs."""
    shown = _STATED.sub(_shown, text)
    return _URL.sub(lambda url: _without_user(url[0]), shown) if _SCHEME in shown else shown


def _shown(stated: re.Match[str]) -> str:
    return f"{stated[1]}'{HIDDEN}{stated[3]}" if _NAMES.search(stated[1]) else stated[0]


def _without_user(url: str) -> str:
    before, _, rest = url.partition(_SCHEME)
    _, at, place = rest.rpartition("@")
    return f"{before}{_SCHEME}{HIDDEN}@{place}" if at else url
