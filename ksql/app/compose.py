"""Builds a service's parts from its settings: Spark, runner, heartbeats, functions, Connect."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ksql.app.audit_topic import AuditTopic, audit_topic
from ksql.app.configuration import SHARED, authentication
from ksql.app.processing_log import FailureLog
from ksql.cluster import Heartbeats, Members, SingleServer
from ksql.cluster.replicas import ENABLED
from ksql.control.statements import CommandRate
from ksql.core import steady_ms
from ksql.core.process import jar_files
from ksql.functions import Problem, load_sources, read_directory
from ksql.functions.user import Limits
from ksql.kafka import READING, TopicDifference, record_sizes
from ksql.kafka.connect import (
    Connect,
    EmbeddedConnect,
    WatchedConnect,
    answer_within_s,
    connect_settings,
    is_embedded,
    worker_settings,
)
from ksql.kafka.producers import Sender
from ksql.serving import UNLIMITED
from ksql.spark.query import (
    BY_WORKERS,
    READ,
    BatchLimits,
    CutOverCompletion,
    Preflight,
    RetryPolicy,
    RunnerContext,
    SparkRunner,
    unheard,
)
from ksql.spark.session import ISOLATION, SparkSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from ksql.app.state import StateDir
    from ksql.core import QueryVersion, Settings, Trash
    from ksql.core.process import Lease
    from ksql.exec import DifferenceCounts
    from ksql.functions import Function
    from ksql.kafka import Admin, Groups, KafkaSettings, RegistrySettings
    from ksql.kafka.producers import SharedSender
    from ksql.spark.query import OnFailure
    from ksql.spark.session import SparkRuntime
    from ksql.sql.catalog import Catalog
    from ksql.views import ViewMaintainer


_log = logging.getLogger(__name__)
_WAIT: Final = "delivery.timeout.ms"  # librdkafka takes it for its own message.timeout.ms
_SHORT_MS: Final = 10_000


def spark_settings(settings: Settings, root: Path) -> SparkSettings:
    """Return how Spark's process is started."""
    return SparkSettings(
        state_dir=root,
        jars=jar_files("spark"),
        master=settings.text("ksql.spark.master"),
        driver_memory=settings.text("ksql.spark.driver.memory"),
        jvm_reads=settings.text(READ) != BY_WORKERS,
        conf={
            **authentication(settings),
            **{k: v for k, v in settings.server.items() if k.startswith("spark.")},
        },
    )


def retries(settings: Settings) -> RetryPolicy:
    """Return how failed queries are tried again."""
    return RetryPolicy(
        settings.number("ksql.query.retry.backoff.initial.ms"),
        settings.number("ksql.query.retry.backoff.max.ms"),
        settings.number("ksql.query.error.max.queue.size"),
    )


def limits(settings: Settings) -> Limits:
    """Return the limits of a call of a user function."""
    return Limits(
        settings.number("ksql.udf.timeout.ms") / 1000,
        settings.number("ksql.udf.memory.max.bytes"),
    )


def user_functions(settings: Settings, root: Path) -> tuple[dict[str, str], list[Function]]:
    """Load the user functions' files: their texts and functions; log broken files."""
    sources, problems = read_extensions(settings, root)
    functions, more = load_sources(sources)
    for problem in (*problems, *more):
        _log.warning(
            "user_functions_not_loaded", extra={"file": problem.file, "reason": problem.message}
        )
    return sources, functions


def runner_context(
    settings: Settings,
    state: StateDir,
    kafka: KafkaSettings,
    *,
    log_topic: str | None,
    functions: Mapping[str, str],
    registry: RegistrySettings,
    lease: Lease,
) -> RunnerContext:
    """Return what all queries share."""
    return RunnerContext(
        settings=settings,
        directory=state.queries,
        consumer=java_client(kafka),
        producer=worker_producer(settings, kafka),
        reader=range_client(kafka),
        log_topic=log_topic,
        functions=functions,
        limits=limits(settings),
        registry=registry,
        start_over=frozenset(settings.parts("ksql.state.anew")),
        older=frozenset(settings.parts("ksql.state.older")),
        lease=lease,
    )


def runner(
    runtime: SparkRuntime,
    context: RunnerContext,
    kafka: KafkaSettings,
    admin: Admin,
    groups: Groups,
    on_failure: OnFailure,
    *,
    trash: Trash,
    new_incarnation: Callable[[], str],
    note_cut_over: Callable[[QueryVersion, DifferenceCounts], None],
) -> SparkRunner:
    """Return what runs the queries on Spark."""
    return SparkRunner(
        runtime,
        context,
        admin.end_offsets,
        admin.begin_offsets,
        admin.offsets_at,
        on_failure,
        trash=trash,
        new_incarnation=new_incarnation,
        end_groups=groups.delete,
        preflight=Preflight(
            groups.highest, admin.topic_ids, admin.begin_offsets, settled=groups.settled
        ),
        bounds=BatchLimits(
            admin.begin_offsets,
            admin.end_offsets,
            lambda places: record_sizes(kafka, places),
        ),
        completion=CutOverCompletion(TopicDifference(kafka, admin), note=note_cut_over),
    )


def java_client(kafka: KafkaSettings) -> dict[str, str]:
    """Return the client properties of Spark's own consumer, under their Java names."""
    properties = {
        name: value
        for name, value in kafka.properties.items()
        if name.split(".")[0] in ("security", "sasl", "ssl")
    }
    return properties | _isolation(kafka) | {"bootstrap.servers": kafka.bootstrap}


def worker_producer(settings: Settings, kafka: KafkaSettings) -> dict[str, str]:
    """Return the client properties of the workers' producers.

    Where another server may take over, records wait in a worker for no longer than a takeover
    takes. A worker that was paused drops them when it continues, and does not send them late.
    """
    properties = {name: str(value) for name, value in kafka.producer().items()}
    if settings.flag(SHARED) and _WAIT not in properties:
        properties[_WAIT] = str(_SHORT_MS)
    return properties


def range_client(kafka: KafkaSettings) -> dict[str, str]:
    """Return the client properties of the workers' consumers, under librdkafka's names."""
    properties = kafka.consumer(**READING) | _isolation(kafka)
    return {name: str(value) for name, value in properties.items()}


def _isolation(kafka: KafkaSettings) -> dict[str, str]:
    """Return the level at which queries read, if one is set; the server's own readers have theirs.

    Records are read at the level at which Spark has planned a batch: that says where it ends.
    """
    for scope in ("ksql.streams.consumer.", "ksql.streams.", ""):
        if level := kafka.properties.get(f"{scope}{ISOLATION}"):
            return {ISOLATION: level}
    return {}


def connect(settings: Settings, folder: Path, kafka: KafkaSettings) -> Connect:
    """Return Kafka Connect: an embedded worker over the folder, another one, or none.

    Raises: as ``EmbeddedConnect.start``.
    """
    if not is_embedded(settings):
        return Connect(connect_settings(settings))
    worker = replace(worker_settings(settings), kafka=java_client(kafka))
    return WatchedConnect(EmbeddedConnect(folder, worker), answer_within_s(settings))


def on_change(views: ViewMaintainer, writer: SharedSender) -> Callable[[Catalog], None]:
    """Return what is done with each changed catalog.

    Its tables are followed, and topics that statements may have deleted and created are looked at
    before the next row.
    """

    def changed(catalog: Catalog) -> None:
        views.follow(catalog)
        writer.renew()

    return changed


def audit(
    settings: Settings,
    writer: SharedSender,
    admin: Admin,
    host: str,
    closers: list[Callable[[], object]],
) -> AuditTopic | None:
    """Return what copies the audit to its topic, and add its end to ``closers``; None without."""
    topic = audit_topic(settings)
    if topic is None:
        return None
    copied = AuditTopic(topic, writer, admin, settings.text("ksql.service.id"), host)
    closers.append(copied.close)
    return copied


def command_rate(settings: Settings) -> CommandRate | None:
    """Return the limit on distributed statements; None if there is none."""
    rate = settings.number("ksql.server.command.topic.rate.limit")
    return CommandRate(rate, steady_ms) if rate < UNLIMITED else None


def on_failure(
    kafka: KafkaSettings, topic: str | None, closers: list[Callable[[], object]]
) -> OnFailure:
    """Return what notes failed queries in the topic, and add its end to ``closers``.

    Without a topic it does nothing.
    """
    if topic is None:
        return unheard
    failures = FailureLog(Sender(kafka), topic)
    closers.append(failures.close)
    return failures.note


def heartbeats(
    settings: Settings,
    members: Members,
    credentials: str = "",
    tls: ssl.SSLContext | None = None,
) -> Heartbeats:
    """Return what sends heartbeats; where they are off or there is one server, it has no others.

    ``credentials``: the header Authorization with which it sends them.
    """
    alone: Members = SingleServer(members.me)
    return Heartbeats(
        members if settings.flag(ENABLED) else alone,
        settings.number("ksql.heartbeat.send.interval.ms") / 1000,
        credentials=credentials,
        tls=tls,
    )


DIRECTORY: Final = "ksql.extension.dir"


def read_extensions(settings: Settings, state: Path) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts of the files that declare user functions; none if these are switched off.

    They are code that the server runs. So a relative directory is one of the state directory, never
    of wherever the server happened to be started.
    """
    if not settings.flag("ksql.udfs.enabled"):
        return {}, []
    return read_directory(state / Path(settings.text(DIRECTORY)).expanduser())
