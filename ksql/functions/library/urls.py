"""URLs: their parts, and the form encoding of parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote_plus, unquote_plus

from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java import EvaluationError, Uri, parse_uri

_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class BadParameter(EvaluationError):
    """A percent sign without two hexadecimal digits after it."""

    def __init__(self, text: str) -> None:
        super().__init__(f"URL input has invalid escapes: {text}")


def parameter(url: str, name: str) -> str | None:
    """Return the value of the first parameter of that name in the query; '' if it has none."""
    query = parse_uri(url).query
    if query is None:
        return None
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if key == name:
            return value
    return None


def encode(text: str) -> str:
    """Return the text as a form sends it: a plus for a blank, percent signs for most else."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def decode(text: str) -> str:
    """Return the text of its form encoding."""
    if _BAD_PERCENT.search(text):
        raise BadParameter(text)
    return unquote_plus(text)


def _part(get: Callable[[Uri], object], kind: str = "STRING") -> Scalar:
    return Scalar(("STRING input",), kind, lambda url: get(parse_uri(url)))


URLS = family(
    "URL",
    {
        "url_extract_protocol": ("The protocol of a URL.", _part(lambda uri: uri.scheme)),
        "url_extract_host": ("The host of a URL.", _part(lambda uri: uri.host)),
        "url_extract_port": ("The port in a URL.", _part(lambda uri: uri.port, "INT")),
        "url_extract_path": ("The path of a URL.", _part(lambda uri: uri.path)),
        "url_extract_query": ("The query of a URL, decoded.", _part(lambda uri: uri.query)),
        "url_extract_fragment": (
            "What follows the # of a URL.",
            _part(lambda uri: uri.fragment),
        ),
        "url_extract_parameter": (
            "The value of a parameter in the query of a URL.",
            Scalar(("STRING input", "STRING paramToFind"), "STRING", parameter),
        ),
        "url_encode_param": (
            "The text encoded so that it can be a parameter of a URL.",
            Scalar(("STRING url",), "STRING", encode),
        ),
        "url_decode_param": (
            "The text of an encoded parameter of a URL.",
            Scalar(("STRING url",), "STRING", decode),
        ),
    },
)
