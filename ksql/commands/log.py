"""The command topic: one partition, never compacted, written in transactions. The order of truth.

Source: ksqlDB's command topic; the reference's page on operations, section 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.base.errors import KsqlError, ServerError
from ksql.commands.record import check_size, decode, encode
from ksql.engine.ports import Command, CommandInDoubt
from ksql.topics.admin import Admin, TopicChange
from ksql.topics.client import CommitInDoubt, Reader, TransactionalSender
from ksql.topics.kafka_errors import ProducerFenced

if TYPE_CHECKING:
    from ksql.topics.client import RawRecord
    from ksql.topics.settings import KafkaSettings

_PAUSE_S = 0.005
_RECORD_AND_MARKER = 2
_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "-1"}


def topic_name(service_id: str) -> str:
    """``_confluent-ksql-<service id>_command_topic``."""
    return f"_confluent-ksql-{service_id}_command_topic"


class CommandTopicBroken(ServerError):
    """The command topic does not look as this service left it."""


class NotCommitted(ServerError):
    """Kafka went away before a command counted."""

    def __init__(self) -> None:
        super().__init__(
            "Kafka went away before the statement was written; nothing has changed",
            hint="Send it again.",
        )


@dataclass(frozen=True)
class _Doubt:
    """A command that may be in the topic: the first of these bytes from that offset on."""

    name: str
    offset: int
    key: bytes
    value: bytes
    fenced: bool

    def is_in(self, record: RawRecord) -> bool:
        return (record.offset, record.key, record.value) == (self.offset, self.key, self.value)


@dataclass
class _Pen:
    offset: int
    _write: Callable[[Command], None]

    def check(self, command: Command) -> None:
        """Refuse a command that is too large for a record of the topic.

        Raises: CommandTooLarge.
        """
        check_size(command)

    def append(self, command: Command) -> None:
        """Write and commit."""
        self._write(command)


class KafkaCommandLog:
    """The command topic of one service; for one thread at a time.

    ``apply(offset, command)`` is called for every command that another server wrote, in order,
    before a statement of this one is checked.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        service_id: str,
        replicas: int,
        apply: Callable[[int, Command], None],
    ) -> None:
        self.topic = topic_name(service_id)
        self._settings = settings
        self._replicas = replicas
        self._apply = apply
        self._admin = Admin(settings)
        self._sender = TransactionalSender(settings, self.topic)
        self._reader = Reader(settings)
        self._known = 0
        self._doubt: _Doubt | None = None
        self.sound = True
        """Whether all commands that were read could be applied."""

    def open(self) -> None:
        """Create the topic if it is missing, take over its writing, replay it whole.

        Raises: CommandTopicBroken, UnreadableCommand, KafkaUnreachable.
        """
        found = self._admin.topics().get(self.topic)
        if found is None:
            self._admin.create(TopicChange(self.topic, 1, self._replicas, _CONFIGS))
        elif found.partitions != 1:
            raise CommandTopicBroken(
                f"the command topic {self.topic} has {found.partitions} partitions, not 1"
            )
        self._sender.start()
        self._reader.assign({(self.topic, 0): 0})
        self.catch_up()

    def catch_up(self) -> int:
        """Apply what others have written meanwhile; returns the offset behind the last record.

        Raises: UnreadableCommand, and every time again: nothing behind such a command is applied;
            CommandTopicBroken.
        """
        if self._doubt is not None:
            raise CommandInDoubt(self._doubt.name, "")
        end = self._settled_end()
        if end == self._known:
            return end
        if self._known > self._reader.positions[self.topic, 0]:
            self._reader.assign({(self.topic, 0): self._known})
        for batch in self._reader.read_to_end():
            for record in batch:
                try:
                    self._apply(record.offset, decode(record.offset, record.key, record.value))
                except BaseException:  # whatever it is: the record is read again
                    self.sound = False
                    self._reader.assign({(self.topic, 0): record.offset})
                    raise
        self.sound = True
        self._known = self._reader.positions[self.topic, 0]
        return self._known

    def _settled_end(self) -> int:
        """The topic's end, once the markers of all transactions are there.

        The broker writes them after it has answered; until then the records are not readable, and
        the next offset is not known.
        """
        place = (self.topic, 0)
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            readable = self._admin.end_offsets([self.topic])[place]
            if readable == self._admin.end_offsets([self.topic], committed=False)[place]:
                return readable
            if time.monotonic() > deadline:
                raise CommandTopicBroken(
                    f"a transaction on the command topic {self.topic} stays open"
                )
            time.sleep(_PAUSE_S)

    @contextmanager
    def begin(self) -> Iterator[_Pen]:
        """Read to the end, then hold the pen."""
        offset = self.catch_up()

        def write(command: Command) -> None:
            key, value = encode(command)
            try:
                with self._sender.transaction():
                    self._sender.send(self.topic, key, value, partition=0)
            except CommitInDoubt as problem:
                fenced = isinstance(problem.__cause__, ProducerFenced)
                self._doubt = _Doubt(command.id, offset, key, value, fenced)
                self._settle_now(problem)
            else:
                self._known = offset + _RECORD_AND_MARKER  # no need to read what we have written

        yield _Pen(offset, write)

    def _settle_now(self, problem: CommitInDoubt) -> None:
        """Kafka may be there again already."""
        try:
            written = self.settle()
        except KsqlError as away:
            raise CommandInDoubt(str(self._doubt and self._doubt.name), away.text()) from problem
        if not written:
            raise NotCommitted from problem

    def settle(self) -> bool:
        """Whether the command in doubt is in the topic.

        Beginning anew as a writer has Kafka finish what was open; unless another server writes now:
        then that has happened already.

        Raises: KsqlError as long as that cannot be told.
        """
        doubt = self._doubt
        if doubt is None:
            return True
        if not doubt.fenced:
            self._sender.reopen()
        self._settled_end()
        place = (self.topic, 0)
        self._reader.assign({place: doubt.offset})
        found = [record for batch in self._reader.read_to_end() for record in batch]
        written = any(doubt.is_in(record) for record in found)
        self._doubt = None
        self._known = doubt.offset + 1 if written else doubt.offset
        self._reader.assign({place: self._known})
        return written

    def close(self) -> None:
        """Release the connections."""
        self._reader.close()
        self._sender.close()
