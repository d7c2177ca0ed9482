"""The whole service in memory behind its doors: what a request comes to, and what it must not."""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import contextmanager

import httpx

from ksql.app.teardown import end_cluster
from ksql.cluster.members import Alone
from ksql.cluster.replicas.cluster import ENABLED, own_server
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.replica_service import ReplicaService
from ksql.control.statements import execute
from ksql.control.statements.answers import Health, RequestFailed, ServerInfo
from ksql.control.statements.inserts import RowWriter
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.core.token import TokenScope
from ksql.exec.memory.feed import MemoryExtents
from ksql.formats.schema_registry import MemoryRegistry
from qtt.memory import memory_reads
from server.app import create_app
from server.errors import DEFECT, SERVER_ERROR
from tests.traces import TRACES
from tests.unit.world import World


class NoTables:
    """No table is followed."""

    def tables(self):
        return []

    def table(self, _source):
        return None

    def of_query(self, _home):
        return None


class Draining:
    """A request whose changes arrive before its answer."""

    def __init__(self, running, drain):
        self._running, self._drain = running, drain

    def proceed(self):
        done = self._running.proceed()
        self._drain()
        return done


class MemoryService:
    """What a door needs of the service, in memory."""

    is_follower = False
    terminated = False
    home = TokenScope("memory", "default_")

    def __init__(self, script):
        self.world = World(script, registry=MemoryRegistry())
        beating = Settings({ENABLED: "true"})
        admin = MemoryExtents(self.world.topics)
        assignment = PartitionAssignment(Alone(own_server(beating)), 0)
        self.copies = ReplicaService(beating, assignment, NoTables(), admin, lambda: 1000)
        self.cluster = self.copies.cluster
        self.host = self.copies.host
        self.heard, self.reported = self.cluster.heard, self.cluster.reported
        self.read_copy, self.standings = self.copies.read, self.copies.standings
        engine, topics = self.world.engine, self.world.topics
        self.reads = memory_reads(engine, topics, lambda: 1000, follow=False)
        self.world.services.pushes = self.reads.pushes

    def start(self):
        """It is there."""

    def stop(self):
        """It goes by itself."""

    def begin(self, text, properties, variables, _credentials="", token=None):
        world = self.world
        return Draining(
            execute.Execution(text, world.services, world.settings, properties, variables, token),
            world.drain,
        )

    def awaiting(self, _offset):
        return lambda: True

    def holders(self, table, key):
        return self.copies.hosts(self.world.catalog, table, key, None)

    def query(self, text, properties, variables, *, tombstones=True, caller=None):
        world = self.world
        services, settings = world.services, world.settings
        return self.reads.open(
            text, services, settings, properties, variables, tombstones=tombstones, caller=caller
        )

    def at_once(self, text, properties, caller):
        return self.reads.at_once(text, self.world.settings, properties, caller)

    def close_query(self, query_id):
        return self.reads.close(query_id)

    def inserts(self, target, properties):
        world = self.world
        request = execute.session(world.services, world.settings, properties, {})
        try:
            return RowWriter(target, request)
        except KsqlError as error:
            raise RequestFailed(error) from error

    def info(self):
        return ServerInfo("0", "memory", "default_")

    def addresses(self):
        return {}

    def health(self):
        return Health({"metastore": True, "kafka": True, "commandRunner": True})

    def cluster_status(self):
        return self.cluster.status()

    def statuses(self):
        return dict(self.world.engine.statuses)

    def status(self, command_id):
        return self.statuses().get(command_id)

    def check_property(self, name):
        self.world.settings.settable(name)

    def terminate(self, delete_topics):
        world = self.world
        return end_cluster(
            world.services, world.settings, world.topics, "commands", delete_topics, lambda: None
        )


class _Failures(logging.Handler):
    """What the service writes into its log together with a stack trace."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.seen = []

    def emit(self, record):
        if record.exc_info and record.exc_info[1]:
            self.seen.append("".join(traceback.format_exception(record.exc_info[1])))


class Defect(AssertionError):
    """An answer in which the server says that it is at fault, or shows its insides."""


class Doors:
    """Requests to an application without a socket, each checked."""

    def __init__(self, app):
        self.app = app
        self._failures = _Failures()

    def ask(self, method, path, **request):
        """The answer.

        Raises: Defect; what the application itself lets through.
        """
        with self._heard():
            answer = asyncio.run(self._send(method, path, request))
        if self._failures.seen:
            raise Defect(self._failures.seen.pop())
        text = answer.text
        code = answer.status_code
        if code == 500 or DEFECT in text or f'"error_code":{SERVER_ERROR}' in text:
            raise Defect(f"{code} {text[:500]}")
        shown = [sign for sign in TRACES if sign in text and sign not in str(request)]
        if shown:
            raise Defect(f"shows {shown}: {text[:2000]}")
        return answer

    async def _send(self, method, path, request):
        transport = httpx.ASGITransport(self.app)  # what no handler knows is raised here
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **request)

    @contextmanager
    def _heard(self):
        self._failures.seen.clear()
        loggers = [logging.getLogger(name) for name in ("server", "ksql")]
        for each in loggers:
            each.addHandler(self._failures)
        try:
            yield
        finally:
            for each in loggers:
                each.removeHandler(self._failures)


def doors(script):
    """Of a new service on which the script has run."""
    return Doors(create_app(MemoryService(script)))
