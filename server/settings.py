"""The server's configuration: a ``.properties`` file, then ``key=value`` options on top.

Source: java.util.Properties, load(Reader), for the file's format.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ksql.base.config import PROPERTIES, check_server
from ksql.base.errors import StartError
from ksql.kafka.registry_client import is_registry_property
from ksql.kafka.settings import is_client_property

_PAIR = re.compile(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_EXTENSIONS = "ksql.extension.dir"
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class BadConfiguration(StartError):
    """A configuration that cannot be read, and where."""


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads the server's configuration."""
    parser.add_argument("--config", metavar="FILE", type=Path, help="a .properties file")
    parser.add_argument(
        "-o",
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property, stronger than the file's; may be repeated",
    )


def _plain(match: re.Match[str]) -> str:
    found = match[1]
    return chr(int(found[1:], 16)) if len(found) > 1 else _LETTERS.get(found, found)


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines without comments and blanks; one that ends in a backslash is joined."""
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        slashes = len(pending) - len(pending.rstrip("\\"))
        if slashes % 2:
            pending = pending[:-1]
            continue
        yield pending
        pending = ""
    if pending:
        yield pending


def parse_properties(text: str) -> dict[str, str]:
    """Return the pairs of a ``.properties`` text; the last of several equal names wins."""
    found = {}
    for line in _logical_lines(text):
        pair = _PAIR.match(line)
        if pair:
            found[_ESCAPE.sub(_plain, pair[1])] = _ESCAPE.sub(_plain, pair[2])
    return found


def read_configuration(file: Path | None, options: Sequence[str] = ()) -> dict[str, str]:
    """Return the file's properties with the options (``key=value``) on top.

    A relative directory of user functions lies next to the file.
    Raises: BadConfiguration for a file that cannot be read or an option without an equals sign.
    """
    found = {} if file is None else parse_properties(_text_of(file))
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise BadConfiguration(
                f"the option '{option}' is not of the form key=value",
                hint="Example: -o ksql.service.id=orders_",
            )
        found[name.strip()] = value.strip()
    if file is not None:
        given = found.get(_EXTENSIONS, PROPERTIES[_EXTENSIONS].default)
        found[_EXTENSIONS] = str(file.absolute().parent / Path(given).expanduser())
    return found


def odd_properties(configuration: Mapping[str, str]) -> list[str]:
    """Check the configuration, wherever its properties come from; list those without effect.

    Raises: InvalidProperty for a value of the wrong type or out of bounds.
    """
    return check_server(configuration, _is_read_elsewhere)


def _is_read_elsewhere(name: str) -> bool:
    return name.startswith("spark.") or is_client_property(name) or is_registry_property(name)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"the configuration file {file} is not UTF-8 text") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise BadConfiguration(f"cannot read the configuration file {file}: {why}") from error
