"""The outside of a stored JSON object: its version, and the fields that this version has.

A form that was released is never edited: another set of fields is another version. So an object of
a known version that has other fields than that version is damaged, or was not written by us.

The oldest forms that are read, format zero, are those that the last build of 0.1.0 wrote. Whatever
is older is refused by name. That build reads all forms before, so the way leads through it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from typing import Any, Final

from ksql.core.errors import ServerError

ZERO_READER: Final = "the last build of version 0.1.0"
"""The version that reads everything before format zero."""
_FORMAT_ZERO: Final = "0.2.0"


def before_format_zero(what: str) -> str:
    """Return the fact about a stored artefact that no version from format zero on reads."""
    return f"{what} is older than format zero: version {_FORMAT_ZERO} and later do not read it"


class BeforeFormatZero(ServerError):
    """A stored artefact of a version before format zero; ``remedy`` follows after its reader."""

    code = 50002

    def __init__(self, what: str, detail: str = "", remedy: str = "") -> None:
        hint = f"Start {ZERO_READER}, which reads it."
        super().__init__(
            before_format_zero(what), detail=detail, hint=" ".join(filter(None, (hint, remedy)))
        )


Fields = dict[int, frozenset[str]]
"""The fields of each version, the version's own field apart."""


class NewerVersion(Exception):
    """The object was written by a later version of the service."""

    def __init__(self, version: int, known: int) -> None:
        super().__init__(f"it has version {version}, this server reads up to {known}")
        self.version = version
        self.known = known


class OlderVersion(Exception):
    """The object has a version that is not read any more."""

    def __init__(self, version: int, oldest: int) -> None:
        super().__init__(f"it has version {version}, this server reads from {oldest} on")
        self.version = version


def read(text: str | bytes, versions: Fields, key: str = "version") -> tuple[int, dict[str, Any]]:
    """Return version and fields of a stored object; ``key`` names the field of its version.

    Raises: NewerVersion, OlderVersion; ValueError for any damage.
    """
    body = parse(text)
    version = version_of(body, max(versions), key, min(versions))
    check_fields(body, versions[version] | {key}, version)
    return version, body


def parse(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object of a text.

    Raises: ValueError.
    """
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("it is no JSON object")
    return body


def check_fields(body: Mapping[str, Any], known: Set[str], version: int) -> None:
    """Refuse an object that has other fields than its version.

    Raises: ValueError.
    """
    if unknown := sorted(body.keys() - known):
        raise ValueError(f"version {version} has no field {_shown(unknown)}")
    if missing := sorted(known - body.keys()):
        raise ValueError(f"it lacks the field {_shown(missing)}")


def text_of(body: Mapping[str, Any], name: str) -> str:
    """Return a field that holds a text.

    Raises: ValueError.
    """
    value = body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.80} is no {name}")
    return value


def version_of(body: Mapping[str, Any], newest: int, key: str = "version", oldest: int = 1) -> int:
    """Return the version of an object.

    Raises: NewerVersion, OlderVersion; ValueError if it has none that was ever written.
    """
    if key not in body:
        raise ValueError(f"it has no {key}")
    version = body[key]
    if type(version) is not int or version < 1:
        raise ValueError(f"{version!r:.80} is no {key}")
    if version > newest:
        raise NewerVersion(version, newest)
    if version < oldest:
        raise OlderVersion(version, oldest)
    return version


def _shown(names: list[str]) -> str:
    return ", ".join(f'"{name:.80}"' for name in names)
