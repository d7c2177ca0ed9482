"""The options of ``ksql datagen``: ``name=value``, as ksql-datagen has them.

Source: ksqlDB's ksql-datagen; docs/datagen.md#options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from ksql.core import KsqlError
from ksql.core.types import FormatName
from server.datagen.schema import QUICKSTARTS
from server.propertiesfile import parse_properties


class BadOption(KsqlError):
    """An option that is not known, or whose value does not fit."""


USAGE: Final = """usage: ksql datagen (quickstart=NAME | schema=FILE) [name=value ..]

Write records into a topic until ctrl-C, or as many as iterations says.

  quickstart=orders|users|pageviews   a schema that is here already
  schema=FILE               an Avro schema with arg.properties, as of Avro's random generator
  topic=NAME                (NAME_kafka_topic_FORMAT of a quickstart)
  key=FIELD                 the field that is the key, too (that of the quickstart)
  timestamp=FIELD           the field with a record's time in ms (the clock's time)
  format=json|avro|..       how values are written (json); value-format is the same
  key-format=kafka|..       how keys are written (kafka)
  valueDelimiter=C          between the values of the format delimited (,)
  partitions=N              of a topic that is not there yet (1)
  iterations=N              how many records (no end)
  msgRate=N                 records a second
  maxInterval=MS            instead: a record at random times, at most so far apart (500)
  printRows=true|false      whether each record is shown (true)
  seed=N                    the same N gives the same records
  bootstrap-server=HOST     (localhost:9092)
  schemaRegistryUrl=URL     (http://localhost:8081)
  propertiesFile=FILE       properties of Kafka's client and the registry's
"""
_ALIASES: Final = {
    "valueformat": "format",
    "bootstrapservers": "bootstrapserver",
    "server": "bootstrapserver",
}
_FORMATS: Final[tuple[FormatName, ...]] = get_args(FormatName)
_WITHOUT_EFFECT: Final = frozenset({"nthreads"})
_DELIMITERS: Final = {"TAB": "\t", "SPACE": " "}


@dataclass(frozen=True, slots=True)
class DatagenOptions:
    """The records to write, their topic and their pace; the times are in milliseconds."""

    quickstart: str = ""
    schema: Path | None = None
    topic: str = ""
    key: str = ""
    timestamp: str = ""
    value_format: FormatName = "JSON"
    key_format: FormatName = "KAFKA"
    delimiter: str = ","
    partitions: int = 1
    iterations: int | None = None
    rate: int | None = None
    max_interval_ms: int = 500
    print_rows: bool = True
    seed: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def parse(arguments: Sequence[str]) -> DatagenOptions:
    """Return what the arguments say.

    Raises: BadOption.
    """
    given = _Given(arguments)
    quickstart, schema = given.text("quickstart").lower(), given.text("schema")
    if bool(quickstart) == bool(schema):
        raise BadOption("One of quickstart and schema is needed.", hint="See ksql datagen --help.")
    if quickstart and quickstart not in QUICKSTARTS:
        raise BadOption(f"There is no quickstart {quickstart}, only {', '.join(QUICKSTARTS)}.")
    format_ = given.format("format", "JSON")
    topic = given.text("topic") or (quickstart and f"{quickstart}_kafka_topic_{format_.lower()}")
    if not topic:
        raise BadOption("A schema needs a topic: topic=NAME.")
    options = DatagenOptions(
        quickstart=quickstart,
        schema=Path(schema) if schema else None,
        topic=topic,
        key=given.text("key") or QUICKSTARTS.get(quickstart, ""),
        timestamp=given.text("timestamp"),
        value_format=format_,
        key_format=given.format("keyformat", "KAFKA"),
        delimiter=_delimiter(given.text("valuedelimiter") or ","),
        partitions=given.count("partitions") or 1,
        iterations=given.count("iterations"),
        rate=given.count("msgrate"),
        max_interval_ms=given.count("maxinterval") or DatagenOptions().max_interval_ms,
        print_rows=given.flag("printrows", default=True),
        seed=given.count("seed"),
        properties=given.properties(),
    )
    given.check_all_read()
    return options


def _delimiter(text: str) -> str:
    delimiter = _DELIMITERS.get(text.upper(), text)
    if len(delimiter) != 1:
        raise BadOption(f"valueDelimiter is one character, TAB or SPACE, not {text!r}.")
    return delimiter


class _Given:
    """The arguments by their names, which have no case, hyphens or underscores."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._values: dict[str, str] = {}
        self._spelled: dict[str, str] = {}
        self._read: set[str] = set(_WITHOUT_EFFECT)
        for argument in arguments:
            name, equals, value = argument.partition("=")
            plain = re.sub("[-_]", "", name).lower()
            if not equals or not plain:
                raise BadOption(f"{argument!r} is not of the form name=value.")
            plain = _ALIASES.get(plain, plain)
            if plain in self._values:
                raise BadOption(f"{name} is given twice.")
            self._values[plain], self._spelled[plain] = value, name

    def text(self, name: str) -> str:
        """Return the value, or an empty text."""
        self._read.add(name)
        return self._values.get(name, "")

    def count(self, name: str) -> int | None:
        """Return a whole number above 0, None if it is not given.

        Raises: BadOption.
        """
        text = self.text(name)
        if not text:
            return None
        if not text.isdecimal() or not int(text):
            raise BadOption(f"{self._spelled[name]} is a whole number above 0, not {text!r}.")
        return int(text)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return what is true or false.

        Raises: BadOption.
        """
        text = self.text(name).lower()
        if text not in ("", "true", "false"):
            raise BadOption(f"{self._spelled[name]} is true or false, not {text!r}.")
        return text == "true" if text else default

    def format(self, name: str, default: FormatName) -> FormatName:
        """Return the name of a format.

        Raises: BadOption.
        """
        text = self.text(name).upper() or default
        for known in _FORMATS:
            if known == text:
                return known
        names = ", ".join(each.lower() for each in _FORMATS)
        raise BadOption(f"There is no format {text.lower()}, only {names}.")

    def properties(self) -> dict[str, str]:
        """Return the properties of clients: those of a file, and over them what is given.

        Raises: BadOption.
        """
        properties = {
            "bootstrap.servers": "localhost:9092",
            "ksql.schema.registry.url": "http://localhost:8081",
        }
        if file := self.text("propertiesfile"):
            properties |= _file(Path(file))
        for name, target in (
            ("bootstrapserver", "bootstrap.servers"),
            ("schemaregistryurl", "ksql.schema.registry.url"),
        ):
            if value := self.text(name):
                properties[target] = value
        return properties

    def check_all_read(self) -> None:
        """Refuse what no option is called.

        Raises: BadOption.
        """
        for name in self._values:
            if name not in self._read:
                raise BadOption(
                    f"There is no option {self._spelled[name]}.", hint="See ksql datagen --help."
                )


def _file(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadOption(f"Cannot read the properties {path}: {why}.") from error
