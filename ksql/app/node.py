"""The parts of the service, brought up in order and taken down in the opposite one."""

from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ksql.app import compose, startup_checks
from ksql.app.configuration import SHARED, check_configuration, place_name
from ksql.app.health_loop import DurableTopics, HealthLoop, impatient, kafka_answers
from ksql.app.monitor import AllEnds, ProcessedOffsets, SparkMonitor
from ksql.app.processing_log import declare, open_log_topic
from ksql.app.shutdown import WITHDRAWAL_S, end, hand_over
from ksql.app.state import StateDir
from ksql.cluster import ClusterClient, GroupMembers, Members, RemoteLeader, SingleServer
from ksql.cluster.leadership import AnotherServer, Follower, ServiceEnded
from ksql.cluster.replicas import (
    STANDBYS,
    ConsistencyResolver,
    PartitionAssignment,
    ReplicaService,
    own_server,
)
from ksql.control import DoubtResolver, RebuildSupervisor
from ksql.control.engine import Engine
from ksql.control.log import SKIP, AppliedOffsetFile, KafkaCommandLog, offsets_of
from ksql.control.statements import Services
from ksql.core import KsqlError, Settings, Trash, process_tuning, steady_ms
from ksql.core.process import NotLeader
from ksql.functions import BUILTINS
from ksql.functions.user import UdfProcessPool
from ksql.history import KnownUpgrade, ResilientLedger, UpgradeRecorder, configured_url
from ksql.kafka import (
    Admin,
    Groups,
    KafkaSettings,
    KafkaTopics,
    KafkaUnreachable,
    QueryTopics,
    TopicRecords,
    TopicWatch,
    topic_name,
)
from ksql.kafka.connect import Connect
from ksql.kafka.embedded import EmbeddedBroker
from ksql.kafka.producers import SharedSender
from ksql.registry import URL as REGISTRY_URL
from ksql.registry import kafka_log, open_registry
from ksql.serving import ConsumerRegistry, Limits, QueryService, TableProvider
from ksql.spark.checkpoint import PROBLEMS
from ksql.spark.session import SparkRuntime
from ksql.views import ViewMaintainer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.control.engine import Command
    from ksql.functions import Functions

_log = logging.getLogger(__name__)
_BOOTSTRAP = "bootstrap.servers"


class Node:
    """The parts of one server; ``start`` brings them up, ``stop`` takes them down in order.

    ``broker`` and ``runtime`` may be given, open already, to be shared by several services (tests).
    ``on_replay`` is called with each command of the topic once it has been replayed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        broker: str | None = None,
        runtime: SparkRuntime | None = None,
        now_ms: Callable[[], int],
        random_name: Callable[[], str],
        progress: Callable[[str], None],
        on_replay: Callable[[Command], object],
    ) -> None:
        self.settings = settings
        self._given_bootstrap, self._given_runtime = broker, runtime
        self._now_ms, self._random_name, self._progress = now_ms, random_name, progress
        self._on_replay = on_replay
        self.state_dir: StateDir | None = None
        self._broker: EmbeddedBroker | None = None
        self._closers: list[Callable[[], object]] = []
        self._own_runtime: SparkRuntime | None = None
        self.ready = threading.Event()
        self._stop_lock = threading.Lock()
        self.replaying, self.lost = True, ""
        self.on_lost: Callable[[], object] = lambda: None
        """Called when this server, one of several, must restart to rejoin; see ``again``."""
        self.again = False
        """Whether it is to be started again once it has been stopped."""
        self.terminated = False
        """Whether this follower has seen that the service was terminated at another server."""
        self._follower: Follower | None = None
        self._peers: GroupMembers | None = None
        self.addresses: dict[str, str] = {}
        self.connect = Connect()

    def start(self) -> None:
        """Bring everything up.

        Raises: StartError and other KsqlErrors; what was started is stopped again.
        """
        process_tuning.search_rarely()
        try:
            self._start()
        except BaseException as problem:
            if isinstance(problem, NotLeader) and not self.lost:
                self._abandon(problem.text())
            self.stop()
            raise
        self.ready.set()

    def _start(self) -> None:
        check_configuration(self.settings)
        shared = place_name(self.settings) if self.settings.flag(SHARED) else None
        self.state_dir = state = StateDir.open(self.settings, self._random_name, shared)
        self._closers.append(state.close)
        with ThreadPoolExecutor(1) as pool:
            spark = pool.submit(self._open_spark, state)
            self.kafka = self._open_kafka(state)
            self._open_registry(state)
            self.runtime = spark.result()
            self.connect = compose.connect(self.settings, state.own / "connect", self.kafka)
            self._closers.append(self.connect.close)
            self.addresses |= self.connect.addresses
        self.health_loop = self._open_health_loop()
        self._compose(state)
        self._progress("replaying the command topic")
        if self._follower is None:
            self._settle(state)
            self.log.open()
        else:
            self.log.follow()
        self.replaying = False
        if state.shared:
            startup_checks.discard_old_stores(self.admin, state, self._now_ms)
        self.views.start()
        self.replicas.start()
        self.rebuilds.start()
        if self._follower is None:
            self._start_leading(state)
        else:
            self._closers.append(self._follower.close)
            self._follower.start()

    def _settle(self, state: StateDir) -> None:
        """Find the checkpoints where this server alone has them."""
        if state.shared:
            self.runner.use_directory(
                startup_checks.bind_state(
                    self.settings, self.kafka, self.admin, state, self.leadership, self._now_ms
                )
            )

    def _promote(self, state: StateDir) -> None:
        """Lead in place of another server, whose commands were followed so far."""
        _log.warning("starts_leading", extra={"server": str(self.members.me)})
        self.leadership.start()
        self._check_ended()
        self._settle(state)
        with self.engine.exclusive():
            self.log.acquire()
            self._start_leading(state)
        self._follower = None

    def _start_leading(self, state: StateDir) -> None:
        """Start the queries that the command topic knows."""
        state.belongs_to(self.cluster_id, self.admin.topic_id(self.log.topic) or "")
        self.upgrade_recorder.refill()
        quarantine = self.log.quarantine
        if quarantine is None:  # else a later command may know of what is not known here
            self.runner.sweep(self.engine.catalog.versions)
        self._progress("starting the queries")
        held = {} if quarantine is None else quarantine.held(self.engine.catalog)
        self.monitor.note_not_started({query_id: error.text() for query_id, error in held.items()})
        self.monitor.note_states()  # the claims say that nothing runs yet
        self.engine.start_queries(held)
        if self.lost:
            raise NotLeader(self.lost)
        if quarantine is None:
            declare(self.log_topic, self.services, self.settings, self.admin)

    def _open_spark(self, state: StateDir) -> SparkRuntime:
        if self._given_runtime is not None:
            return self._given_runtime
        self._progress("starting Spark")
        runtime = SparkRuntime(
            compose.spark_settings(self.settings, state.own),
            lambda: self.admin,
            compose.retries(self.settings),
        )
        self._own_runtime = runtime
        runtime.open()
        return runtime

    def _open_health_loop(self) -> HealthLoop:
        watch = HealthLoop(
            kafka_answers(self._quick_admin),
            self._broker,
            on_return=self.runtime.wake,
            on_tick=self._poll,
        )
        self._closers.append(watch.close)
        watch.start()
        return watch

    def _open_kafka(self, state: StateDir) -> KafkaSettings:
        properties = dict(self.settings.server)
        bootstrap = self._given_bootstrap or self.settings.text(_BOOTSTRAP)
        if not bootstrap:
            self._progress("starting the embedded Kafka broker")
            self._broker = EmbeddedBroker(state.broker)
            bootstrap = self._broker.start()
            self.addresses["Kafka"] = bootstrap
            self._set(_BOOTSTRAP, bootstrap)
        kafka = KafkaSettings.from_properties(properties | {_BOOTSTRAP: bootstrap})
        self.admin, self._quick_admin = Admin(kafka), impatient(kafka)
        self._closers += [self.admin.close, self._quick_admin.close]
        self.cluster_id = self.admin.cluster_id()
        self.leadership = startup_checks.prepare(
            self.settings,
            kafka,
            self.admin,
            state,
            now_ms=self._now_ms,
            random_name=self._random_name,
            on_lost=self._abandon,
        )
        self._closers.append(self.leadership.close)
        if state.shared:
            self._join(kafka, state)
        else:
            self.members: Members = SingleServer(own_server(self.settings))
            self.leadership.acquire()
        if self._follower is None:
            self.leadership.start()
        return kafka

    def _join(self, kafka: KafkaSettings, state: StateDir) -> None:
        """Become one of several servers: the leader if nobody else is, else a follower."""
        members = startup_checks.join(self.settings, kafka, self.leadership)
        self.members = self._peers = members
        self._closers.append(members.leave)
        try:
            self.leadership.acquire()
        except AnotherServer as other:
            startup_checks.check_shared_directory(state, other.claim, self.leadership.claims_end)
            _log.info("follows_leader", extra={"leader": other.claim.listener})
            rank = startup_checks.candidate_rank(members)
            self._follower = Follower(
                self._follow,
                lambda stop: self.leadership.await_leadership(stop, rank),
                lambda: self._promote(state),
                self._abandon,
            )

    def _remote_leader(self) -> RemoteLeader | None:
        """Return the server that runs the queries, if it is another one."""
        if self._follower is None:
            return None
        return startup_checks.remote_leader(self.leadership, self.members.me)

    def _follow(self) -> None:
        try:
            with self.engine.exclusive():
                self.log.catch_up()
        except KsqlError:
            self._check_ended()
            raise

    def _check_ended(self) -> None:
        if self.state_dir is not None and startup_checks.has_ended(self.admin, self.state_dir):
            self.terminated = True
            raise ServiceEnded

    @property
    def is_follower(self) -> bool:
        """Whether another server leads, or is to, and this one follows it."""
        return self._follower is not None

    def _abandon(self, why: str) -> None:
        """Give the queries up: another server leads, or is to."""
        _log.error("another_server_leads", extra={"reason": why})
        self.lost = why
        if hasattr(self, "runner"):  # else nothing runs yet
            self.runner.abandon(why)
        self.again = self.settings.flag(SHARED)
        if self.again:
            self.on_lost()

    def _compose(self, state: StateDir) -> None:
        service_id = self.settings.text("ksql.service.id")
        self._open_ledger(state, service_id)
        settings = self.settings
        self.log_topic = topic_name(service_id, settings.text("ksql.logging.processing.topic.name"))
        sources, functions = compose.user_functions(settings, state.root)
        apart = UdfProcessPool(sources, compose.limits(settings))
        self._closers.append(apart.close)
        trash = Trash(state.trash, self._now_ms)
        self._open_runner(state, sources, trash)
        assignment = PartitionAssignment(self.members, settings.number(STANDBYS))
        self.views = ViewMaintainer(
            self.kafka, state.stores, trash, settings, self._now_ms, self._peers, assignment
        )
        self._closers.append(self.views.close)
        self.replicas = ReplicaService(settings, assignment, self.views, self.admin, self._now_ms)
        self._closers.append(self.replicas.close)
        self._open_engine(state, service_id, BUILTINS.with_(apart.functions(functions)))
        self._open_services()

    def _open_ledger(self, state: StateDir, service_id: str) -> None:
        url = configured_url(self.settings, state.own)
        upgrades: list[KnownUpgrade] = []
        self.ledger = ResilientLedger.open(url, replay=lambda: tuple(upgrades))
        self._closers.append(self.ledger.close)
        self.upgrade_recorder = UpgradeRecorder(self.ledger, service_id, self._now_ms, upgrades)

    def _open_runner(self, state: StateDir, functions: Mapping[str, str], trash: Trash) -> None:
        logging_to = open_log_topic(self.log_topic, self.settings, self.admin)
        context = compose.runner_context(
            self.settings,
            state,
            self.kafka,
            log_topic=logging_to,
            functions=functions,
            registry=self.registry_settings,
            lease=self.leadership.lease,
        )
        groups = Groups(self.kafka)
        self._closers.append(groups.close)
        self.runner = compose.runner(
            self.runtime,
            context,
            self.kafka,
            self.admin,
            groups,
            compose.on_failure(self.kafka, logging_to, self._closers),
            trash=trash,
            new_incarnation=self._random_name,
            note_cut_over=self.upgrade_recorder.cut_over_written,
        )

    def _open_engine(self, state: StateDir, service_id: str, functions: Functions) -> None:
        self.log = KafkaCommandLog(
            self.kafka,
            service_id,
            self.settings.number("ksql.internal.topic.replicas"),
            self._replay,
            offsets_of(self.settings.text(SKIP)),
            self.leadership.confirm,
        )
        self._closers.append(self.log.close)
        self.engine = Engine(
            functions=functions,
            topics=KafkaTopics(self.admin),
            log=self.log,
            runner=self.runner,
            history=self.upgrade_recorder,
            parallelism=max(2, os.cpu_count() or 2),
            registry=self.registry,
            applied_offset=AppliedOffsetFile(state.carried_out),
            now_ms=self._now_ms,
        )
        self.rebuilds = RebuildSupervisor(self.engine, self.settings, self._leads)
        self._closers.append(self.rebuilds.close)
        self.durable_topics = DurableTopics(
            self._quick_admin, self.log, self._schemas, lambda: state.identity.ended
        )
        self._closers.append(self._stop_queries)
        doubt_resolver = DoubtResolver(self.engine)
        self.engine.on_doubt = doubt_resolver.wake
        self._closers.append(doubt_resolver.close)

    def _open_services(self) -> None:
        self._writer = writer = SharedSender(self.kafka)
        self._closers.append(writer.close)
        host = self.replicas.host
        self.audit = compose.audit(self.settings, writer, self.admin, host, self._closers)
        self.engine.on_change = compose.on_change(self.views, writer)
        self.monitor = SparkMonitor(
            self.runner,
            self.admin,
            self.engine,
            self._outage,
            self._now_ms,
            self.views,
            self._remote_leader,
        )
        self.leadership.troubled = lambda: self.monitor.troubled
        settings, replicas = self.settings, self.replicas
        self.hosts = ClusterClient(settings, self.members, replicas.peers, self._remote_leader)
        self._closers.append(self.hosts.close)
        processed = ProcessedOffsets(self.monitor, self.members, replicas.peers).of
        following = ConsistencyResolver(lambda: self.engine.catalog, processed, AllEnds(self.admin))
        self._feeds = ConsumerRegistry(self.kafka, self.admin.topic_id, time.monotonic)
        has_processed = self.monitor.has_processed
        tables = TableProvider(self.views, self.admin, has_processed, replicas, following)
        limits = Limits(self.settings, steady_ms)
        opened = (self.engine, self._feeds.open, self.admin, tables)
        self.reads = QueryService(*opened, self._now_ms, limits)
        heartbeats = compose.heartbeats(settings, self.members, replicas.credentials, replicas.tls)
        self._closers.append(heartbeats.close)
        heartbeats.start()
        self.services = Services(
            engine=self.engine,
            monitor=self.monitor,
            writer=writer,
            now_ms=self._now_ms,
            host=replicas.host,
            close_push=self.reads.close,
            pushes=self.reads.pushes,
            pulls=self.reads.pulls(replicas.host),
            history=self.upgrade_recorder,
            check_kafka=self._check_kafka,
            commands=compose.command_rate(self.settings),
            await_rebuild=self.rebuilds.wait,
            rebuild_problem=self.rebuilds.problem,
            rebuild_growth=self.rebuilds.growth,
            records=TopicRecords(self.kafka, self.admin),
            connect=self.connect,
        )
        self._closers.append(self.reads.close_all)
        queries = QueryTopics(lambda: [*self.runner.running.values()], PROBLEMS, time.monotonic)
        users = (self.durable_topics, self.views, queries, self._feeds, writer)
        self._topic_watch = TopicWatch(
            self._quick_admin.identities_or_errors, [user.watched for user in users]
        )

    def _open_registry(self, state: StateDir) -> None:
        registry = open_registry(
            self.settings, state.own, lambda: kafka_log(self.settings, self.kafka)
        )
        self._closers.append(registry.close)
        self.registry, self.registry_settings = registry.registry, registry.settings
        self._schemas = registry.topic
        if registry.topic:
            self.addresses["schema registry"] = registry.settings.url
        self._set(REGISTRY_URL, registry.settings.url)

    def _set(self, name: str, value: str) -> None:
        """Settle a property that was left open."""
        self.settings = Settings({**self.settings.server, name: value}, self.settings.overrides)

    def _replay(self, offset: int, command: Command) -> None:
        """Replay a command in the engine, which is made after the log that calls this."""
        self.engine.replay(offset, command)
        self._on_replay(command)

    def _stop_queries(self) -> None:
        if not self.replaying:
            self.engine.stop()

    def leave(self) -> None:
        """Let the other servers take over its reads; this ends in five seconds."""
        members, follower = self._peers, self._follower
        if members is None or follower is None or not follower.withdraw(WITHDRAWAL_S):
            return
        if not (self.again or not self.is_follower or members.leader() == members.me):
            hand_over(members)

    def stop(self) -> None:
        """End everything, the last started first; a second call does nothing.

        A query may finish a batch in some seconds; else it is interrupted and repeated at the next
        start. So this takes about ten, ``leave`` five before it; the process has fifteen in all.
        """
        self.ready.clear()
        self.connect.begin_end()
        with self._stop_lock:
            closers, self._closers = self._closers, []
            runtime, self._own_runtime = self._own_runtime, None
            broker, self._broker = self._broker, None
            end(closers, runtime, broker, shared=self._given_runtime is not None)

    def _outage(self) -> str:  # why no query can work; usually empty
        return self.runtime.problem() or self.health_loop.kafka or self.leadership.problem

    def _check_kafka(self) -> None:
        if self.health_loop.kafka:
            raise KafkaUnreachable(self.kafka.bootstrap, self.health_loop.kafka)

    def _leads(self) -> bool:
        return self.ready.is_set() and not self.is_follower and not self.lost

    def _poll(self) -> None:
        if self.ready.is_set():
            try:
                self.monitor.refresh()
            finally:  # what ails one look ends no other
                self._topic_watch.poll()
