"""``ksql datagen``: makes records of a schema and sends them, at a pace, until it must end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, TextIO

from ksql.core import KsqlError
from ksql.core.types import Column, Format, Role, capabilities, java_string
from ksql.formats import Registry, Serde, topic_serde
from ksql.kafka import Admin, KafkaSettings, KafkaTopics, RegistrySettings, registry_of
from ksql.kafka.producers import Sender
from ksql.sql.catalog import Topic
from server.datagen import schema as schemas
from server.datagen.options import USAGE, BadOption, DatagenOptions, parse

INTERRUPTED: Final = 130
_WRONG_OPTION: Final = 2
_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
TICK_S: Final = 0.1
MOST_AT_ONCE: Final = 10_000
"""So many records are sent before their acknowledgement is awaited."""

Portion = tuple[float, int]
"""The seconds to wait, and the number of records to send before that."""


def by_rate(per_second: int, clock: Callable[[], float]) -> Iterator[Portion]:
    """Yield portions of a steady rate; one that is late makes up for a second at most."""
    last, due = clock(), 1.0
    while True:
        now = clock()
        due = min(due + (now - last) * per_second, max(1.0, float(per_second)))
        last = now
        portion = min(int(due), MOST_AT_ONCE)
        due -= portion
        yield (0.0 if portion == MOST_AT_ONCE else max(TICK_S, (1 - due) / per_second)), portion


def at_random(max_interval_ms: int, dice: Random) -> Iterator[Portion]:
    """Yield single records, each at a random time after the one before."""
    while True:
        yield dice.uniform(0, max_interval_ms) / 1000, 1


@dataclass(frozen=True)
class Generator:
    """The maker of the records of one topic."""

    topic: str
    schema: schemas.RecordSchema
    key: int | None
    timestamp: int | None
    keys: Serde
    values: Serde

    def record(self, dice: Random) -> tuple[bytes | None, bytes | None, int, str]:
        """Return key, value, time in ms, and a line about the record.

        Raises: EncodeError.
        """
        row = self.schema.row(dice)
        key = None if self.key is None else row[self.key]
        stamp = None if self.timestamp is None else row[self.timestamp]
        time_ms = int(time.time() * 1000) if stamp is None else int(stamp)
        encoded = None if key is None else self.keys.encode((key,))
        return encoded, self.values.encode(row), time_ms, self._shown(row, key, time_ms)

    def _shown(self, row: Sequence[Any], key: Any, time_ms: int) -> str:
        columns = self.schema.columns
        values = " | ".join(
            java_string(value, column.type) for value, column in zip(row, columns, strict=True)
        )
        shown = "null" if self.key is None else java_string(key, columns[self.key].type)
        return f"{shown} --> [ {values} ] ts:{time_ms}"


def generator_of(options: DatagenOptions, registry: Callable[[], Registry | None]) -> Generator:
    """Return what makes the records; asks for ``registry`` only if a format needs one.

    Raises: BadOption, BadSchema, StatementError for a format that cannot hold the columns.
    """
    if options.schema is None:
        schema = schemas.quickstart(options.quickstart)
    else:
        schema = schemas.read(options.schema)
    key, stamp = _place(options.key, schema, "key"), _place(options.timestamp, schema, "timestamp")
    if stamp is not None and str(schema.columns[stamp].type) not in ("BIGINT", "INTEGER"):
        raise BadOption(
            f"timestamp is a field of whole milliseconds, and {options.timestamp} is not."
        )
    key_columns: tuple[Column, ...] = ()
    if key is not None:
        key_columns = (replace(schema.columns[key], role=Role.KEY),)
    takes = capabilities(options.value_format).properties
    delimiter = options.delimiter if "delimiter" in takes else ","
    key_format, value_format = (
        Format(options.key_format),
        Format(options.value_format, delimiter),
    )
    known = registry()
    return Generator(
        options.topic,
        schema,
        key,
        stamp,
        topic_serde(key_format, key_columns, "key", options.topic, known),
        topic_serde(value_format, schema.columns, "value", options.topic, known),
    )


def _place(name: str, schema: schemas.RecordSchema, option: str) -> int | None:
    if not name:
        return None
    names = [column.name for column in schema.columns]
    if name not in names:
        raise BadOption(f"{option}={name}: the schema has only the fields {', '.join(names)}.")
    return names.index(name)


def produce(
    generator: Generator,
    options: DatagenOptions,
    producer: Sender,
    over: threading.Event,
    out: TextIO,
    portions: Iterable[tuple[float, int]] | None = None,
) -> int:
    """Send records until there are enough, or ``over`` is set; return how many Kafka has.

    ``portions``: another pace than the options state.
    Raises: KsqlError.
    """
    dice, sent = Random(options.seed), 0  # noqa: S311 - test data are no secrets
    for pause_s, due in portions or _pace(options, dice):
        count = due if options.iterations is None else min(due, options.iterations - sent)
        lines = []
        for _ in range(count):
            key, value, time_ms, line = generator.record(dice)
            producer.send(generator.topic, key, value, timestamp=time_ms)
            lines.append(line)
        if count:
            producer.flush()
        sent += count
        if options.print_rows and lines:
            out.write("\n".join(lines) + "\n")
            out.flush()
        if sent == options.iterations or over.wait(pause_s):
            break
    return sent


def _pace(options: DatagenOptions, dice: Random) -> Iterator[tuple[float, int]]:
    if options.rate is not None:
        return by_rate(options.rate, time.monotonic)
    return at_random(options.max_interval_ms, dice)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 1 after an error, 130 if it was ended before the last of its iterations."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or {"-h", "--help", "help"} & {*arguments}:
        sys.stdout.write(USAGE)
        return 0 if arguments else _WRONG_OPTION
    try:
        options = parse(arguments)
        return _run(options)
    except BadOption as error:
        sys.stderr.write(f"ksql datagen: {error.text()}\n")
        return _WRONG_OPTION
    except KsqlError as error:
        sys.stderr.write(f"ksql datagen: {error.text()}\n")
        return 1


def _run(options: DatagenOptions) -> int:
    kafka = KafkaSettings.from_properties(options.properties)
    at = RegistrySettings.from_properties(options.properties)
    generator = generator_of(options, lambda: None if at is None else registry_of(at))
    topics = KafkaTopics(Admin(kafka))
    if topics.create(Topic(options.topic, options.partitions)):
        sys.stderr.write(f"created the topic {options.topic}\n")
    producer = Sender(kafka)
    with _until_signal() as over:
        try:
            sent = produce(generator, options, producer, over, sys.stdout)
        except BrokenPipeError:  # what has read the rows, such as head, has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        finally:
            producer.close()
    sys.stderr.write(f"{sent:,} records written to {options.topic}\n")
    return INTERRUPTED if options.iterations is not None and sent < options.iterations else 0


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """Give what is set once the user or the system asks for an end; a second time ends at once."""
    over = threading.Event()

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        over.set()

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield over
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
