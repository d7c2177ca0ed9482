"""A secret that comes in by any way comes out by none: answers, errors, log, metrics, warnings.

Each property that holds a secret gets a marker as its value, by each way in which it can be stated.
"""

from __future__ import annotations

import logging
from functools import partial

import orjson
import pytest

from ksql.control.statements.dry_run import dry_run
from ksql.control.statements.execute import RequestFailed
from ksql.core import PROPERTIES, KsqlError, Settings
from ksql.kafka import check_clients
from ksql.kafka.connect import check_connect
from ksql.kafka.errors import CLIENT_ERRORS
from server.errors import body_of, response_of
from server.logs import EventFormatter, JsonFormatter
from server.settings import odd_properties, odd_variables, properties_of
from server.wire import to_wire
from tests.unit.world import World

MARKER = "m4rk3r"
JAAS = f"x.PlainLoginModule required username='ada' password=\"{MARKER}\";"
URL = f"http://ada:{MARKER}@there:8081"
_CLIENTS = {
    "sasl.jaas.config": JAAS,
    "sasl.password": MARKER,
    "sasl.oauthbearer.client.credentials.client.secret": MARKER,
    "ssl.key.password": MARKER,
    "ssl.key.pem": f"-----BEGIN PRIVATE KEY-----{MARKER}",
    "ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{MARKER}",
    "ssl.keystore.password": MARKER,
    "ssl.truststore.password": MARKER,
    "basic.auth.user.info": f"ada:{MARKER}",
    "bearer.auth.token": MARKER,
    "url": URL,
}
_PREFIXES = (
    "",
    "producer.",
    "ksql.streams.",
    "ksql.streams.admin.",
    "ksql.streams.topic.",
    "ksql.schema.registry.",
    "ksql.connect.",
    "ksql.functions.ucase.",
    "spark.",
)
STATED = {prefix + name: value for prefix in _PREFIXES for name, value in _CLIENTS.items()}
STATED |= {name: MARKER for name in PROPERTIES if name.endswith("password")}
NAMES = sorted(STATED)
REPLACED = "CREATE OR REPLACE STREAM o AS SELECT k, UCASE(k) AS u, v FROM s;"
SCRIPT = (
    "SHOW PROPERTIES;"
    "CREATE STREAM s (k STRING KEY, v INT)"
    " WITH (kafka_topic='s', value_format='JSON', partitions=1);"
    "CREATE STREAM o AS SELECT k, UCASE(k) AS u FROM s; EXPLAIN CSAS_O_1; DESCRIBE o EXTENDED;"
    "SHOW QUERIES EXTENDED; SHOW STREAMS EXTENDED; EXPLAIN SELECT * FROM s;"
)


class Shown:
    """All that comes out while the marker goes in."""

    def __init__(self, caplog):
        caplog.set_level(logging.DEBUG)
        self._caplog = caplog
        self._texts = []

    def of(self, work, *arguments):
        """Note the result, or the error's texts."""
        try:
            result = work(*arguments)
        except (KsqlError, RequestFailed) as error:
            streamed = orjson.dumps(body_of(error)).decode()
            self._texts += [str(error), streamed, bytes(response_of(error).body).decode()]
        else:
            self._texts.append(orjson.dumps(to_wire(result)).decode())

    def check(self):
        """Refuse what shows the marker."""
        forms = EventFormatter(), JsonFormatter()
        lines = [form.format(record) for form in forms for record in self._caplog.records]
        metrics = str(CLIENT_ERRORS.counts())
        assert [text for text in (*self._texts, *lines, metrics) if MARKER in text] == []
        assert self._texts


@pytest.fixture
def shown(caplog):
    shown = Shown(caplog)
    yield shown
    shown.check()


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def test_by_statements(shown):
    for name in NAMES:
        world, stated = World(), f"{quoted(name)} = {quoted(STATED[name])}"
        for text in (
            f"SET {stated}; {SCRIPT}",
            f"SET {stated}; UNSET 'nothing';",
            f"SET {stated}",
            f"ALTER SYSTEM {stated};",
            f"CREATE STREAM t (v INT) WITH (kafka_topic='t', partitions=1, {stated});",
            f"CREATE STREAM t WITH ({stated}) AS SELECT * FROM s;",
            f"CREATE SOURCE CONNECTOR c WITH ('connector.class'='x', {stated});",
        ):
            shown.of(world.run, text)
            shown.of(partial(tried, world, text))


def tried(world, text):
    return list(dry_run(text, world.services, world.settings, {}, {}))


def test_by_the_properties_of_a_request(shown):
    for name in NAMES:
        world = World()
        shown.of(partial(world.run, SCRIPT, **{name: STATED[name]}))
        for text in (f"EXPLAIN {REPLACED}", REPLACED):
            for other in ({}, {name: "another"}):
                shown.of(partial(world.run, text, **other))


def test_by_the_configuration_of_the_server(shown):
    world = World()
    before = world.settings
    for name in NAMES:
        configuration = {name: STATED[name], "bootstrap.servers": "there:9092"}
        world.settings = Settings({**before.server, **configuration})
        shown.of(world.run, "SHOW PROPERTIES;")
        shown.of(odd_properties, configuration)
        shown.of(check_clients, configuration)
        shown.of(check_connect, world.settings)


def test_by_a_url_as_a_value(shown):
    for row in PROPERTIES:
        shown.of(odd_properties, {row: URL})
        shown.of(World().run, f"SET {quoted(row)} = {quoted(URL)}; SHOW PROPERTIES;")


def test_by_the_environment(shown):
    for name in NAMES:
        variable = "KSQL_" + name.removeprefix("ksql.").replace(".", "_").upper()
        option = f"-D{name}={STATED[name]} -D{name} {STATED[name]}"
        for environment in ({variable: STATED[name]}, {"KSQL_OPTS": option}):
            shown.of(odd_variables, environment)
            shown.of(odd_properties, properties_of(environment))
