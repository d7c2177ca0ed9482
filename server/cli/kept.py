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
_PARAMETER: Final = re.compile(r"([?&;][^=&;]*+)(=[^&;]++)?")
_ORACLE: Final = re.compile(
    r"(jdbc:oracle:\w{1,9}:)[^\s/@,'\"]{1,128}+/[^\s@]{1,256}+@", re.IGNORECASE
)
_ASSIGNED: Final = re.compile(
    r"""((?:password|passwd|passphrase|secret|user\.info)["']?+\s{0,9}+[=:]\s{0,9}+)"""
    r"""(?:"[^"]++"?|'[^']++'?|[^\s"',;&]++)""",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """Return a text without the values of names that speak of a secret, and without those of URLs.

    Texts that databases are connected by have them, too: ``host=h password=x``.
    """
    shown = _ORACLE.sub(rf"\1{HIDDEN}@", _STATED.sub(_shown, text))
    return _URL.sub(_url_shown, shown) if _SCHEME in shown else shown


def _shown(stated: re.Match[str]) -> str:
    is_secret = _NAMES.search(stated[1]) is not None
    value = HIDDEN if is_secret else _ASSIGNED.sub(rf"\1{HIDDEN}", stated[2])
    return f"{stated[1]}'{value}{stated[3]}"


def _url_shown(url: re.Match[str]) -> str:
    before, scheme, rest = url[0].partition(_SCHEME)
    if not scheme:
        return before
    _, at, place = rest.rpartition("@")
    user = f"{HIDDEN}@" if at else ""
    return f"{before}{_SCHEME}{user}{_PARAMETER.sub(_parameter_shown, place)}"


def _parameter_shown(parameter: re.Match[str]) -> str:
    is_secret = parameter[2] and _NAMES.search(parameter[1])
    return f"{parameter[1]}={HIDDEN}" if is_secret else parameter[0]
