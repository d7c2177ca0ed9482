"""The command topic, in order and transactional, and the file of the applied offset.

The command topic is the order of truth: one partition, never compacted, written in transactions.

Source: ksqlDB's command topic; docs/architecture.md#what-is-stored.

A small file in the state directory holds the applied offset.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from ksql.control.engine.ports import Command, CommandInDoubt
from ksql.control.log.quarantine import (
    OTHER_ID,
    CommandNotApplied,
    Quarantine,
    UnreadableCommand,
    UnusableCommand,
    stepped_over,
    stepping_over,
)
from ksql.control.log.record import check_size, decode, encode, of_ksqldb
from ksql.core import (
    APPLIED_OFFSET_DAMAGED,
    KsqlError,
    ServerError,
    versioned_json,
    write_atomically,
)
from ksql.kafka import (
    BEGINNING,
    Journal,
    KafkaUnreachable,
    OpenTransaction,
    ProducerFenced,
    TopicIntegrity,
    span_of,
)
from ksql.kafka.producers import CommitInDoubt

if TYPE_CHECKING:
    from pathlib import Path

    from ksql.core import RawRecord
    from ksql.kafka import KafkaSettings
    from ksql.kafka.producers import TransactionalSender


_log = logging.getLogger(__name__)
_RECORD_AND_MARKER = 2
_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Nothing is ever lost of it, whatever the broker's defaults are."""


def topic_name(service_id: str) -> str:
    """Return ``_confluent-ksql-<service id>_command_topic``."""
    return f"_confluent-ksql-{service_id}_command_topic"


class CommandTopicBroken(ServerError):
    """The command topic does not look as this service left it."""

    operator = True


class CommandTopicLost(CommandTopicBroken):
    """Commands that were read are not in the topic any more: later ones could contradict them."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(
            "The server has detected corruption in the command topic due to modifications "
            f"performed on it: {what}",
            detail="Statements that change something are refused. Running queries continue: what "
            "they compute does not depend on the topic. The next start without it is refused.",
            hint=f"Stop the server, bring {topic} back from a backup (`ksql restore DIRECTORY`) "
            "and start again. Without a backup, note what SHOW QUERIES and DESCRIBE say before you "
            "stop.",
        )
        self.what = what


class CommandTopicRecreated(CommandTopicBroken):
    """The topic that was followed is gone: its commands count no more."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"the command topic {topic} was deleted and recreated")


class CommandTopicOfKsqlDb(CommandTopicBroken):
    """The topic belongs to a service of ksqlDB, which names its command topics alike."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"the command topic {topic} belongs to ksqlDB, which has a service of this id on this "
            "Kafka",
            detail="Nothing was changed in it.",
            hint=OTHER_ID,
        )


class NotCommitted(ServerError):
    """Kafka went away before a command counted."""

    code = KafkaUnreachable.code

    def __init__(self) -> None:
        super().__init__(
            "Kafka went away before the statement was written; nothing has changed",
            hint="Send it again.",
        )


@dataclass(frozen=True)
class _Doubt:
    """A command that may be in the topic, as these records from that offset on."""

    name: str
    offset: int
    entries: list[tuple[bytes, bytes]]
    fenced: bool


@dataclass
class _LogWriter:
    offset: int
    _write: Callable[[Command], None]

    def check(self, command: Command) -> None:
        """Refuse a command that is too large for a record of the topic.

        Raises: CommandTooLarge.
        """
        check_size(command)

    def append(self, command: Command) -> None:
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
        skip: frozenset[int] = frozenset(),
        confirm: Callable[[], object] = lambda: None,
    ) -> None:
        """Take ``skip``: the offsets that the operator gives up if they cannot be taken in.

        ``confirm`` raises NotLeader if another server leads: that one's writer must not be fenced.
        """
        self.topic = topic_name(service_id)
        self._apply = apply
        self._journal = Journal(settings, self.topic, replicas, _CONFIGS)
        self._known = 0
        self._doubt: _Doubt | None = None
        self._followed = ""
        self._skip = skip
        self._confirm = confirm
        self._fenced = False
        self.quarantine: Quarantine | None = None
        """The command that could not be taken in, if there is one."""
        self.wholeness = TopicIntegrity(self.topic)

    @property
    def problem(self) -> KsqlError | None:
        """The reason that statements are refused: the topic, or a command, is lost."""
        if self.wholeness.problem:
            return CommandTopicLost(self.topic, self.wholeness.problem)
        return None if self.quarantine is None else self.quarantine.problem

    @property
    def sound(self) -> bool:
        """Whether statements can be written to the topic."""
        return self.problem is None

    @property
    def _sender(self) -> TransactionalSender:
        return self._journal.sender

    @property
    def known(self) -> int:
        """The offset after the last command that was applied."""
        return self._known

    def open(self) -> None:
        """Create the topic if it is missing, take over its writing, replay it.

        As far as its commands can be taken in: ``quarantine`` says where it ended, if it did.
        Raises: CommandTopicBroken, KafkaUnreachable.
        """
        if self._ensure_topic():
            self._mend()
        self._journal.acquire()
        self._replay_all()

    def follow(self) -> None:
        """Replay the topic, made if it is missing, without taking over its writing.

        Raises: as ``open`` does.
        """
        self._ensure_topic()
        self._followed = self._journal.admin.topic_id(self.topic) or ""
        self._replay_all()

    def acquire(self) -> None:
        """Take over the writing of a topic that was followed; replay what comes after.

        Raises: as ``open`` does, CommandTopicRecreated.
        """
        self._check_followed()
        self._mend()
        self._journal.acquire()
        self._replay()

    def _check_followed(self) -> None:
        """Look whether the topic is still the one that was followed.

        Raises: CommandTopicRecreated.
        """
        topic_id = self._journal.admin.topic_id(self.topic) or ""
        if self._followed and topic_id not in ("", self._followed):
            raise CommandTopicRecreated(self.topic)

    def _ensure_topic(self) -> bool:
        """Return whether the topic was there; make it otherwise."""
        topic = self._journal.ensure_topic()
        if topic is not None and topic.partitions != 1:
            raise CommandTopicBroken(
                f"the command topic {self.topic} has {topic.partitions} partitions, not 1"
            )
        if topic is not None:
            self._check_author()
        return topic is not None

    def _check_author(self) -> None:
        """Look whether ksqlDB has written the first command, before anything is changed here.

        Raises: CommandTopicOfKsqlDb.
        """
        self._journal.seek(BEGINNING)
        first = next(chain.from_iterable(self._journal.read_to_end()), None)
        if first is not None and of_ksqldb(first.value):
            raise CommandTopicOfKsqlDb(self.topic)

    def _replay_all(self) -> None:
        self._journal.seek(0)
        self._replay()
        self.wholeness.know(span_of(self._journal.admin, self.topic))

    def _replay(self) -> None:
        try:
            self.catch_up()
        except UnusableCommand as problem:
            _log.critical(
                "command_quarantined", extra={"offset": problem.offset, "reason": problem.reason}
            )

    def _mend(self) -> None:
        """Give a topic that may forget commands, or might, the settings that it must have."""
        admin = self._journal.admin
        configs = admin.describe([self.topic])[self.topic].configs
        wrong = {name: value for name, value in _CONFIGS.items() if configs.get(name) != value}
        if wrong:
            _log.warning("command_topic_mended", extra={"topic": self.topic, "configs": wrong})
            admin.alter_configs(self.topic, wrong)

    def catch_up(self) -> int:
        """Apply what others have written meanwhile; returns the offset after the last record.

        Raises: UnusableCommand, and every time again: nothing after such a command is applied;
            CommandTopicBroken, CommandTopicLost, NotLeader.
        """
        writing = self._journal.writing
        if writing and self.wholeness.problem:
            raise CommandTopicLost(self.topic, self.wholeness.problem)
        if self._doubt is not None:
            raise CommandInDoubt(self._doubt.name, "")
        if writing and (self._fenced or not self._sender.usable):
            self._write_again()
        end = self._settled_end()
        if end == self._known:
            return end
        if writing:
            self._check_whole()
        else:
            self._check_followed()
        if self._known > self._journal.position:
            self._journal.seek(self._known)
        while not self._read_on():
            pass
        self.quarantine = None
        self._known = self._journal.position
        return self._known

    def _write_again(self) -> None:
        """Become the writer again, as the leader; one that was cut off may lead no more.

        Raises: NotLeader, KafkaUnreachable, KafkaDenied.
        """
        self._confirm()
        self._sender.reopen()
        self._fenced = False

    def _check_whole(self) -> None:
        """Ask whether the topic is still the one that was read, with all its records.

        Raises: CommandTopicLost.
        """
        if damage := self.wholeness.damage(span_of(self._journal.admin, self.topic)):
            raise CommandTopicLost(self.topic, damage)

    def _read_on(self) -> bool:
        """Apply what there is; False if a command was passed over, and there is more to read.

        Raises: UnusableCommand; what was read before it is applied.
        """
        for batch in self._journal.read_to_end():
            for record in batch:
                try:
                    self._take(record)
                except UnusableCommand as problem:
                    self._judge(problem, record)
                    return False
                except BaseException:
                    self._journal.seek(record.offset)
                    raise
        return True

    def _take(self, record: RawRecord) -> None:
        command = decode(record.offset, record.key, record.value)
        try:
            self._apply(record.offset, command)
        except KafkaUnreachable:
            raise
        except Exception as error:
            _log.exception("command_not_applied", extra={"offset": record.offset})
            reason = (
                error.text() if isinstance(error, KsqlError) else f"{type(error).__name__}: {error}"
            )
            raise CommandNotApplied(record.offset, reason) from error

    def _judge(self, problem: UnusableCommand, record: RawRecord) -> None:
        """Continue after the command if it was given up; else read nothing after it.

        Raises: the problem.
        """
        behind = record.offset + 1
        self._journal.seek(behind)
        later = [c for batch in self._journal.read_to_end() for c in map(_readable, batch) if c]
        if self._journal.writing and record.offset in self._skip - stepped_over(later):
            _log.warning("command_stepped_over", extra={"offset": record.offset})
            self._journal.append([encode(stepping_over(record.offset))])
            self._settled_end()
        elif record.offset not in stepped_over(later):
            self.quarantine = Quarantine.of(problem, record.key, later)
            behind = record.offset
        self._journal.seek(behind)
        if behind == record.offset:
            raise problem

    def _settled_end(self) -> int:
        """Return the topic's end, once the markers of all transactions are there.

        A follower takes what is committed: a transaction of the writer may be open at any time.

        Raises: CommandTopicBroken.
        """
        if not self._journal.writing:
            return self._journal.end()
        try:
            return self._journal.settled_end()
        except OpenTransaction as problem:
            raise CommandTopicBroken(
                f"a transaction on the command topic {self.topic} stays open"
            ) from problem

    @contextmanager
    def begin(self) -> Iterator[_LogWriter]:
        """Read to the end, then hold the right to append.

        Raises: CommandTopicLost, and what ``catch_up`` does.
        """
        if self._doubt is None:
            self._check_whole()
        offset = self.catch_up()

        def write(command: Command) -> None:
            entries = [encode(command)]
            try:
                self._journal.append(entries)
            except ProducerFenced:
                self._fenced = True
                raise
            except CommitInDoubt as problem:
                fenced = isinstance(problem.__cause__, ProducerFenced)
                self._doubt = _Doubt(command.id, offset, entries, fenced)
                self._settle_now(problem)
            else:
                self._known = offset + _RECORD_AND_MARKER  # no need to read what we have written

        yield _LogWriter(offset, write)

    def _settle_now(self, problem: CommitInDoubt) -> None:
        """Settle the doubt at once, as Kafka may be there again already."""
        try:
            written = self.settle()
        except KsqlError as away:
            raise CommandInDoubt(str(self._doubt and self._doubt.name), away.text()) from problem
        if not written:
            raise _why_not(problem) from problem

    def settle(self) -> bool:
        """Return whether the command in doubt is in the topic.

        Beginning again as a writer has Kafka finish what was open; unless another server writes
        now: then that has happened already.

        Raises: NotLeader; KsqlError as long as that is unknown.
        """
        doubt = self._doubt
        if doubt is None:
            return True
        if not doubt.fenced:
            self._write_again()
        self._settled_end()
        written = self._journal.has(doubt.offset, doubt.entries)
        self._doubt = None
        self._fenced = doubt.fenced
        self._known = doubt.offset + 1 if written else doubt.offset
        self._journal.seek(self._known)
        return written

    def close(self) -> None:
        self._journal.close()


def _why_not(problem: CommitInDoubt) -> KsqlError:
    """Return why a command is not in the topic.

    Another server writes there now, or Kafka went away.
    """
    cause = problem.__cause__
    return cause if isinstance(cause, ProducerFenced) else NotCommitted()


def _readable(record: RawRecord) -> Command | None:
    try:
        return decode(record.offset, record.key, record.value)
    except UnreadableCommand:
        return None


VERSION: Final = 1
_VERSIONS: Final[versioned_json.Fields] = {VERSION: frozenset({"carried_out"})}


class AppliedOffsetFile:
    """The engine's ``AppliedOffset`` in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: int | None = None

    def read(self) -> int | None:
        """Return the mark; None if there never was one.

        Raises: APPLIED_OFFSET_DAMAGED.
        """
        if self._known is None and self._file.exists():
            try:
                _, fields = versioned_json.read(self._file.read_text(encoding="utf-8"), _VERSIONS)
                self._known = int(fields["carried_out"])
            except (OSError, TypeError, ValueError, versioned_json.NewerVersion) as problem:
                raise APPLIED_OFFSET_DAMAGED(file=self._file, reason=str(problem)) from problem
        return self._known

    def write(self, offset: int) -> None:
        """Move it, for good."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps({"version": VERSION, "carried_out": offset}))
        self._known = offset
