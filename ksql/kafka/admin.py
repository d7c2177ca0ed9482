"""Topics: listed, described, created, deleted; and where their partitions begin and end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined] # names it only passes on
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from ksql.core import KsqlError
from ksql.kafka import errors as err
from ksql.kafka.logs import CLIENT_LOG
from ksql.kafka.producers.limits import NO_LIMITS, TopicLimits

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ksql.kafka.settings import KafkaSettings
    from ksql.sql.catalog import Topic

T = TypeVar("T")
Partition = tuple[str, int]
Offsets = dict[Partition, int]

_CALL_S: Final = 10.0  # one try; a broker that is down must not eat the whole time
_SETTLE_S: Final = 10.0
_SETTLE_POLL_S: Final = 0.02
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"  # what brokers without ids say
_OLD_BROKER: Final = (
    KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - the library names its local errors so
    KafkaError.UNSUPPORTED_VERSION,
)
_OF_TOPIC: Final = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class TopicInfo:
    """A topic as the brokers describe it."""

    name: str
    partitions: int
    replicas_per_partition: tuple[int, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def replicas(self) -> int:
        """The replication factor: that of the first partition."""
        return self.replicas_per_partition[0] if self.replicas_per_partition else 1


class Identity(NamedTuple):
    """A topic's id, which never changes, and its number of partitions.

    See ``UNKNOWN``.
    """

    id: str
    partitions: int


UNKNOWN: Final = Identity("", 0)
"""Of a topic that exists where the brokers are too old to give ids, or do not let us know."""


class StableEnd(NamedTuple):
    """Up to where all transactions of a partition are decided: the last stable offset.

    ``quiet``: none was open at that moment. Else the first open one begins at ``offset``.
    """

    offset: int
    quiet: bool


class Administrative:
    """Has an administrative client, which is opened when it is first needed."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    @cached_property
    def _client(self) -> AdminClient:
        return AdminClient(self._settings.admin(), logger=CLIENT_LOG)

    def close(self) -> None:
        """Release the connections; a later call opens new ones."""
        self.__dict__.pop("_client", None)


class Admin(Administrative):
    """Kafka's administration; every call is retried while the brokers cannot be reached.

    Raises: from every method KafkaUnreachable, KafkaDenied, KafkaRefused.
    """

    # --- what is there ------------------------------------------------------------------------

    def topics(self) -> dict[str, TopicInfo]:
        """Return all topics by name, without their configs."""
        metadata = self._metadata(None)
        return {name: _info(name, topic) for name, topic in sorted(metadata.topics.items())}

    def partitions(self, topic: str) -> int:
        info = self.topics().get(topic)
        if info is None:
            raise err.UnknownTopic(topic)
        return info.partitions

    def describe(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """Return the topics with all their configs; names that do not exist are left out."""
        known = self.topics()
        there = [name for name in names if name in known]
        configs = self._configs(there) if there else {}
        return {
            name: TopicInfo(
                name, known[name].partitions, known[name].replicas_per_partition, configs[name]
            )
            for name in there
            if name in configs
        }

    def own_configs(self, topic: str) -> dict[str, str]:
        """Return the configs that were set for the topic itself."""

        def ask(left: float, _tries: int) -> dict[str, str]:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            (future,) = self._client.describe_configs(
                [resource], request_timeout=_cap(left)
            ).values()
            return {
                name: entry.value
                for name, entry in future.result().items()
                if entry.source == _OF_TOPIC and entry.value is not None
            }

        return cast("dict[str, str]", self._retry(ask, topic=topic))

    def limits(self, topic: str) -> TopicLimits:
        """Return what it takes: no limit is known if it is not there, or we may not know."""
        try:
            return TopicLimits.of(self._configs([topic]).get(topic, {}))
        except err.KafkaDenied:
            return NO_LIMITS

    def tombstones_ms(self, topic: str) -> int:
        """Return for how long its tombstones are kept at least; 0 if that is not known."""
        try:
            return int(self._configs([topic]).get(topic, {}).get("delete.retention.ms", 0))
        except err.KafkaDenied:
            return 0

    def cluster_id(self) -> str:
        """Return the id of the cluster."""
        cluster_id: str | None = self._metadata(None).cluster_id
        return cluster_id or ""

    def topic_id(self, topic: str) -> str | None:
        """Return a topic's id, which never changes; None if there is no such topic.

        It is empty where the brokers are too old to give any.
        """
        return self.topic_ids([topic]).get(topic)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of those topics that exist.

        Empty where the brokers are too old to give any.
        """
        return {name: identity.id for name, identity in self.identities(topics).items()}

    def identities(self, topics: Iterable[str]) -> dict[str, Identity]:
        """Return the identities of those topics that exist."""
        return self._described(topics, lambda _topic, future: _identity_of(future))

    def identities_or_errors(self, topics: Iterable[str]) -> dict[str, Identity | KsqlError]:
        """Return the identities of those topics that exist, and errors of single topics.

        What the brokers refuse for one topic leaves the answers for the others as they are.
        """

        def identity_or_error(topic: str, future: Future[Any]) -> Identity | KsqlError | None:
            try:
                return _identity_of(future)
            except KafkaException as problem:
                error = err.error_of(problem)
                if error.code() < 0:  # the client's own: no broker has answered
                    raise
                retriable = err.is_retriable(error)
                return (
                    err.given_up(self._settings.bootstrap, error)
                    if retriable
                    else err.translated(error)
                )

        return self._described(topics, identity_or_error)

    def _described(
        self, topics: Iterable[str], answer: Callable[[str, Future[Any]], T | None]
    ) -> dict[str, T]:
        names = list(topics)

        def ask(left: float, _tries: int) -> dict[str, T]:
            futures = self._client.describe_topics(
                TopicCollection(names), request_timeout=_cap(left)
            )
            answers = {name: answer(name, future) for name, future in futures.items()}
            return {name: known for name, known in answers.items() if known is not None}

        return cast("dict[str, T]", self._retry(ask, topic=", ".join(names))) if names else {}

    def _metadata(self, topic: str | None) -> Any:
        return self._retry(lambda left, _: self._client.list_topics(topic, timeout=_cap(left)))

    def _configs(self, names: list[str]) -> dict[str, dict[str, str]]:
        def ask(left: float, _tries: int) -> dict[str, dict[str, str]]:
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
            futures = self._client.describe_configs(resources, request_timeout=_cap(left))
            configs: dict[str, dict[str, str]] = {}
            for resource, future in futures.items():
                try:
                    entries = future.result()
                except KafkaException as problem:
                    if err.error_of(problem).code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                    continue  # deleted meanwhile
                configs[resource.name] = {
                    name: entry.value for name, entry in entries.items() if entry.value is not None
                }
            return configs

        return cast("dict[str, dict[str, str]]", self._retry(ask))

    # --- changes ------------------------------------------------------------------------------

    def create(self, topic: Topic) -> bool:
        """Create the topic and wait until its partitions have leaders, and these answer.

        A record that is written before that may be acknowledged and lost. Its leader has shown the
        partition before its log was the one that stays.

        Returns: False if it exists: another server may have created it since it was looked for.
        """

        def ask(left: float, tries: int) -> None:
            new = NewTopic(
                topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replicas,
                config=dict(topic.configs),
            )
            try:
                futures = self._client.create_topics([new], request_timeout=_cap(left))
            except ValueError as error:  # the client has bounds of its own
                raise err.KafkaRefused(what, str(error)) from error
            _settled(futures[topic.name], KafkaError.TOPIC_ALREADY_EXISTS, tries)

        what = f"Cannot create topic '{topic.name}'"
        try:
            self._retry(ask, topic=topic.name, what=what)
            created = True
        except err.TopicExists:
            created = False
        _wait(lambda: self._has_leaders(topic.name))
        with contextlib.suppress(KsqlError):  # the topic is there
            self.end_offsets([topic.name])
        return created

    def delete(self, *names: str) -> None:
        """Delete the topics and wait until they are gone.

        Raises: UnknownTopic.
        """

        def ask(left: float, tries: int) -> None:
            futures = self._client.delete_topics(list(names), request_timeout=_cap(left))
            for name, future in futures.items():
                try:
                    _settled(future, KafkaError.UNKNOWN_TOPIC_OR_PART, tries)
                except KafkaException as problem:
                    error = err.error_of(problem)
                    if err.is_retriable(error):
                        raise
                    raise err.translated(error, name, f"Cannot delete topic '{name}'") from problem

        if names:
            self._retry(ask, what="Cannot delete topics")
        _wait(lambda: not set(names) & set(self.topics()))

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Set these configs, leave the others as they are, and wait until it shows."""

        def ask(left: float, _tries: int) -> None:
            entries = [
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in configs.items()
            ]
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
            futures = self._client.incremental_alter_configs([resource], request_timeout=_cap(left))
            for future in futures.values():
                future.result()

        self._retry(ask, topic=topic, what=f"Cannot change the configs of topic '{topic}'")
        _wait(lambda: configs.items() <= self._configs([topic]).get(topic, {}).items())

    def _has_leaders(self, topic: str) -> bool:
        metadata = self._metadata(None).topics.get(topic)
        return metadata is not None and all(p.leader >= 0 for p in metadata.partitions.values())

    # --- offsets ------------------------------------------------------------------------------

    def begin_offsets(self, topics: Iterable[str]) -> Offsets:
        """Return the first offset of every partition of the topics.

        Raises: UnknownTopic.
        """
        return self._offsets(topics, _EARLIEST, committed=False)

    def end_offsets(self, topics: Iterable[str], *, committed: bool = True) -> Offsets:
        """Return the offset after the last record of every partition of the topics.

        ``committed``: only as far as transactions that are still open allow.

        Raises: UnknownTopic.
        """
        return self._offsets(topics, _LATEST, committed=committed)

    def offsets_at(self, topics: Iterable[str], time_ms: int) -> Offsets:
        """Return the offset of the first record at or after that time, of every partition.

        Where there is none it is the end.

        Raises: UnknownTopic.
        """
        names = list(topics)
        ends = self.end_offsets(names)
        later = self._offsets(names, OffsetSpec.for_timestamp(time_ms), committed=False)
        return {
            partition: offset if offset >= 0 else ends[partition]
            for partition, offset in later.items()
        }

    def stable_ends(
        self, places: Collection[Partition], timeout_s: float
    ) -> dict[Partition, StableEnd]:
        """Return up to where partitions are decided at the moment.

        It is asked once: partitions whose brokers do not answer in time are left out.
        """
        stable = self._answered(places, IsolationLevel.READ_COMMITTED, timeout_s)
        latest = self._answered(stable, IsolationLevel.READ_UNCOMMITTED, timeout_s)
        return {
            partition: StableEnd(end, quiet=latest.get(partition) == end)
            for partition, end in stable.items()
        }

    def _answered(
        self, places: Collection[Partition], level: IsolationLevel, timeout_s: float
    ) -> Offsets:
        offsets: Offsets = {}
        if not places:
            return offsets
        futures = self._client.list_offsets(
            {TopicPartition(*partition): _LATEST for partition in places},
            isolation_level=level,
            request_timeout=timeout_s,
        )
        for part, future in futures.items():
            with contextlib.suppress(KafkaException):  # left out: who needs it asks again
                offsets[part.topic, part.partition] = future.result().offset
        return offsets

    def span(self, topic: str) -> tuple[int, int]:
        """Return the first offset of a topic's first partition, and the one after its last record.

        Open transactions count. Asked for in two requests, without a look at all topics.
        Raises: UnknownTopic.
        """

        def ask(left: float, _tries: int) -> tuple[int, int]:
            partition = TopicPartition(topic, 0)
            first, end = (
                next(
                    iter(
                        self._client.list_offsets(
                            {partition: spec}, request_timeout=_cap(left)
                        ).values()
                    )
                )
                for spec in (_EARLIEST, _LATEST)
            )
            return first.result().offset, end.result().offset

        offsets = self._retry(ask, topic=topic, what="Cannot read offsets")
        return cast("tuple[int, int]", offsets)

    def _offsets(self, topics: Iterable[str], spec: OffsetSpec, *, committed: bool) -> Offsets:
        known = self.topics()
        places: list[Partition] = []
        for name in topics:
            if name not in known:
                raise err.UnknownTopic(name)
            places += [(name, partition) for partition in range(known[name].partitions)]
        if not places:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

        def ask(left: float, tries: int) -> Offsets:
            if tries and (gone := {name for name, _ in places} - self.topics().keys()):
                raise err.UnknownTopic(min(gone))
            futures = self._client.list_offsets(
                {TopicPartition(*partition): spec for partition in places},
                isolation_level=level,
                request_timeout=_cap(left),
            )
            return {(p.topic, p.partition): future.result().offset for p, future in futures.items()}

        offsets = self._retry(
            ask, topic=", ".join(dict(places)), what="Cannot read offsets", known_topic=True
        )
        return cast("Offsets", offsets)

    def _retry(
        self, call: Any, *, topic: str = "", what: str = "", known_topic: bool = False
    ) -> Any:
        return err.retrying(
            call,
            bootstrap=self._settings.bootstrap,
            timeout_s=self._settings.timeout_s,
            topic=topic,
            what=what,
            known_topic=known_topic,
        )


def _wait(done: Callable[[], bool]) -> None:
    """Wait until the brokers' answers agree; only for a while, as nothing depends on it."""
    end = time.monotonic() + _SETTLE_S
    while not done() and time.monotonic() < end:
        time.sleep(_SETTLE_POLL_S)


def _cap(left_s: float) -> float:
    return min(left_s, _CALL_S)


def _info(name: str, topic: Any) -> TopicInfo:
    parts = topic.partitions
    return TopicInfo(name, len(parts), tuple(len(parts[index].replicas) for index in sorted(parts)))


def _identity_of(future: Future[Any]) -> Identity | None:
    try:
        described = future.result()
    except KafkaException as problem:
        code = err.error_of(problem).code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        if code in _OLD_BROKER:
            return UNKNOWN
        raise
    topic_id = str(described.topic_id)
    return Identity("" if topic_id == _NO_ID else topic_id, len(described.partitions))


def _settled(future: Future[None], done: int, tries: int) -> None:
    """Await the result; after a lost answer, "is so already" means that our first try arrived."""
    try:
        future.result()
    except KafkaException as problem:
        if not tries or err.error_of(problem).code() != done:
            raise
