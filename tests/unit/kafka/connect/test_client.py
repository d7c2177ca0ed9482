"""The client of Kafka Connect against a small server in this process."""

from __future__ import annotations

import json
import os
import ssl

import pytest
import trustme

from ksql.core.config import Settings
from ksql.core.errors import StartError
from ksql.kafka.connect.client import ConnectClient
from ksql.kafka.connect.errors import (
    BadConnectSetting,
    BadCredentials,
    ConnectBroke,
    ConnectBusy,
    ConnectFailed,
    ConnectForbids,
    ConnectorExists,
    ConnectRejects,
    ConnectStarting,
    ConnectTooSlow,
    ConnectUnreachable,
    NoSuchConnector,
    NotConnect,
    UnknownPlugin,
)
from ksql.kafka.connect.model import ConnectorStatus, TaskStatus, known_topics
from ksql.kafka.connect.settings import (
    ConnectSettings,
    check_connect,
    connect_settings,
    is_embedded,
)
from tests.unit.kafka.connect.fake import (
    FILE_SINK,
    FILE_SOURCE,
    dies,
    error,
    running,
    says,
    sleeps,
    trickles,
    trickles_headers,
)

SOURCE = {"connector.class": FILE_SOURCE, "file": "/tmp/in", "topic": "lines"}


def client_of(url, **properties):
    named = {name.replace("__", "."): value for name, value in properties.items()}
    settings = connect_settings(Settings({"ksql.connect.url": url, **named}))
    return ConnectClient(settings)


@pytest.fixture
def fake():
    with running() as worker:
        yield worker


@pytest.fixture
def client(fake):
    return client_of(fake.url)


def answers(status, message):
    """A worker's own error, as an answer."""
    return says(status, json.dumps(error(status, message)[1]), "application/json")


class TestCalls:
    def test_a_connector_from_its_making_to_its_end(self, fake, client):
        info = client.create("A/ b", SOURCE)
        assert (info.name, info.type, info.tasks) == ("A/ b", "source", ())
        assert info.config["file"] == "/tmp/in"
        assert client.names() == ("A/ b",)
        assert client.status("A/ b") is None
        fake.put("A/ b", SOURCE)
        assert client.status("A/ b").summary() == "RUNNING (1/1 tasks RUNNING)"
        fake.active["A/ b"] = ["lines"]
        assert client.topics("A/ b") == ("lines",)
        client.delete("A/ b")
        with pytest.raises(NoSuchConnector, match="Connector 'A/ b' does not exist"):
            client.delete("A/ b")

    def test_the_list_has_those_without_a_status_too(self, fake, client):
        fake.put("old", SOURCE)
        client.create("new", SOURCE)
        listed = client.connectors()
        assert [(each.info.name, each.status is None) for each in listed] == [
            ("new", True),
            ("old", False),
        ]

    def test_a_class_may_be_named_in_short(self, client):
        for name in (FILE_SINK, "FileStreamSinkConnector", "FileStreamSink"):
            assert client.plugin(name).class_name == FILE_SINK

    def test_an_unknown_class_names_the_known_ones(self, client):
        with pytest.raises(UnknownPlugin) as caught:
            client.plugin("io.x.Jdbc")
        assert f"{FILE_SINK} (sink), {FILE_SOURCE} (source)" in caught.value.detail
        assert "plugin.path" in caught.value.hint

    def test_problems_of_a_configuration(self, fake, client):
        fake.problems = {"topic": ["must be set", "no"], "file": []}
        assert client.problems("c", SOURCE) == ("topic - must be set; no",)
        assert fake.requests[-1][2]["name"] == "c"

    def test_secrets_that_were_sent_do_not_come_back(self, fake, client):
        config = SOURCE | {"db.password": "hunter2"}
        fake.problems = {"db.password": ["hunter2 is too short"]}
        assert client.problems("c", config) == ("db.password - *** is too short",)
        fake.instead("POST", "/connectors", answers(400, "bad: hunter2"))
        with pytest.raises(ConnectRejects, match=r"bad: \*\*\*"):
            client.create("c", config)

    @pytest.mark.parametrize("short", ["1", "a", '"', "name", "true"])
    def test_a_short_secret_leaves_the_answer_readable(self, fake, client, short):
        """The connector is made: an answer that cannot be read would say that it is unknown."""
        info = client.create("c", SOURCE | {"db.password": short, "tasks.max": "1"})
        assert (info.name, info.config["connector.class"]) == ("c", FILE_SOURCE)

    def test_a_foreign_answer_to_secrets_does_not_show_them(self, fake, client):
        fake.instead("POST", "/connectors", says(200, "<html>you said hunter2</html>"))
        with pytest.raises(NotConnect) as caught:
            client.create("c", SOURCE | {"db.password": "hunter2"})
        assert "you said ***" in caught.value.detail

    @pytest.mark.parametrize("name", ["", ".", ".."])
    def test_a_name_that_a_path_cannot_hold_asks_for_no_other_path(self, fake, client, name):
        for ask in (client.info, client.delete, client.topics):
            with pytest.raises(NoSuchConnector):
                ask(name)
        assert client.status(name) is None
        assert fake.requests == []

    @pytest.mark.parametrize(
        "name", ["a/b", "a%2Fb", "?x=1", "#", "..%2f..", "ü ☃", "a\nb", "a;b", "\\"]
    )
    def test_odd_names_are_one_part_of_the_path(self, fake, client, name):
        fake.put(name, SOURCE)
        assert client.info(name).name == name
        client.delete(name)
        assert fake.connectors == {}


class TestFailures:
    @pytest.mark.parametrize(
        "answer",
        [
            says(302, "<html>sign in</html>"),
            says(200, "<html>sign in</html>"),
            says(304, ""),
        ],
    )
    def test_a_connector_is_not_said_to_be_dropped_by_a_page(self, fake, client, answer):
        """As a proxy answers that wants users to sign in, or to come by https."""
        fake.put("c", SOURCE)
        fake.instead("DELETE", "/connectors/c", answer)
        with pytest.raises(NotConnect):
            client.delete("c")
        assert "c" in fake.connectors

    def test_nobody_listens(self, fake):
        url = "http://user:hunter2@localhost:9"
        with pytest.raises(ConnectUnreachable) as caught:
            client_of(url).names()
        assert "hunter2" not in caught.value.text()
        assert "ksql.connect.url" in caught.value.hint

    def test_the_next_worker_is_taken_when_one_takes_no_connection(self, fake):
        client = client_of(f"http://127.0.0.1:9, {fake.url}/")
        assert client.names() == ()
        assert client.url == fake.url  # the next request begins there
        client.create("c", SOURCE)
        assert [method for method, *_ in fake.requests] == ["GET", "POST"]

    def test_a_worker_that_takes_a_request_is_the_only_one(self, fake):
        """It may have been carried out: another worker would do it twice."""
        with running() as other:
            client = client_of(f"{other.url},{fake.url}")
            other.instead("POST", "/connectors", dies)
            with pytest.raises(ConnectBroke):
                client.create("c", SOURCE)
        assert fake.requests == []
        assert client.names() == ()  # the other one has ended

    def test_none_of_several_workers_listens(self):
        with pytest.raises(ConnectUnreachable):
            client_of("http://127.0.0.1:9,http://127.0.0.1:10").names()

    def test_an_embedded_worker_that_has_just_ended_comes_back(self):
        settings = ConnectSettings(("http://127.0.0.1:9",), embedded=True)
        with pytest.raises(ConnectStarting):
            ConnectClient(settings).names()

    def test_a_name_that_is_taken(self, fake, client):
        fake.put("c", SOURCE)
        with pytest.raises(ConnectorExists, match="Connector c already exists"):
            client.create("c", SOURCE)

    def test_a_worker_that_is_busy_is_asked_again(self, fake, client):
        busy = answers(409, "Cannot complete request because of a conflicting operation")
        fake.instead("GET", "/connectors", busy, busy)
        assert client.names() == ()
        assert len(fake.requests) == 3

    def test_a_worker_that_stays_busy(self, fake):
        fake.instead("GET", "/connectors", *[answers(409, "rebalance")] * 99)
        with pytest.raises(ConnectBusy):
            client_of(fake.url, ksql__connect__request__timeout__ms="300").names()

    @pytest.mark.parametrize("slow", [sleeps(2), trickles, trickles_headers])
    def test_an_answer_that_does_not_come_in_time(self, fake, slow):
        fake.instead("GET", "/connectors", slow)
        with pytest.raises(ConnectTooSlow, match=r"did not answer within 0\.2 s"):
            client_of(fake.url, ksql__connect__request__timeout__ms="200").names()

    def test_a_change_without_an_answer_is_undecided(self, fake, client):
        fake.instead("POST", "/connectors", dies)
        with pytest.raises(ConnectBroke, match="ended the connection") as caught:
            client.create("c", SOURCE)
        assert "is not known: look with SHOW CONNECTORS;" in caught.value.detail

    def test_a_look_without_an_answer_is_not(self, fake, client):
        fake.instead("GET", "/connectors", dies)
        with pytest.raises(ConnectBroke) as caught:
            client.names()
        assert "SHOW CONNECTORS" not in caught.value.detail

    @pytest.mark.parametrize(
        "answer",
        [
            says(200, "<html>welcome</html>"),
            says(404, "<html>welcome</html>"),
            says(200, '{"welcome": 1}', "application/json"),
            says(200, "[welcome", "application/json"),
            says(404, '{"error_code": 404, "message": "welcome"}', "application/json"),
        ],
    )
    def test_something_else_answers(self, fake, client, answer):
        fake.instead("GET", "/connectors", answer)
        with pytest.raises(NotConnect) as caught:
            client.names()
        assert "welcome" in caught.value.detail

    def test_parts_of_another_form(self, fake, client):
        fake.put("c", SOURCE)
        odd = says(200, '{"c": {}, "tasks": [1]}', "application/json")
        for path, call in (
            ("/connectors/c", client.info),
            ("/connectors/c/status", client.status),
            ("/connectors/c/topics", client.topics),
        ):
            fake.instead("GET", path, odd)
            with pytest.raises(NotConnect):
                call("c")
        for path, call in (
            ("/connectors", client.connectors),
            ("/connector-plugins", client.plugins),
        ):
            fake.instead("GET", path, odd)
            with pytest.raises(NotConnect):
                call()

    @pytest.mark.parametrize(
        ("status", "kind"),
        [(401, ConnectForbids), (403, ConnectForbids), (500, ConnectFailed), (400, ConnectRejects)],
    )
    def test_the_workers_own_errors(self, fake, client, status, kind):
        fake.instead("GET", "/connectors", answers(status, "so it is"))
        with pytest.raises(kind) as caught:
            client.names()
        assert "so it is" in caught.value.text()


class TestCredentials:
    def test_they_are_read_from_a_file_and_again_when_it_changes(self, fake, tmp_path):
        file = tmp_path / "user"
        file.write_text("# who\nusername=ann\npassword = p=q\n")
        client = client_of(fake.url, **credentials(file, reload="true"))
        client.names()
        assert fake.headers[-1]["Authorization"] == "Basic YW5uOnA9cQ=="
        file.write_text("username: bob\npassword: r\n")
        os.utime(file, (1, 1))
        client.names()
        assert fake.headers[-1]["Authorization"] == "Basic Ym9iOnI="
        file.write_text("half")
        client.names()
        assert fake.headers[-1]["Authorization"] == "Basic Ym9iOnI="

    def test_files_that_cannot_be_used(self, tmp_path):
        for text in (None, "username=a", "\xff"):
            file = tmp_path / "user"
            if text is not None:
                file.write_bytes(text.encode("latin-1"))
            with pytest.raises(BadCredentials):
                client_of("http://localhost", **credentials(file))

    def test_a_source_without_a_file(self):
        with pytest.raises(BadConnectSetting, match="no file is named"):
            client_of("http://x", ksql__connect__basic__auth__credentials__source="FILE")


def credentials(file, reload="false"):
    prefix = "ksql__connect__basic__auth__credentials__"
    values = {"source": "FILE", "file": str(file), "reload": reload}
    return {prefix + name: value for name, value in values.items()}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


class TestTls:
    def test_its_certificate_is_checked(self, authority, tmp_path):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("elsewhere").configure_cert(context)
        trusted = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(trusted)
        named = {"ksql__connect__ssl__truststore__location": str(trusted)}
        with running(context) as fake:
            with pytest.raises(ConnectUnreachable, match="cannot be reached"):
                client_of(fake.url).names()
            with pytest.raises(ConnectUnreachable):
                client_of(fake.url, **named).names()
            unnamed = {"ksql__connect__ssl__endpoint__identification__algorithm": ""}
            assert client_of(fake.url, **named, **unnamed).names() == ()

    def test_its_own_certificate_is_shown(self, authority, tmp_path):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        trusted, own = tmp_path / "ca.pem", tmp_path / "own.pem"
        authority.cert_pem.write_to_path(trusted)
        authority.issue_cert("server").private_key_and_cert_chain_pem.write_to_path(own)
        named = {
            "ksql__connect__ssl__truststore__location": str(trusted),
            "ksql__connect__ssl__keystore__location": str(own),
        }
        with running(context) as fake:
            assert client_of(fake.url, **named).names() == ()


class TestSettings:
    def test_without_an_address_there_is_none(self):
        assert connect_settings(Settings({})) is None
        check_connect(Settings({}))

    @pytest.mark.parametrize("url", ["localhost:8083", "ftp://x", "http://", "http://x:1,y:2"])
    def test_what_is_no_address(self, url):
        with pytest.raises(BadConnectSetting, match="is no address"):
            check_connect(Settings({"ksql.connect.url": url}))

    def test_an_embedded_worker_and_another_one(self):
        both = {"ksql.connect.url": "http://x", "ksql.connect.embedded": "true"}
        with pytest.raises(BadConnectSetting, match="names another"):
            check_connect(Settings(both))

    def test_a_workers_file_begins_one(self, tmp_path):
        settings = Settings({"ksql.connect.worker.config": str(tmp_path / "none")})
        assert is_embedded(settings)
        with pytest.raises(StartError, match="cannot be read"):
            check_connect(settings)

    def test_plugins_that_are_not_there(self):
        missing = {"ksql.connect.embedded": "true", "ksql.connect.plugin.path": "/no/where"}
        with pytest.raises(BadConnectSetting, match="does not exist"):
            check_connect(Settings(missing))


def test_the_summary_of_a_status():
    tasks = (TaskStatus(0, "RUNNING", "w"), TaskStatus(1, "FAILED", "w", "why"))
    status = ConnectorStatus("c", "RUNNING", "w", "", tasks, "sink")
    assert status.summary() == "RUNNING (1/2 tasks RUNNING)"
    assert ConnectorStatus("c", "RUNNING", "w", "", tasks[1:], "sink").summary() == (
        "WARNING (0/1 tasks RUNNING)"
    )
    assert ConnectorStatus("c", "FAILED", "w", "why", tasks, "sink").summary() == "FAILED"


def test_topics_are_those_used_and_those_named():
    config = {"topics": "a, b", "topic": "", "file": "x"}
    assert known_topics(config, ("b", "c")) == ("a", "b", "c")
