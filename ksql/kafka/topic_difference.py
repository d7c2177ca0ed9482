"""Brings a topic to the rows of another one: only the records in which they differ are written.

A topic's rows are the last records of its keys, partition by partition. A key that lies in another
partition of the other topic differs in both. The difference is computed from the topics alone. So
one that was interrupted is computed again, and is smaller then.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ksql.core import ServerError
from ksql.core.process import run_apart
from ksql.kafka.admin import Admin, Offsets
from ksql.kafka.partition_rows import (
    PartitionFiles,
    Rows,
    TopicLog,
    Values,
    is_foreign,
    item_offset,
    latest_ms_of,
    out_record,
    row_value,
)
from ksql.kafka.partition_writer import PartitionWriter, WriteOptions, always
from ksql.kafka.reader import Reader
from ksql.kafka.record_versions import is_changelog, versioned
from ksql.sql.catalog import RECORD_CONFIGS, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ksql.core import OutRecord
    from ksql.kafka.settings import Config, KafkaSettings

_MOST_HERE: Final = 20_000
_COMPACT: Final = {"cleanup.policy": "compact"}
_READING: Final[Config] = {
    "isolation.level": "read_committed",
    # after the last record an answer without any is waited for, in each partition
    "fetch.wait.max.ms": 5,
    "fetch.queue.backoff.ms": 5,
}


class Counts(NamedTuple):
    """The keys by what became of them: another value, new, deleted, or as they were."""

    changed: int = 0
    added: int = 0
    removed: int = 0
    equal: int = 0

    def plus(self, more: Counts) -> Counts:
        """Return the sums."""
        return Counts(*(a + b for a, b in zip(self, more, strict=True)))


class CopyPosition(NamedTuple):
    """Up to where a topic is a copy of another one.

    ``ids`` are those of the topic and of its copy, ``offsets`` those of the topic by partition.
    ``now_ms`` is when it was there.
    """

    ids: tuple[str, str]
    offsets: Mapping[int, int]
    now_ms: int

    def places(self, topic: str) -> Offsets:
        """Return the offsets by topic and partition."""
        return {(topic, partition): offset for partition, offset in self.offsets.items()}


class RowsAhead(NamedTuple):
    """The rows of two topics, read ahead into files of a directory up to those positions."""

    directory: str
    origin: CopyPosition
    target: CopyPosition


class TopicChanges(NamedTuple):
    """The records to write, rows in the order of their topic and then deletions; and the counts.

    ``foreign`` is how many keys are left as they are, as somebody else has written their rows.
    """

    records: Sequence[OutRecord]
    counts: Counts
    foreign: int = 0


class Equalized(NamedTuple):
    """The keys by what became of them, and the records that were left out.

    ``foreign`` is how many keys are left as they are, as somebody else has written their rows.
    ``refused`` has the reasons why the topic did not take some records.
    """

    counts: Counts
    foreign: int = 0
    refused: tuple[str, ...] = ()


class PartitionsDiffer(ServerError):
    """Two topics whose rows cannot be compared, as they lie in other partitions."""

    def __init__(self, origin: str, count: int, target: str, target_count: int) -> None:
        super().__init__(
            f'topic "{origin}" has {count} partitions, topic "{target}" has {target_count}',
            detail="The rows of both are compared partition by partition.",
            hint=f'Bring topic "{origin}" to the same number. Or abort the rebuild and begin a new '
            "one, whose topic has it.",
        )


class TopicDifference:
    """Compares topics over Kafka, one partition of both in memory at a time."""

    def __init__(self, settings: KafkaSettings, admin: Admin, most_here: int = _MOST_HERE) -> None:
        """Take ``most_here``: so many records this process compares itself at most."""
        self._settings = settings
        self._admin = admin
        self._most_here = most_here

    def names(self) -> Collection[str]:
        return self._admin.topics().keys()

    def exists(self, topic: str) -> bool:
        """Return whether there is such a topic."""
        return topic in self._admin.topics()

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic, empty where Kafka gives none; None if there is no such."""
        return self._admin.topic_id(topic)

    def has_lost(self, topic: str) -> bool:
        """Return whether records at the beginning of a topic are gone.

        Raises: UnknownTopic.
        """
        return any(self._admin.begin_offsets([topic]).values())

    def common_size(self, origin: str, target: str) -> int:
        """Return how many partitions two topics have whose rows are to be compared.

        Raises: PartitionsDiffer, UnknownTopic.
        """
        count, target_count = (self._admin.partitions(topic) for topic in (origin, target))
        if count != target_count:
            raise PartitionsDiffer(origin, count, target, target_count)
        return count

    def make_like(self, topic: str, like: str) -> None:
        """Make a compacted topic of another one's size, which takes the same records.

        A topic of another size is replaced, and so is one that has lost records.

        Raises: UnknownTopic, KafkaUnreachable, KafkaDenied, KafkaRefused.
        """
        known = self._admin.topics()
        if topic in known and like in known:
            if known[topic].partitions == known[like].partitions and not self.has_lost(topic):
                return
            self._admin.delete(topic)
        partitions = self._admin.partitions(like)
        own = self._admin.own_configs(like)
        configs = _COMPACT | {name: own[name] for name in RECORD_CONFIGS if name in own}
        self._admin.create(Topic(topic, partitions, known[like].replicas, configs))

    def delete(self, topic: str) -> None:
        if self.exists(topic):
            self._admin.delete(topic)

    def equalize(
        self,
        origin: str,
        target: str,
        writing: WriteOptions,
        check: Callable[[], None] = always,
        *,
        decided: bool = False,
        ahead: RowsAhead | None = None,
    ) -> Equalized:
        """Write to ``target`` what it lacks to have the rows of ``origin``.

        Rows that somebody else has written to a changelog are left out. Many records are compared
        by a process of its own. ``check`` is called here all the while, and ends it if it raises.
        ``decided``: only of what is committed already, at a low priority. Else open transactions
        are waited for. Rows that were read ``ahead`` are not read again.

        Raises: PartitionsDiffer, UnknownTopic, DeliveryFailed, RecordRefused, KafkaUnreachable, and
            what ``may_write`` and ``check`` do; of another process' errors the words.
        """
        self.common_size(origin, target)
        if self._records(origin, target) > self._most_here:
            if ahead is not None and not self._is_ahead(origin, target, ahead, writing.now_ms):
                ahead = None
            there = partial(_equalized_there, self._settings, origin, target, writing)
            work = partial(there, decided=decided, ahead=ahead)
            return run_apart(work, check, gives_way=decided)
        return self.equalize_here(origin, target, _checked(writing, check), decided=decided)

    def _records(self, *topics: str) -> int:
        ends, begins = self._admin.end_offsets(topics), self._admin.begin_offsets(topics)
        return sum(ends.values()) - sum(begins.values())

    def equalize_here(
        self,
        origin: str,
        target: str,
        writing: WriteOptions,
        *,
        decided: bool = False,
        ahead: RowsAhead | None = None,
    ) -> Equalized:
        """Do it in this process."""
        counts, foreign, limits = Counts(), 0, self._admin.limits(target)
        out = PartitionWriter(target, writing, limits)
        out.init_transactions()  # else what a writer that has died left open would be waited for
        logs = self._logs(origin, target, ahead, decided=decided)
        with logs[0] as there, logs[1] as here, ThreadPoolExecutor(1) as other:
            for partition in range(self._admin.partitions(target)):
                reading = other.submit(there.rows, partition)
                present, latest_ms = here.values(partition)
                rows = reading.result()
                latest_ms = max(latest_ms, latest_ms_of(rows))
                deleted_ms = writing.deletion_ms(latest_ms, limits)
                differing = difference(rows, present, deleted_ms, target)
                out.write(partition, differing.records)
                counts = counts.plus(differing.counts)
                foreign += differing.foreign
        return Equalized(counts, foreign, tuple(out.refused))

    def read_ahead(
        self,
        origin: str,
        target: str,
        directory: Path,
        now_ms: int,
        check: Callable[[], None] = always,
    ) -> RowsAhead | None:
        """Read the committed rows of both into an empty directory, by a process of its own.

        None: there are so few that it is not worth while. ``check`` is as for ``equalize``.

        Raises: UnknownTopic, KafkaUnreachable, OSError and what ``check`` does; of the process'
            errors the words.
        """
        if self._records(origin, target) <= self._most_here:
            return None
        positions = (self.copy_position(*pair, now_ms) for pair in _both_ways(origin, target))
        ahead = RowsAhead(str(directory), *positions)
        work = partial(_read_there, self._settings, origin, target, ahead)
        run_apart(work, check, gives_way=True)
        return ahead

    def read_ahead_here(self, origin: str, target: str, ahead: RowsAhead) -> None:
        """Do it in this process."""
        files = PartitionFiles(Path(ahead.directory))
        there, here = self._log(origin), self._log(target)
        there = replace(there, ends=ahead.origin.places(origin))
        here = replace(here, ends=ahead.target.places(target))
        with there, here, ThreadPoolExecutor(1) as other:
            for partition in ahead.target.offsets:
                reading = other.submit(there.rows, partition)
                values = here.values(partition)
                files.write(partition, reading.result(), values)

    def _is_ahead(self, origin: str, target: str, ahead: RowsAhead, now_ms: int) -> bool:
        """Return whether only what follows is to be read of both topics."""
        positions = ahead.origin, ahead.target
        return all(
            self._is_followable(*pair, position, now_ms)
            for pair, position in zip(_both_ways(origin, target), positions, strict=True)
        )

    def _logs(
        self, origin: str, target: str, ahead: RowsAhead | None, *, decided: bool
    ) -> tuple[TopicLog, TopicLog]:
        if ahead is None:
            return self._log(origin, decided=decided), self._log(target)
        files = PartitionFiles(Path(ahead.directory))
        there = self._log(origin, ahead.origin.places(origin), decided=decided)
        here = self._log(target, ahead.target.places(target))
        return replace(there, files=files), replace(here, files=files)

    def copy_position(self, origin: str, target: str, now_ms: int) -> CopyPosition:
        """Return where a copy will be that is begun now: all that is committed will be in it.

        Raises: UnknownTopic, KafkaUnreachable.
        """
        ends = self._admin.end_offsets([origin])
        offsets = {partition: end for (_, partition), end in ends.items()}
        return CopyPosition(self._ids(origin, target), offsets, now_ms)

    def follow(
        self,
        origin: str,
        target: str,
        since: CopyPosition,
        writing: WriteOptions,
        check: Callable[[], None] = always,
        *,
        decided: bool = False,
    ) -> Equalized | None:
        """Append to a copy what came to its origin ``since``; None if it would not be a copy then.

        It may be done again from there: the last record of a key counts. The keys are not counted.
        ``check`` and ``decided`` are as for ``equalize``.

        Raises: as ``equalize``.
        """
        if not self._is_followable(origin, target, since, writing.now_ms):
            return None
        ends = self._admin.end_offsets([origin])
        if sum(ends.values()) - sum(since.offsets.values()) > self._most_here:
            there = partial(_followed_there, self._settings, origin, target, since, writing)
            return run_apart(partial(there, decided=decided), check, gives_way=decided)
        return self.follow_here(origin, target, since, _checked(writing, check), decided=decided)

    def _is_followable(self, origin: str, target: str, since: CopyPosition, now_ms: int) -> bool:
        """Return whether the topics are those of then, and no record of later is gone.

        Tombstones are the first to go. They are kept for longer than a copy may be old.
        """
        if not all(since.ids) or self._ids(origin, target) != since.ids or self.has_lost(target):
            return False
        begins, ends = self._admin.begin_offsets([origin]), self._admin.end_offsets([origin])
        places = since.places(origin)
        if places.keys() != ends.keys() or self._admin.partitions(target) != len(places):
            return False
        if not all(begins[place] <= at <= ends[place] for place, at in places.items()):
            return False
        return 0 <= now_ms - since.now_ms <= self._admin.tombstones_ms(origin) / 2

    def follow_here(
        self,
        origin: str,
        target: str,
        since: CopyPosition,
        writing: WriteOptions,
        *,
        decided: bool = False,
    ) -> Equalized:
        """Do it in this process."""
        limits = self._admin.limits(target)
        out = PartitionWriter(target, writing, limits)
        out.init_transactions()
        with self._log(origin, since.places(origin), decided=decided) as log:
            for partition in since.offsets:
                rows = sorted(log.rows(partition).items(), key=item_offset)
                records: list[OutRecord] = [
                    (key, value, writing.deletion_ms(time_ms, limits), headers)
                    if value is None
                    else (key, value, time_ms, headers)
                    for key, value, time_ms, headers in map(out_record, rows)
                ]
                out.write(partition, _written(records, target))
        return Equalized(Counts(), 0, tuple(out.refused))

    def _ids(self, *topics: str) -> tuple[str, str]:
        ids = self._admin.topic_ids(topics)
        first, second = (ids.get(topic, "") for topic in topics)
        return first, second

    def _log(self, topic: str, begins: Offsets | None = None, *, decided: bool = False) -> TopicLog:
        """Return what it has until now; open transactions as well, unless it is ``decided``."""
        begins = self._admin.begin_offsets([topic]) if begins is None else begins
        ends = self._admin.end_offsets([topic], committed=decided)
        return TopicLog(topic, begins, ends, Reader(self._settings, **_READING))


def _equalized_there(
    settings: KafkaSettings,
    origin: str,
    target: str,
    writing: WriteOptions,
    *,
    decided: bool,
    ahead: RowsAhead | None,
) -> Equalized:
    topics = TopicDifference(settings, Admin(settings))
    return topics.equalize_here(origin, target, writing, decided=decided, ahead=ahead)


def _read_there(settings: KafkaSettings, origin: str, target: str, ahead: RowsAhead) -> None:
    TopicDifference(settings, Admin(settings)).read_ahead_here(origin, target, ahead)


def _followed_there(
    settings: KafkaSettings,
    origin: str,
    target: str,
    since: CopyPosition,
    writing: WriteOptions,
    *,
    decided: bool,
) -> Equalized:
    topics = TopicDifference(settings, Admin(settings))
    return topics.follow_here(origin, target, since, writing, decided=decided)


def _both_ways(origin: str, target: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (origin, target), (target, origin)


def _checked(writing: WriteOptions, check: Callable[[], None]) -> WriteOptions:
    """Return how to write in this process: ``check`` is called with each look at the right."""

    def may_write() -> None:
        check()
        writing.may_write()

    return writing._replace(may_write=may_write)


def difference(there: Rows, here: Values, deleted_ms: int, target: str) -> TopicChanges:
    """Return what makes values ``here`` those of the rows ``there``; None is a deleted key.

    ``deleted_ms`` is the time of deletions. Were it the present, readers would take records that
    follow, with times of the past, for late ones.

    A row takes few calls of Python, as there may be millions and queries are answered meanwhile.
    """
    values = list(map(row_value, there.values()))
    compared = zip(there.items(), values, map(here.get, there), strict=True)
    rows = [item for item, value, known in compared if value != known and value is not None]
    deleted = values.count(None)
    equal = len(values) - deleted - len(rows)
    present = {key for key, value in zip(there, values, strict=True) if value is not None}
    gone = [key for key, value in here.items() if value is not None and key not in present]
    foreign = {key for key, row in rows if is_foreign(row)}
    foreign.update(key for key in gone if key in there and is_foreign(there[key]))
    if foreign:
        rows = [item for item in rows if item[0] not in foreign]
        gone = [key for key in gone if key not in foreign]
    rows.sort(key=item_offset)
    added = [here.get(key) for key, _ in rows].count(None)
    counts = Counts(len(rows) - added, added, len(gone), equal)
    records = [*map(out_record, rows), *((key, None, deleted_ms, None) for key in gone)]
    return TopicChanges(_written(records, target), counts, len(foreign))


def _written(records: list[OutRecord], target: str) -> list[OutRecord]:
    """Return the records as they are written there: with their version into a changelog."""
    return list(versioned(records)) if is_changelog(target) else records
