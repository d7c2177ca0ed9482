"""Statements about connectors, over a service in memory and a small Kafka Connect."""

from __future__ import annotations

from typing import Any

import pytest

from ksql.control.access.requester import Requester, acting
from ksql.control.access.rights import Grants, Pattern, Right, Rule
from ksql.control.statements.dry_run import dry_run
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.masking import masked
from ksql.core.config import Settings
from ksql.kafka.connect import Connect, ConnectSettings, connect_settings
from ksql.kafka.connect.errors import ConnectStarting
from server.errors import body_of
from server.wire import to_wire as _to_wire
from tests.unit.kafka.connect.fake import FILE_SINK, FILE_SOURCE, dies, running
from tests.unit.world import StillMonitor, World

CREATE = (
    "CREATE SOURCE CONNECTOR `lines` WITH ('connector.class'='FileStreamSource', "
    "'file'='/in.txt', `topic`='lines', 'tasks.max'=1, \"db.password\"='hun''ter2');"
)
MASKED = (
    "CREATE SOURCE CONNECTOR `lines` WITH ('connector.class'='FileStreamSource', "
    "'file'='[string]', `topic`='[string]', 'tasks.max'='[string]', \"db.password\"='[string]');"
)
SOURCE = {"connector.class": FILE_SOURCE, "file": "/in.txt", "topic": "lines"}
SINK = {"connector.class": FILE_SINK, "file": "/out.txt", "topics": "lines"}


@pytest.fixture
def fake():
    with running() as worker:
        yield worker


@pytest.fixture
def world(fake):
    world = World()
    world.services.monitor = Monitor(world.topics)
    world.services.connect = Connect(connect_settings(Settings({"ksql.connect.url": fake.url})))
    yield world
    world.services.connect.close()


def to_wire(entity) -> Any:
    return _to_wire(entity)


def dry(world, text) -> list[Any]:
    return list(dry_run(text, world.services, world.settings, {}, {}))


def refused(world, text):
    """Return the error that a client gets of a request that fails."""
    with pytest.raises(RequestFailed) as caught:
        world.run(text)
    return body_of(caught.value)


class Monitor(StillMonitor):
    """Knows the topics of the service in memory."""

    def __init__(self, topics):
        self._topics = topics

    def topics(self):
        return {name: [1] for name in self._topics.known}


def refuses(handler):
    body = b'{"error_code": 403, "message": "tracking is off"}'
    handler.plain(400, body, "application/json")


class TestCreate:
    def test_the_configuration_is_sent_and_its_secrets_are_not_shown(self, world, fake):
        [answer] = world.run(CREATE)
        assert to_wire(answer) == {
            "@type": "connector_info",
            "statementText": MASKED,
            "warnings": [],
            "info": {
                "name": "lines",
                "config": {
                    "connector.class": "FileStreamSource",
                    "file": "/in.txt",
                    "topic": "lines",
                    "tasks.max": "1",
                    "db.password": "***",
                    "name": "lines",
                },
                "tasks": [],
                "type": "source",
            },
        }
        assert fake.connectors["lines"]["db.password"] == "hun'ter2"

    def test_if_not_exists(self, world):
        world.run(CREATE)
        again = CREATE.replace("CONNECTOR", "CONNECTOR IF NOT EXISTS")
        [answer] = world.run(again)
        assert answer.type_name == "warning_entity"
        assert answer.message == "Connector lines already exists"
        assert "hunter" not in answer.statement_text

    def test_a_name_that_is_taken(self, world):
        world.run(CREATE)
        body = refused(world, CREATE)
        assert body["error_code"] == 40900
        assert body["statementText"] == MASKED
        assert body["message"].startswith(
            "line 1:1: Failed to create connector lines: Connector lines already exists\nChoose"
        )

    @pytest.mark.parametrize(
        ("written", "instead", "said"),
        [
            ("FileStreamSource", "Jdbc", "no connector of the class Jdbc\nIt has: " + FILE_SINK),
            ("'connector.class'='FileStreamSource', ", "", "the configuration names no class"),
            (
                "`topic`='lines'",
                "name='LINES'",
                "'name' is LINES, and the connector is called lines",
            ),
            ("`topic`='lines'", "`topic`=NULL", "topic has no value"),
        ],
    )
    def test_what_is_wrong_is_said_before_anything_is_made(
        self, world, fake, written, instead, said
    ):
        body = refused(world, CREATE.replace(written, instead))
        assert said in body["message"]
        assert body["error_code"] == 40001
        assert fake.connectors == {}

    def test_what_the_class_finds_wrong(self, world, fake):
        fake.problems = {"file": ["is a directory"], "topic": ["must be one"]}
        body = refused(world, CREATE)
        assert (
            "Failed to create connector lines: Validation error: file - is a directory\n"
            "topic - must be one"
        ) in body["message"]

    def test_a_connector_of_the_other_direction_is_made_with_a_warning(self, world):
        [answer] = world.run(CREATE.replace("SOURCE", "SINK"))
        assert [w.message for w in answer.warnings] == ["FileStreamSource is a source connector."]

    def test_the_worker_dies_meanwhile(self, world, fake):
        fake.instead("POST", "/connectors", dies)
        body = refused(world, CREATE)
        assert body["error_code"] == 50000
        assert "look with SHOW CONNECTORS;" in body["message"]

    def test_an_embedded_worker_makes_the_topics_of_sources(self, world, fake):
        settings = ConnectSettings((fake.url,), embedded=True)
        world.services.connect = Connect(settings)
        world.run(CREATE + "CREATE SINK CONNECTOR s WITH ('connector.class'='FileStreamSink');")
        assert fake.connectors["lines"]["topic.creation.default.partitions"] == "-1"
        assert "topic.creation.default.partitions" not in fake.connectors["S"]

    def test_it_is_in_no_command_topic(self, world):
        world.run(CREATE + "DROP CONNECTOR `lines`;")
        assert world.log.commands == []


class TestLooking:
    def test_the_list(self, world, fake):
        fake.put("lines", SOURCE)
        fake.put("out", SINK, tasks=2, state="FAILED", trace="no room")
        sources, sinks, both = world.run(
            "SHOW SOURCE CONNECTORS; LIST SINK CONNECTORS; SHOW CONNECTORS;"
        )
        assert to_wire(both)["connectors"] == [
            {
                "name": "lines",
                "type": "source",
                "className": FILE_SOURCE,
                "state": "RUNNING (1/1 tasks RUNNING)",
            },
            {
                "name": "out",
                "type": "sink",
                "className": FILE_SINK,
                "state": "WARNING (0/2 tasks RUNNING)",
            },
        ]
        assert [each.name for each in sources.connectors] == ["lines"]
        assert [each.name for each in sinks.connectors] == ["out"]

    def test_a_user_is_shown_what_it_has_a_right_on(self, world, fake):
        world.run("CREATE STREAM L (L STRING) WITH (KAFKA_TOPIC='lines', PARTITIONS=1);")
        fake.put("lines", SOURCE)
        fake.put("out", SINK)
        rule = Rule(Right.READ, (Pattern("connector", "out"),))
        with acting(Requester("ada", Grants((rule,)))):
            [listed, described] = world.run("SHOW CONNECTORS; DESCRIBE CONNECTOR `out`;")
            assert "lines" in refused(world, "DESCRIBE CONNECTOR `lines`;")["message"]
        assert [each.name for each in listed.connectors] == ["out"]
        assert described.sources == ()

    def test_the_plugins(self, world):
        [answer] = world.run("SHOW CONNECTOR PLUGINS;")
        assert to_wire(answer)["connectorsPlugins"][0] == {
            "className": FILE_SINK,
            "type": "sink",
            "version": "4.1.1",
        }

    def test_a_connector_with_its_sources(self, world, fake):
        world.run("CREATE STREAM L (L STRING) WITH (KAFKA_TOPIC='lines', PARTITIONS=1);")
        fake.put("out", SINK, state="FAILED", trace="java.io: no room")
        [answer] = world.run("DESCRIBE CONNECTOR `out`;")
        form = to_wire(answer)
        assert form["connectorClass"] == FILE_SINK
        assert form["status"] == {
            "name": "out",
            "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:8083", "trace": None},
            "tasks": [
                {
                    "id": 0,
                    "state": "FAILED",
                    "worker_id": "127.0.0.1:8083",
                    "trace": "java.io: no room",
                }
            ],
            "type": "sink",
        }
        assert [source["name"] for source in form["sources"]] == ["L"]
        assert form["topics"] == ["lines"]
        assert form["warnings"] == []

    def test_a_trace_does_not_show_the_secrets_of_the_connector(self, world, fake):
        secret = SINK | {"db.password": "hunter2"}
        fake.put("out", secret, state="FAILED", trace="no login: hunter2")
        [answer] = world.run("DESCRIBE CONNECTOR `out`;")
        assert to_wire(answer)["status"]["tasks"][0]["trace"] == "no login: ***"

    def test_nor_the_users_of_its_urls(self, world, fake):
        trace = "no answer of jdbc:oracle:thin:scott/tiger@db:1521, http://ada:hunter2@there/x"
        fake.put("out", SINK, state="FAILED", trace=trace)
        [answer] = world.run("DESCRIBE CONNECTOR `out`;")
        shown = "no answer of jdbc:oracle:thin:***@db:1521, http://***@there/x"
        assert to_wire(answer)["status"]["tasks"][0]["trace"] == shown

    @pytest.mark.parametrize("name", [".", ".."])
    def test_a_name_that_no_path_can_hold_is_refused(self, world, fake, name):
        body = refused(world, CREATE.replace("`lines` WITH", f"`{name}` WITH"))
        assert f"no connector can be called {name}" in body["message"]
        assert fake.connectors == {}

    def test_topics_that_do_not_exist_are_named(self, world, fake):
        fake.put("out", SINK)
        fake.instead("GET", "/connectors/out/topics", refuses)
        [answer] = world.run("DESCRIBE CONNECTOR `out`;")
        assert [warning.message for warning in answer.warnings] == [
            "Could not list related topics due to error: tracking is off",
            "Topic lines does not exist.",
        ]

    def test_one_that_has_just_been_made(self, world):
        world.run(CREATE)
        [answer] = world.run("DESCRIBE CONNECTOR `lines`;")
        assert answer.status["connector"]["state"] == "UNASSIGNED"

    def test_one_that_is_not_there(self, world):
        body = refused(world, "DESCRIBE CONNECTOR c;")
        assert body["error_code"] == 40400
        assert "Failed to describe connector C: Connector 'C' does not exist." in body["message"]
        assert "upper case" in body["message"]


class TestDrop:
    def test_it_is_gone(self, world, fake):
        fake.put("lines", SOURCE)
        [answer] = world.run("DROP CONNECTOR `lines`;")
        assert to_wire(answer) == {
            "@type": "drop_connector",
            "statementText": "DROP CONNECTOR `lines`;",
            "warnings": [],
            "connectorName": "lines",
        }
        assert fake.connectors == {}

    def test_one_that_is_not_there(self, world):
        assert refused(world, "DROP CONNECTOR c;")["error_code"] == 40400
        [answer] = world.run("DROP CONNECTOR IF EXISTS c;")
        assert answer.message == "Connector 'C' does not exist."


class TestDryRun:
    def test_nothing_is_made_or_dropped(self, world, fake):
        fake.put("old", SOURCE)
        created, dropped, gone = dry(
            world, CREATE + "DROP CONNECTOR `old`; DROP CONNECTOR IF EXISTS c;"
        )
        assert (created.message, created.statement_text) == ("Created connector lines", MASKED)
        assert dropped.message == "Dropped connector old"
        assert gone.message == "Connector 'C' does not exist."
        assert list(fake.connectors) == ["old"]

    def test_what_would_be_refused(self, world):
        with pytest.raises(RequestFailed, match="no connector of the class"):
            dry(world, CREATE.replace("Stream", ""))


class Starting(Connect):
    """A worker that does not answer before it is asked the second time."""

    def __init__(self, settings):
        super().__init__(settings)
        self.calls = 0

    def client(self):
        self.calls += 1
        if self.calls == 1:
            raise ConnectStarting("")
        return super().client()


class TestStarting:
    def test_a_statement_waits_for_an_embedded_worker_without_a_thread(self, fake):
        world = World()
        settings = connect_settings(Settings({"ksql.connect.url": fake.url}))
        world.services.connect = Starting(settings)
        running_ = world.running("SHOW CONNECTORS;")
        assert running_.proceed() is None
        assert running_.proceed()[0].connectors == ()

    def test_a_dry_run_does_not_wait(self, fake):
        world = World()
        settings = connect_settings(Settings({"ksql.connect.url": fake.url}))
        world.services.connect = Starting(settings)
        with pytest.raises(RequestFailed, match="does not answer yet"):
            dry(world, "DROP CONNECTOR c;")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CREATE, MASKED),
        ("SHOW CONNECTORS; SET 'a'='b';", "SHOW CONNECTORS; SET 'a'='b';"),
        (
            "SET 'a'='b'; create sink\n connector x with (\"Connector.Class\"='k', k = -1.5 )",
            "SET 'a'='b'; create sink\n connector x with (\"Connector.Class\"='k', "
            "k = '[string]' )",
        ),
        ("CREATE SINK CONNECTOR x WITH (a='open", "CREATE SINK CONNECTOR x WITH (a='[string]'"),
        (
            "CREATE /* don't */ SINK\n-- it's\nCONNECTOR x WITH (a=b c, -- d='e'\n f='g;h');",
            "CREATE  SINK\n\nCONNECTOR x WITH (a='[string]', \n f='[string]');",
        ),
        ("CREATE STREAM connector WITH (a='b');", "CREATE STREAM connector WITH (a='b');"),
        ("CREATE SINK CONNECTOR x WITH (a=${secret});",
         "CREATE SINK CONNECTOR x WITH (a='[string]');"),
    ],
)  # fmt: skip
def test_values_are_masked_in_any_text(text, shown):
    assert masked(text) == shown


@pytest.mark.parametrize("unit", ["'", '"', "`", "a", "''=", "/*", "--", "CREATE ", " ", "a=", "."])
def test_masking_takes_time_that_grows_with_the_length(unit):
    text = "CREATE SINK CONNECTOR x WITH (" + unit * 250_000
    assert masked(text).startswith("CREATE SINK CONNECTOR x WITH (")
