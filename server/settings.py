"""The server's configuration: a ``.properties`` file, the environment, ``key=value`` options.

Each is stronger than the one before.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ksql.core.config import PROPERTIES, STREAMS_PREFIX, canonical, check_server
from ksql.core.errors import StartError
from ksql.core.properties.model import Property
from server.propertiesfile import parse_properties
from server.variables import is_property, properties_of

_EXTENSIONS = "ksql.extension.dir"


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


def read_configuration(
    file: Path | None,
    options: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """Return the file's properties, then those of variables, the options (``key=value``) on top.

    A property may be written with or without the prefix of Kafka Streams: the strongest counts.
    A relative directory of user functions lies next to the file.
    Raises: BadConfiguration for a file that cannot be read or an option without an equals sign.
    """
    configuration = {} if file is None else parse_properties(_text_of(file))
    for name, value in properties_of(environment).items():
        _state(configuration, name, value)
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise BadConfiguration(
                f"the option '{option}' is not of the form key=value",
                hint="Example: -o ksql.service.id=orders_",
            )
        _state(configuration, name.strip(), value.strip())
    for row in PROPERTIES.values():
        if row.stands_for and row.stands_for not in configuration:
            _take_for(configuration, row)
    if file is not None:
        given = configuration.get(_EXTENSIONS, PROPERTIES[_EXTENSIONS].default)
        configuration[_EXTENSIONS] = str(file.absolute().parent / Path(given).expanduser())
    return configuration


def _state(configuration: dict[str, str], name: str, value: str) -> None:
    """Set a property; another spelling of it that is there already is weaker and goes."""
    for spelling in (canonical(name), STREAMS_PREFIX + canonical(name)):
        configuration.pop(spelling, None)
    configuration[name] = value


def _take_for(configuration: dict[str, str], row: Property) -> None:
    """Take the property that is stated for the one that it stands for."""
    for spelling in (row.name, STREAMS_PREFIX + row.name):
        if spelling in configuration:
            configuration[row.stands_for] = configuration.pop(spelling)


def odd_properties(configuration: Mapping[str, str]) -> list[str]:
    """Check the configuration, wherever its properties come from; list those without effect.

    Raises: InvalidProperty for a value of the wrong type or out of bounds.
    """
    return check_server(configuration, is_property)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"the configuration file {file} is not UTF-8 text") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise BadConfiguration(f"cannot read the configuration file {file}: {why}") from error
