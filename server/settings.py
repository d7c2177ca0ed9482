"""The configuration of server and tools: a ``.properties`` file, the environment, options.

Each is stronger than the one before.

The environment variables are those of ksqlDB's image: ``KSQL_LISTENERS`` is the property
``listeners``.

A property's name is the variable's without the prefix, in small letters. One underscore is a point,
two are one, three are a hyphen. A variable whose name then is no property's is left alone: other
parts and other tools have some, too.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ksql.core import (
    FUNCTION_PREFIX,
    HIDDEN,
    PROPERTIES,
    STREAMS_PREFIX,
    KsqlError,
    Settings,
    StartError,
    canonical,
    check_server,
    excerpt,
    near_property,
)
from ksql.core.properties import Property, is_javas
from ksql.kafka import is_client_property, is_registry_property
from server.propertiesfile import parse_properties

PREFIX: Final = "KSQL_"
OPTIONS: Final = "KSQL_OPTS"
_UNDERSCORES = re.compile("_{1,3}")
_LETTERS: Final = ("", ".", "_", "-")
_OWN: Final = re.compile(
    r"KSQL_(?:CACHE_DIR|HISTORY_FILE|MAVEN_REPOSITORY|SPARK_ARCHIVE|QUICK_TESTS|TEST_\w+|CRASH_\w+)"
)
"""Variables of this project that are no properties."""
_FOR_JVM: Final = {
    "KSQL_HEAP_OPTS": "ksql.spark.driver.memory sets the heap of Spark's driver.",
    "KSQL_JVM_PERFORMANCE_OPTS": "",
    "KSQL_GC_LOG_OPTS": "",
    "KSQL_JMX_OPTS": "",
    "KSQL_JMX_PORT": "",
    "KSQL_JMX_HOSTNAME": "",
    "KSQL_CLASSPATH": "User functions are Python files in ksql.extension.dir.",
    "KSQL_LOG4J_OPTS": "The option --log-level says how much is logged.",
    "KSQL_LOG4J_ROOT_LOGLEVEL": "The option --log-level says how much is logged.",
    "KSQL_LOG4J_LOGGERS": "The option --log-level says how much is logged.",
    "KSQL_LOG_DIR": "The log goes to standard error.",
}


def is_property(name: str) -> bool:
    """Return whether something reads a property of that name."""
    plain = canonical(name)
    known = plain in PROPERTIES or plain.startswith((FUNCTION_PREFIX, "spark."))
    return known or is_client_property(name) or is_registry_property(name)


def _is_stated(name: str) -> bool:
    """Return whether it is a property; one of Kafka's Java clients gives a warning at the start."""
    javas = name.startswith(STREAMS_PREFIX) and is_javas(canonical(name))
    return javas or is_property(name)


def properties_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that environment variables state; ``KSQL_OPTS`` comes before others."""
    properties = {}
    for variable, value in environment.items():
        name = _name(variable)
        if name and _is_stated(name):
            properties[name] = value
    stated, _ = _options(environment.get(OPTIONS, ""))
    return properties | stated


def odd_variables(environment: Mapping[str, str]) -> list[str]:
    """List the variables that look like properties and have no effect, without their values."""
    odd = [*_odd(environment)]
    _, others = _options(environment.get(OPTIONS, ""))
    if others:
        shown = ", ".join(map(excerpt, others))
        odd.append(f"{OPTIONS}: {shown} has no effect; only -D<property>=<value> is read.")
    return [name.rstrip() for name in odd]


def _odd(environment: Mapping[str, str]) -> Iterator[str]:
    for variable in sorted(environment):
        name = _name(variable)
        if variable in _FOR_JVM:
            yield f"the variable {variable} is for a JVM and has no effect. {_FOR_JVM[variable]}"
        elif name and not _is_stated(name) and not _OWN.fullmatch(variable):
            yield (
                f"the variable {variable} has no effect: the property {excerpt(name)} is not known."
                f" {near_property(name)}"
            )


def _name(variable: str) -> str:
    """Return the property that a variable is about; empty for a variable of another kind."""
    if not variable.startswith(PREFIX) or variable == OPTIONS:
        return ""
    plain = variable.removeprefix(PREFIX).lower()
    return _UNDERSCORES.sub(lambda underscores: _LETTERS[len(underscores[0])], plain)


def _options(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the properties of ``-Dname=value``, and the names of all else."""
    options, others = {}, []
    for word in _words(text):
        name, equals, value = word.removeprefix("-D").partition("=")
        if word.startswith("-D") and equals and _is_stated(name):
            options[name] = value
        else:
            others.append(word.partition("=")[0] if word.startswith("-") else HIDDEN)
    return options, others


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is never closed: a JVM's start script would split it, too
        return text.split()


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


def run_tool(command: str, arguments: argparse.Namespace, run: Callable[[Settings], object]) -> int:
    """Run a tool of the server with its configuration; 1 after an error, which is printed."""
    logging.basicConfig(level=logging.ERROR)
    try:
        configuration = read_configuration(arguments.config, arguments.override)
        for odd in odd_properties(configuration):
            sys.stderr.write(f"{command}: warning: {odd}\n")
        run(Settings(configuration))
    except KsqlError as error:
        sys.stderr.write(f"{command}: {error.text()}\n")
        return 1
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{command}: {error}\n")
        return 1
    return 0


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadConfiguration(f"the configuration file {file} is not UTF-8 text") from error
    except OSError as error:
        why = error.strerror or str(error)
        raise BadConfiguration(f"cannot read the configuration file {file}: {why}") from error
