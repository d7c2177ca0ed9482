"""``java.net.URI``: what is one, and its parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from ksql.core.types import INT_MAX
from ksql.java.values import EvaluationError

# RFC 2396, appendix B.
_SPLIT = re.compile(
    r"(?:(?P<scheme>[^:/?#]+):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*\Z")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ILLEGAL = re.compile(r'[\x00-\x20"<>\\^`{|}\x7f-\xa0\u2000-\u200a\u2028\u2029\u202f\u3000]')
_BRACKET = re.compile(r"[\[\]]")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_HOST = re.compile(
    rf"(?:(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.?"
    r"|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.%A-Za-z]+\])\Z"
)
_SERVER = re.compile(r"(?:[^@]*@)?(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d*))?\Z")


class BadUrl(EvaluationError):
    """A text that is no URI."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"URL input has invalid syntax: {text}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uri:
    """The parts of a URI, decoded; None for those that it does not have."""

    scheme: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


def parse_uri(text: str) -> Uri:
    """Return the parts of a URI.

    Raises: BadUrl.
    Source: java.net.URI (RFC 2396 with other characters); hosts as server-based authorities.
    """
    match = _SPLIT.fullmatch(text)
    if match is None or not text:
        raise BadUrl(text, "Expected authority or path")
    _check(text, match)
    scheme, path, query = match["scheme"], match["path"], match["query"]
    fragment = _decoded(match["fragment"])
    if scheme and match["authority"] is None and not path.startswith("/"):
        if not path and query is None:
            raise BadUrl(text, "Expected scheme-specific part")
        return Uri(scheme=scheme, host=None, port=None, path=None, query=None, fragment=fragment)
    host, port = _server(match["authority"])
    if host is None and _BRACKET.search(match["authority"] or ""):
        raise BadUrl(text, "Malformed IPv6 address")
    return Uri(
        scheme=scheme,
        host=host,
        port=port,
        path=_decoded(path),
        query=_decoded(query),
        fragment=fragment,
    )


def _check(text: str, match: re.Match[str]) -> None:
    scheme, authority = match["scheme"], match["authority"]
    if text.startswith(":"):
        raise BadUrl(text, "Expected scheme name")
    if scheme is not None and not _SCHEME.match(scheme):
        raise BadUrl(text, "Illegal character in scheme name")
    if authority == "" and not match["path"]:
        raise BadUrl(text, "Expected authority")
    if _ILLEGAL.search(text) or text.count("#") > 1:
        raise BadUrl(text, "Illegal character")
    if _BRACKET.search(match["path"]):
        raise BadUrl(text, "Illegal character")
    if _BAD_PERCENT.search(text):
        raise BadUrl(text, "Malformed escape pair")


def _server(authority: str | None) -> tuple[str | None, int | None]:
    """Host and port; none of both if the authority does not name a server."""
    match = _SERVER.match(authority) if authority else None
    if match is None or not _HOST.match(match["host"]):
        return None, None
    port = int(match["port"]) if match["port"] else None
    return (match["host"], port) if port is None or port <= INT_MAX else (None, None)


def _decoded(part: str | None) -> str | None:
    if part is None or "%" not in part:
        return part
    return unquote_to_bytes(part).decode("utf-8", "replace")
