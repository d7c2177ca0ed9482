"""The whole service in memory behind its doors: what a request comes to, and what it must not."""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import contextmanager

import httpx

from ksql.cluster.members import SingleServer
from ksql.cluster.replicas.cluster_status import ENABLED, own_server
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.replica_service import ReplicaService
from ksql.core.config import Settings
from ksql.exec.memory.driver import MemoryExtents
from ksql.formats.schema_registry import MemoryRegistry
from qtt.memory import MemoryService
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


class FuzzedService(MemoryService):
    """A server with heartbeats and an empty set of copies."""

    def __init__(self, script):
        self.world = world = World(script, registry=MemoryRegistry())
        super().__init__(world.engine, world.topics, world.services, world.settings, follow=False)
        beating = Settings({ENABLED: "true"})
        admin = MemoryExtents(world.topics)
        assignment = PartitionAssignment(SingleServer(own_server(beating)), 0)
        self.replicas = ReplicaService(beating, assignment, NoTables(), admin, lambda: 1000)
        self.cluster = self.replicas.cluster
        self.host = self.replicas.host

    def begin(self, text, properties, variables, credentials="", token=None, user=""):
        return Draining(
            super().begin(text, properties, variables, credentials, token, user), self.world.drain
        )

    def cluster_status(self):
        return self.cluster.status()

    def note_alive(self, host):
        self.cluster.note_alive(host)

    def reported(self, host, lags):
        self.cluster.reported(host, lags)

    def read_replica(self, ask):
        return self.replicas.read(ask)

    def replica_statuses(self):
        return self.replicas.replica_statuses()

    def holders(self, table, key):
        return self.replicas.hosts(self.world.catalog, table, key, None)


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
        with self._noting_failures():
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
    def _noting_failures(self):
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
    return Doors(create_app(FuzzedService(script)))
