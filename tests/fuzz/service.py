"""The whole service in memory behind its doors: what a request comes to, and what it must not."""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import contextmanager
from unittest import mock

import httpx

from ksql.app.cluster import ENABLED, Cluster
from ksql.app.reads import Reads
from ksql.app.teardown import end_cluster
from ksql.base.config import Settings, check
from ksql.base.errors import KsqlError
from ksql.base.records import RawRecord
from ksql.formats.schema_registry import MemoryRegistry
from ksql.statements import execute
from ksql.statements.answers import Health, RequestFailed, ServerInfo
from ksql.statements.inserts import RowWriter
from ksql.stores.memory import MemoryStore
from server.app import create_app
from server.errors import DEFECT, SERVER_ERROR
from tests.traces import TRACES
from tests.unit.world import World


class MemoryAdmin:
    """Where topics begin and end."""

    def __init__(self, topics):
        self._topics = topics

    def topics(self):
        return dict(self._topics.known)

    def begin_offsets(self, topics):
        return {(topic, 0): 0 for topic in topics}

    def end_offsets(self, topics):
        return {(topic, 0): len(self._topics.records.get(topic, ())) for topic in topics}


class MemoryFeed:
    """All that the topics hold, at once; then it is over."""

    def __init__(self, topics, start, on_end=lambda: None):
        self._topics = topics
        self.positions = dict(start)
        self.open = True
        self._on_end = on_end

    def poll(self):
        found = []
        for topic, partition in self.positions:
            records = self._topics.records.get(topic, [])
            begin = self.positions[topic, partition]
            found += [
                RawRecord(topic, 0, offset, r.timestamp, r.key, r.value, r.headers or [])
                for offset, r in enumerate(records[begin:], begin)
            ]
            self.positions[topic, partition] = len(records)
        self.open = False
        return sorted(found, key=lambda record: record.timestamp)

    def hold(self, _places):
        """There is nothing more to come that would have to wait."""

    def end(self):
        self.open = False

    def close(self):
        self.end()
        self._on_end()


class MemoryReads(Reads):
    """Queries of clients over what lies in memory."""

    def __init__(self, world):
        super().__init__(world.engine, world.topics, MemoryAdmin(world.topics), None, lambda: 1000)
        self._world = world

    def stores(self, source, _settings):
        records = self._world.topics.records.get(source.topic, [])
        store = MemoryStore()
        store.put((r.key, r.value, r.timestamp) for r in records)
        store.commit(len(records))
        return {0: store}


class NoTables:
    """No table is followed."""

    def table(self, _source):
        return None


class MemoryService:
    """What a door needs of the service, in memory."""

    def __init__(self, script):
        self.world = World(script, registry=MemoryRegistry())
        beating = Settings({ENABLED: "true"})
        admin = MemoryAdmin(self.world.topics)
        self.cluster = Cluster(beating, admin, NoTables(), lambda: 1000)
        self.host = self.cluster.host
        self.heard, self.reported = self.cluster.heard, self.cluster.reported
        self.reads = MemoryReads(self.world)
        self.world.services.pushes = self.reads.pushes

    def start(self):
        """It is there."""

    def stop(self):
        """It goes by itself."""

    def execute(self, text, properties, variables, command_sequence_number):
        world = self.world
        done = execute.run(text, world.services, world.settings, properties, variables)
        world.drain()
        return done

    def await_command(self, offset):
        """All commands have been carried out."""

    def query(self, text, properties, variables, *, tombstones=True):
        world = self.world
        services, settings = world.services, world.settings
        return self.reads.open(
            text, services, settings, properties, variables, tombstones=tombstones
        )

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
        return self.cluster.status(self.world.catalog)

    def statuses(self):
        return dict(self.world.engine.statuses)

    def status(self, command_id):
        return self.statuses().get(command_id)

    def is_valid_property(self, name):
        try:
            check(name)
        except KsqlError:
            return False
        return True

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
            with (
                mock.patch("ksql.query.push.Feed", MemoryFeed),
                mock.patch("ksql.query.printing.Feed", MemoryFeed),
            ):
                yield
        finally:
            for each in loggers:
                each.removeHandler(self._failures)


def doors(script):
    """Of a new service on which the script has run."""
    return Doors(create_app(MemoryService(script)))
