"""Every road by which a statement or an object is reached, each with rights and without."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import WebSocketRoute
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ksql.cluster.members import Server
from ksql.control.access import ALL, NONE, NotPermitted, Requester, acting
from ksql.control.statements import RequestFailed
from ksql.core import HEADER, ServerSecret
from ksql.core.config import Settings
from ksql.core.files import WatchedFiles
from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from qtt.local import LocalServed
from server.app import create_app
from server.login_throttle import LoginThrottle
from server.passwords import hashed
from server.paths import is_listed
from server.rightsfile import RIGHTS, BadRights, RightsAlone
from server.users import BadUsers, Users
from tests.unit.server.fakes import FakeService

SETUP = """
CREATE STREAM PUBLIC_S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='public', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE STREAM SECRET (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='secret', PARTITIONS=1,
  VALUE_FORMAT='JSON');
CREATE TABLE PUBLIC_T AS SELECT K, COUNT(*) AS N FROM PUBLIC_S GROUP BY K;
CREATE TABLE SECRET_T AS SELECT K, COUNT(*) AS N FROM SECRET GROUP BY K;
INSERT INTO PUBLIC_S VALUES ('k', 1);
INSERT INTO SECRET VALUES ('k', 1);
"""
RIGHTS_TEXT = """
role reader  may read    on PUBLIC_*
role writer  may write   on PUBLIC_S
role modeler may read    on PUBLIC_*
role modeler may define  on MY_*, topic:my-*
role ops     may operate
role boss    may admin
"""
NAMES = ("reader", "writer", "modeler", "ops", "boss", "none")
USERS = "".join(f"{name}: x, {name}\n" for name in NAMES)
JAAS = """Props { org.eclipse.jetty.jaas.spi.PropertyFileLoginModule required file="%s"; };"""
REFUSED = (403, 40300)


def configuration(folder: Path, rights: str = RIGHTS_TEXT, users: str = USERS) -> dict[str, str]:
    (folder / "users").write_text(users, encoding="utf-8")
    (folder / "jaas").write_text(JAAS % (folder / "users"), encoding="utf-8")
    (folder / "rights").write_text(rights, encoding="utf-8")
    return {
        "authentication.method": "BASIC",
        "authentication.realm": "Props",
        "java.security.auth.login.config": str(folder / "jaas"),
        RIGHTS: str(folder / "rights"),
    }


class Roads:
    """A service in memory behind the whole application."""

    def __init__(self, folder: Path, rights: str = RIGHTS_TEXT) -> None:
        self.local = LocalServed()
        users = Users.of(Settings(configuration(folder, rights)))
        self.app = create_app(self.local.service, users=users)
        self.ksql("boss", SETUP)

    def ask(self, user: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = more.pop("headers", {})
        if user:
            headers |= {"authorization": "Basic " + base64.b64encode(f"{user}:x".encode()).decode()}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as c:
                return await c.request(method, path, headers=headers, **more)

        return asyncio.run(send())

    def ksql(self, user: str, text: str, path: str = "/ksql", **more: Any) -> httpx.Response:
        return self.ask(user, "POST", path, json={"ksql": text, **more})

    def query(self, user: str, text: str, path: str = "/query-stream") -> httpx.Response:
        name = "ksql" if path == "/query" else "sql"
        return self.ask(user, "POST", path, json={name: text})


@pytest.fixture(scope="module")
def roads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roads]:
    roads = Roads(tmp_path_factory.mktemp("rights"))
    yield roads
    roads.local.service.close()
    roads.app.state.context.release()


def outcome(answer: httpx.Response) -> tuple[int, int]:
    body = answer.json() if answer.status_code >= 400 else {}
    return answer.status_code, body.get("error_code", 0)


@pytest.mark.parametrize("path", ["/ksql", "/ksql/dry-run"])
@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("reader", "DROP STREAM PUBLIC_S DELETE TOPIC;"),
        ("reader", "INSERT INTO PUBLIC_S VALUES ('a', 1);"),
        ("reader", "CREATE STREAM MY_X AS SELECT * FROM PUBLIC_S;"),
        ("reader", "SHOW STREAMS; TERMINATE ALL;"),
        ("reader", "SET 'auto.offset.reset'='earliest'; DEFINE a='b'; DROP TABLE PUBLIC_T;"),
        ("reader", "DESCRIBE SECRET;"),
        ("reader", "EXPLAIN SELECT * FROM SECRET EMIT CHANGES;"),
        ("writer", "INSERT INTO SECRET VALUES ('a', 1);"),
        ("writer", "INSERT INTO PUBLIC_S SELECT * FROM PUBLIC_S;"),
        ("modeler", "CREATE STREAM MY_X AS SELECT * FROM SECRET;"),
        ("modeler", "CREATE TABLE MY_X AS SELECT P.K, N FROM PUBLIC_T P JOIN SECRET_T S "
                    "ON P.K = S.K;"),
        ("modeler", "CREATE STREAM MY_X (A INT) WITH (KAFKA_TOPIC='secret', VALUE_FORMAT='JSON');"),
        ("modeler", "CREATE STREAM MY_X WITH (KAFKA_TOPIC='secret') AS SELECT * FROM PUBLIC_S;"),
        ("modeler", "SET 'ksql.output.topic.name.prefix'='sec'; "
                    "CREATE STREAM MY_X AS SELECT * FROM PUBLIC_S;"),
        ("modeler", "CREATE OR REPLACE TABLE PUBLIC_T AS SELECT K, COUNT(*) AS N FROM PUBLIC_S "
                    "GROUP BY K;"),
        ("modeler", "DROP STREAM SECRET;"),
        ("modeler", "ALTER STREAM PUBLIC_S ADD COLUMN B INT;"),
        ("modeler", "PAUSE CTAS_PUBLIC_T_2;"),
        ("ops", "DROP STREAM PUBLIC_S;"),
        ("ops", "ROLLBACK UPGRADE OF PUBLIC_T;"),
        ("none", "SHOW STREAMS;"),
        ("none", "SET 'auto.offset.reset'='earliest';"),
    ],
)  # fmt: skip
def test_a_statement_without_its_right_changes_nothing(
    roads: Roads, path: str, user: str, text: str
) -> None:
    before = roads.local.service.services.engine.catalog
    answer = roads.ksql(user, text, path)
    assert outcome(answer) == REFUSED, answer.text
    assert answer.json()["@type"] == "statement_error"
    assert answer.json()["statementText"]
    assert roads.local.service.services.engine.catalog is before


def test_a_definition_within_its_rights_is_made_and_dropped(roads: Roads) -> None:
    create = "CREATE STREAM MY_S WITH (KAFKA_TOPIC='my-s') AS SELECT * FROM PUBLIC_S;"
    assert roads.ksql("modeler", create).status_code == 200
    assert roads.ksql("modeler", "DROP STREAM MY_S DELETE TOPIC;").status_code == 200


def test_who_writes_may_write(roads: Roads) -> None:
    text = "INSERT INTO PUBLIC_S VALUES ('w', 1);"
    assert roads.ksql("writer", text).status_code == 200
    assert roads.ksql("writer", "DESCRIBE PUBLIC_S;").status_code == 200
    assert outcome(roads.query("writer", "SELECT * FROM PUBLIC_T WHERE K='w';")) == REFUSED


def test_who_operates_may_pause(roads: Roads) -> None:
    [query] = [q for q in roads.local.service.services.engine.catalog.queries if "PUBLIC_T" in q]
    assert roads.ksql("ops", f"PAUSE {query}; RESUME {query};").status_code == 200
    assert roads.ask("ops", "GET", "/metrics").status_code == 200


@pytest.mark.parametrize("path", ["/query", "/query-stream"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM SECRET_T WHERE K = 'k';",
        "SELECT * FROM SECRET_T;",
        "SELECT * FROM SECRET;",
        "SELECT * FROM SECRET EMIT CHANGES LIMIT 1;",
        "SELECT P.K FROM PUBLIC_T P JOIN SECRET_T S ON P.K = S.K;",
        "SELECT P.K FROM PUBLIC_S P JOIN SECRET_T S ON P.K = S.K EMIT CHANGES LIMIT 1;",
        "PRINT 'secret' FROM BEGINNING LIMIT 1;",
        "PRINT public FROM BEGINNING LIMIT 1;",
        "PRINT 'connect-configs' FROM BEGINNING LIMIT 1;",
        "DROP STREAM PUBLIC_S;",
    ],
)
def test_a_reader_reads_only_what_it_may(roads: Roads, path: str, text: str) -> None:
    answer = roads.query("reader", text, path)
    assert outcome(answer) == REFUSED, answer.text


def test_a_look_up_that_is_planned_already_is_checked_for_each_user(roads: Roads) -> None:
    text = "SELECT * FROM SECRET_T WHERE K = 'k';"
    for _ in range(3):  # the second one is answered from the cache of plans
        assert roads.query("boss", text).status_code == 200
        assert outcome(roads.query("reader", text)) == REFUSED
    assert roads.query("reader", text.replace("SECRET_T", "PUBLIC_T")).status_code == 200


def test_a_query_of_others_is_not_explained(roads: Roads) -> None:
    """Nor is it said whether there is one."""
    queries = roads.local.service.services.engine.catalog.queries
    [secret] = [query for query in queries if "SECRET_T" in query]
    [public] = [query for query in queries if "PUBLIC_T" in query]
    answer = roads.ksql("reader", f"EXPLAIN {secret};")
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40001)
    assert f"{secret} does not exist" in answer.json()["message"]
    assert roads.ksql("reader", f"EXPLAIN {public};").status_code == 200
    assert roads.ksql("ops", f"EXPLAIN {secret};").status_code == 200


def test_rows_of_a_stream_need_write(roads: Roads) -> None:
    def insert(user: str, target: str) -> httpx.Response:
        lines = json.dumps({"target": target}) + '\n{"K": "z", "A": 1}\n'
        return roads.ask(user, "POST", "/inserts-stream", content=lines)

    assert insert("writer", "public_s").status_code == 200
    assert outcome(insert("writer", "SECRET")) == REFUSED
    assert outcome(insert("writer", "`PUBLIC_S `")) == REFUSED
    assert outcome(insert("reader", "PUBLIC_S")) == REFUSED


@pytest.mark.parametrize(
    ("user", "method", "path"),
    [
        ("reader", "POST", "/ksql/terminate"),
        ("ops", "POST", "/ksql/terminate"),
        ("modeler", "POST", "/ksql/terminate"),
        ("reader", "GET", "/metrics"),
        ("reader", "GET", "/clusterStatus"),
        ("reader", "GET", "/stores/standings"),
        ("reader", "GET", "/stores/PUBLIC_T/hosts"),
        ("ops", "POST", "/stores/read"),
        ("ops", "GET", "/stores/processed"),
        ("ops", "GET", "/queries/reports"),
        ("ops", "POST", "/heartbeat"),
        ("ops", "POST", "/lag"),
        ("ops", "GET", "/a/new/path"),
        ("none", "GET", "/upgrades"),
    ],
)
def test_a_path_needs_a_right(roads: Roads, user: str, method: str, path: str) -> None:
    answer = roads.ask(user, method, path, json={} if method == "POST" else None)
    assert outcome(answer) == REFUSED


def test_lists_show_what_one_has_a_right_on(roads: Roads) -> None:
    def listed(user: str, text: str) -> str:
        answer = roads.ksql(user, text)
        assert answer.status_code == 200, answer.text
        return answer.text

    for text in (
        "SHOW STREAMS EXTENDED;",
        "SHOW TABLES;",
        "DESCRIBE TABLES EXTENDED;",
        "SHOW QUERIES EXTENDED;",
        "SHOW QUERIES;",
        "SHOW ALL TOPICS EXTENDED;",
        "SHOW UPGRADES;",
        "DESCRIBE PUBLIC_S EXTENDED;",
    ):
        assert "SECRET" not in listed("reader", text).upper()
    assert "PUBLIC_S" in listed("reader", "SHOW STREAMS;")
    assert "PUBLIC_T" in listed("reader", "SHOW QUERIES;")
    assert "SECRET" in listed("boss", "SHOW STREAMS;")
    assert "SECRET" in listed("ops", "SHOW QUERIES;")
    statuses = roads.ask("reader", "GET", "/status").json()["commandStatuses"]
    assert "stream/`PUBLIC_S`/create" in statuses
    assert not any("SECRET" in key for key in statuses)
    assert roads.ask("reader", "GET", "/status/stream/`PUBLIC_S`/create").status_code == 200
    assert roads.ask("reader", "GET", "/status/stream/`SECRET`/create").status_code == 404


def test_the_statement_of_a_source_is_shown_to_who_sees_what_it_reads(roads: Roads) -> None:
    roads.ksql("boss", "CREATE STREAM PUBLIC_OF_SECRET AS SELECT * FROM SECRET;")
    try:
        for text in ("DESCRIBE PUBLIC_OF_SECRET EXTENDED;", "SHOW STREAMS EXTENDED;"):
            answer = roads.ksql("reader", text)
            assert "PUBLIC_OF_SECRET" in answer.text
            assert "FROM SECRET" not in answer.text
            assert "FROM SECRET" in roads.ksql("boss", text).text
    finally:
        roads.ksql("boss", "DROP STREAM PUBLIC_OF_SECRET DELETE TOPIC;")


def test_types_are_names(roads: Roads) -> None:
    roads.ksql("boss", "CREATE TYPE PUBLIC_TYPE AS INT; CREATE TYPE SECRET_TYPE AS BIGINT;")
    try:
        assert list(roads.ksql("reader", "SHOW TYPES;").json()[0]["types"]) == ["PUBLIC_TYPE"]
        assert len(roads.ksql("boss", "SHOW TYPES;").json()[0]["types"]) == 2
    finally:
        roads.ksql("boss", "DROP TYPE PUBLIC_TYPE; DROP TYPE SECRET_TYPE;")


HINTING = """
role reader  may read   on SECRE, SECRE_T, topic:secre
role reader  may write  on SECRE, SECRE_T
role reader  may define on SECRE, CSAS_SECRE, SECRE_TYP
role boss    may admin
role writer  may read   on X
role modeler may read   on X
role ops     may read   on X
role none    may read   on X
"""


def test_no_hint_names_what_a_user_does_not_see(tmp_path: Path) -> None:
    roads = Roads(tmp_path, HINTING)
    roads.ksql("boss", "CREATE TYPE SECRET_TYPE AS INT;")
    try:
        for text in (
            "SELECT * FROM SECRE EMIT CHANGES LIMIT 1;",
            "SELECT * FROM SECRE_T WHERE K = 'k';",
            "PRINT secre FROM BEGINNING LIMIT 1;",
        ):
            assert hinted(roads.query("boss", text)), text
            assert not hinted(roads.query("reader", text)), text
        for text in (
            "INSERT INTO SECRE VALUES ('a', 1);",
            "DELETE FROM SECRE_T WHERE K = 'a';",
            "DROP STREAM SECRE;",
            "DROP TYPE SECRE_TYP;",
            "ALTER STREAM SECRE ADD COLUMN B INT;",
            "INSERT INTO SECRE SELECT * FROM SECRE;",
            "CREATE STREAM CSAS_SECRE AS SELECT * FROM SECRE;",
            "ROLLBACK UPGRADE OF SECRE;",
            "EXPLAIN CTAS_SECRE_T_9;",
            "SHOW UPGRADES FOR SECRE;",
        ):
            assert not hinted(roads.ksql("reader", text)), text
            assert hinted(roads.ksql("boss", text)) or "UPGRADE" in text, text
    finally:
        roads.local.service.close()
        roads.app.state.context.release()


def hinted(answer: httpx.Response) -> bool:
    assert answer.status_code == 400, answer.text
    said = answer.json()["message"]
    return "SECRET" in said.upper()


def test_the_history_does_not_say_whether_there_is_a_source(roads: Roads) -> None:
    unknown, secret = (
        roads.ask("reader", "GET", f"/upgrades?query={name}") for name in ("NONE_SUCH", "SECRET_T")
    )
    assert (unknown.status_code, secret.status_code) == (400, 400)
    assert secret.json()["message"] == unknown.json()["message"].replace("NONE_SUCH", "SECRET_T")
    assert roads.ask("reader", "GET", "/upgrades?query=PUBLIC_T").status_code == 200


@contextlib.contextmanager
def hosted(roads: Roads) -> Iterator[str]:
    with listen("127.0.0.1", 0) as sock:
        server = HttpServer(roads.app, [sock], 5)
        server.start("http")
        try:
            yield f"127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.stop()


def test_websockets_and_push_queries_of_others(roads: Roads) -> None:
    """A user ends its own push queries, and sees those alone."""

    def url(place: str, user: str, text: str) -> str:
        token = base64.b64encode(f"{user}:x".encode()).decode()
        request = quote(json.dumps({"ksql": text}))
        return f"ws://{place}/ws/query?request={request}&access_token={quote(token)}"

    with hosted(roads) as place:
        with connect(url(place, "reader", "SELECT * FROM SECRET EMIT CHANGES;")) as refused:
            assert json.loads(refused.recv())["error_code"] == 40300
            with pytest.raises(ConnectionClosed):
                refused.recv()
        text = "SELECT * FROM PUBLIC_S EMIT CHANGES;"
        with connect(url(place, "boss", text)) as of_boss, connect(url(place, "reader", text)) as w:
            assert json.loads(of_boss.recv()) == json.loads(w.recv())
            pushes = roads.local.service.reads.pushes()
            ids = {push.user: push.plan.query_id for push in pushes}
            shown = roads.ksql("reader", "SHOW QUERIES;").text
            assert ids["reader"] in shown
            assert ids["boss"] not in shown
            assert outcome(roads.ksql("reader", f"TERMINATE {ids['boss']};")) == REFUSED
            assert roads.ksql("reader", f"EXPLAIN {ids['boss']};").status_code == 400
            end = {"queryId": ids["boss"]}
            assert roads.ask("reader", "POST", "/close-query", json=end).status_code == 400
            end = {"queryId": ids["reader"]}
            assert roads.ask("reader", "POST", "/close-query", json=end).status_code == 200
            left = roads.local.service.reads.pushes()
            assert [push.user for push in left] == ["boss"]


@pytest.mark.parametrize("ended", ["rights", "user"])
def test_an_open_stream_ends_with_the_right_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """Push queries, PRINT and rows that are sent; others continue."""
    monkeypatch.setattr("server.rightsfile.WatchedFiles", partial(WatchedFiles, look_s=0))
    monkeypatch.setattr("server.users.WatchedFiles", partial(WatchedFiles, look_s=0))
    monkeypatch.setattr("ksql.serving.feed.AGAIN_S", 0.0)
    monkeypatch.setattr("ksql.control.statements.inserts_stream._AGAIN_MS", 0)
    rights = RIGHTS_TEXT + "role reader may read on topic:public\n"
    rights += "role reader may write on PUBLIC_S\n"
    roads = Roads(tmp_path, rights)
    service = roads.local.service

    def opened(user: str, text: str) -> Any:
        users = Users.of(Settings(configuration(tmp_path, rights)))
        assert users is not None
        requester = Requester(user, users.grants(user), renewed=partial(users.renewed, user))
        with acting(requester):
            return service.query(text, {}, {})

    try:
        push = opened("reader", "SELECT * FROM PUBLIC_S EMIT CHANGES;").batches()
        of_boss = opened("boss", "SELECT * FROM PUBLIC_S EMIT CHANGES;").batches()
        lines = opened("reader", "PRINT public;").lines()
        users = Users.of(Settings(configuration(tmp_path, rights)))
        assert users is not None
        requester = Requester("reader", users.grants("reader"))
        requester = replace(requester, renewed=partial(users.renewed, "reader"))
        with acting(requester):
            rows = service.inserts("PUBLIC_S", {})
        rows.begin({"K": "a", "A": 1})
        for stream in (push, of_boss, lines):
            next(stream)
        if ended == "rights":
            (tmp_path / "rights").write_text(RIGHTS_TEXT.replace("reader ", "someone "), "utf-8")
        else:
            left = "".join(f"{name}: x, {name}\n" for name in NAMES if name != "reader")
            (tmp_path / "users").write_text(left, "utf-8")
        for stream in (push, lines):
            with pytest.raises(NotPermitted):
                next(stream)
        with pytest.raises(NotPermitted):
            rows.begin({"K": "a", "A": 1})
        next(of_boss)
        assert [p.user for p in service.reads.pushes()] == ["boss"]
    finally:
        service.close()
        roads.app.state.context.release()


def test_a_statement_after_a_long_wait_needs_the_right_that_there_is_then(roads: Roads) -> None:
    held = [ALL]
    service = roads.local.service
    text = "ASSERT TOPIC `none-such` TIMEOUT 10 SECONDS; CREATE TYPE LATE AS INT;"
    with acting(Requester("boss", ALL, renewed=lambda: held[0])):
        running = service.begin(text, {}, {})
        assert running.proceed() is None
        held[0] = NONE
        with pytest.raises(RequestFailed) as refused:
            running.proceed()
    assert isinstance(refused.value.error, NotPermitted)
    assert "LATE" not in service.services.engine.catalog.types


def test_an_open_path_has_a_user_without_rights(tmp_path: Path) -> None:
    given = configuration(tmp_path) | {"authentication.skip.paths": "/ksql,/metrics"}
    app = create_app(LocalServed().service, users=Users.of(Settings(given)))

    async def send() -> list[tuple[int, str]]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            listing = await client.post("/ksql", json={"ksql": "SHOW STREAMS;"})
            metrics = await client.get("/metrics")
            return [(answer.status_code, answer.text) for answer in (listing, metrics)]

    (status, text), (of_metrics, _) = asyncio.run(send())
    assert (status, of_metrics) == (403, 200)
    assert "a request without a user" in text


def test_each_statement_is_noted_whatever_is_logged_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    local = LocalServed()
    for users in (None, Users.of(Settings(configuration(tmp_path)))):
        app = create_app(local.service, users=users, audited=True)
        text = "SHOW STREAMS; SHOW TABLES;"

        async def send(app: Any = app, text: str = text) -> httpx.Response:
            transport = httpx.ASGITransport(app, client=("192.0.2.5", 1))
            auth = httpx.BasicAuth("boss", "x")
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as c:
                return await c.post("/ksql", json={"ksql": text}, auth=auth)

        assert asyncio.run(send()).status_code == 200
    lines = [record for record in caplog.records if record.name == "ksql.audit"]
    shown = [vars(r) for r in lines]
    assert [(r["user"], r["address"], r["path"], r["outcome"]) for r in shown] == [
        (user, "192.0.2.5", "/ksql", "admitted") for user in ("", "", "boss", "boss")
    ]


def test_every_route_has_a_row(roads: Roads) -> None:
    routes = [r for r in roads.app.routes if isinstance(r, APIRoute | WebSocketRoute)]
    paths = [route.path.replace("{command_id:path}", "x").replace("{", "") for route in routes]
    assert [path for path in paths if not is_listed(path.replace("}", ""))] == []


# --- between servers


SECRET = ServerSecret(b"0123456789abcdef0123456789abcdef")
HERE = "127.0.0.1:8088"


def passed_on(folder: Path, path: str, headers: dict[str, str]) -> httpx.Response:
    local = LocalServed()
    app = create_app(local.service, users=Users.of(Settings(configuration(folder))), secret=SECRET)
    local.service.host = HERE
    for text in (SETUP,):
        local.service.begin(text, {}, {}).proceed()

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path, json={"ksql": "DROP TABLE PUBLIC_T;"}, headers=headers)

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("user", "path", "expected"),
    [
        ("boss", "/ksql", 200),
        ("reader", "/ksql", 403),
        ("reader", "/ksql/terminate", 403),
        ("unknown", "/ksql", 403),
        ("", "/ksql", 403),
        ("", "/ksql/terminate", 403),
    ],
)
def test_a_request_that_is_passed_on_keeps_its_user(
    tmp_path: Path, user: str, path: str, expected: int
) -> None:
    headers = {HEADER: SECRET.token("POST", path, HERE), "ksql-user": user}
    assert passed_on(tmp_path, path, headers).status_code == expected


def test_a_client_cannot_say_that_it_is_a_server(tmp_path: Path) -> None:
    basic = "Basic " + base64.b64encode(b"reader:x").decode()
    forged = {"ksql-user": "boss", "authorization": basic}
    assert passed_on(tmp_path, "/ksql", forged).status_code == 403
    other = ServerSecret(b"another secret of thirty-two byte")
    forged |= {HEADER: other.token("POST", "/ksql", HERE)}
    assert passed_on(tmp_path, "/ksql", forged).status_code == 403
    elsewhere = {HEADER: SECRET.token("POST", "/close-query", HERE), "ksql-user": "boss"}
    assert passed_on(tmp_path, "/ksql", elsewhere).status_code == 401


def test_a_follower_does_not_pass_on_who_a_client_says_it_is(tmp_path: Path) -> None:
    from server.leader_proxy import LeaderProxy  # noqa: PLC0415 - the only test of it here

    given = {"ksql-user": "boss", "ksql-address": "192.0.2.9", "accept": "x"}
    proxy = LeaderProxy(
        Server("other", 1), "http", "/ksql", b"{}", given, SECRET, "reader", "", "192.0.2.1"
    )
    sent = proxy._sent()
    assert (sent["ksql-user"], sent["ksql-address"]) == ("reader", "192.0.2.1")


# --- passwords and certificates


@pytest.fixture
def standing_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes for the throttle."""
    monkeypatch.setattr("server.signin.LoginThrottle", lambda: LoginThrottle(lambda: 0.0))


@pytest.mark.usefixtures("standing_still")
def test_guesses_are_logged_and_slowed_down(tmp_path: Path, caplog) -> None:
    app = create_app(FakeService(), users=Users.of(Settings(configuration(tmp_path))))

    def status(password: str, address: str) -> int:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app, client=(address, 1))
            auth = httpx.BasicAuth("boss", password)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as c:
                return await c.get("/info", auth=auth)

        answer = asyncio.run(send())
        assert answer.status_code != 429 or int(answer.headers["retry-after"]) >= 1
        return answer.status_code

    statuses = [status("guess", "192.0.2.66") for _ in range(20)]
    assert statuses == [401] * 5 + [429] * 15
    assert status("x", "192.0.2.66") == 429  # also of the right one: guesses would find it
    assert status("x", "192.0.2.1") == 200
    lines = [r for r in caplog.records if r.message == "login_refused"]
    shown = [vars(r) for r in lines]
    assert [(r["user"], r["address"], r["path"], r["reason"]) for r in shown] == [
        ("boss", "192.0.2.66", "/info", "password")
    ] * 5
    assert "guess" not in str([vars(record) for record in lines])


@pytest.mark.usefixtures("standing_still")
def test_guesses_that_come_together_are_not_all_looked_at(tmp_path: Path) -> None:
    """A hash takes time: the others wait for it, and then are refused."""
    text = f"boss: {hashed('x')}, boss\n"
    app = create_app(FakeService(), users=Users.of(Settings(configuration(tmp_path, users=text))))

    async def all_at_once() -> list[int]:
        transport = httpx.ASGITransport(app, client=("192.0.2.66", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            guesses = (client.get("/info", auth=("boss", f"guess {n}")) for n in range(40))
            return [answer.status_code for answer in await asyncio.gather(*guesses)]

    statuses = asyncio.run(all_at_once())
    assert statuses.count(429) >= 40 - 5 - 2  # two threads look at one each at a time
    assert statuses.count(401) >= 5


def test_a_certificate_stands_for_its_user(tmp_path: Path) -> None:
    rights = RIGHTS_TEXT + "certificate CN=robot,O=Example is robot\nuser robot is reader\n"
    given = configuration(tmp_path, rights)
    del given["authentication.method"]
    given["ssl.client.authentication"] = "REQUIRED"
    app = create_app(LocalServed().service, users=Users.of(Settings(given)))

    def status(subject: str | None, path: str = "/info") -> int:
        async def certified(scope: Any, receive: Any, send: Any) -> None:
            tls = {} if subject is None else {"tls": {"client_cert_name": subject}}
            await app({**scope, "extensions": tls}, receive, send)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(certified)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as c:
                return await c.get(path)

        answer = asyncio.run(send())
        assert "www-authenticate" not in answer.headers  # there are no passwords to ask for
        return answer.status_code

    assert status("CN=robot,O=Example") == 200
    assert status("CN=robot,O=Example", "/metrics") == 403
    assert status("CN=robot") == 401
    assert status(None) == 401


def test_rights_without_users_do_not_start(tmp_path: Path) -> None:
    given = configuration(tmp_path)
    del given["authentication.method"]
    with pytest.raises(RightsAlone):
        Users.of(Settings(given))


@pytest.mark.parametrize("rights", ["role r may fly on *", "user eve is reader"])
def test_bad_rights_do_not_start(tmp_path: Path, rights: str) -> None:
    with pytest.raises(BadRights, match="line 1"):
        Users.of(Settings(configuration(tmp_path, rights)))
    with pytest.raises(BadRights, match="cannot read it"):
        Users.of(Settings(configuration(tmp_path) | {RIGHTS: str(tmp_path / "none")}))
    with pytest.raises(BadUsers):
        Users.of(Settings(configuration(tmp_path, users="")))


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [
        ("reader", "/topics/secret/records", 403),
        ("reader", "/topics/public/records", 403),
        ("boss", "/topics/public/records", 200),
        ("reader", "/metrics/history/CTAS_X_1", 403),
        ("boss", "/metrics/history/CTAS_X_1", 200),
        ("reader", "/console", 200),
        ("reader", "/console/main.js", 200),
    ],
)
def test_records_and_histories_need_rights_and_the_console_a_user(
    roads: Roads, user: str, path: str, status: int
) -> None:
    assert roads.ask(user, "GET", path).status_code == status


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("next=0:" + "9" * 5_000, 400),
        ("next=0:99999999999999999999", 400),
        ("next=0:٣", 400),
        ("next=0:1,,", 400),
        ("next=0:1,7:2", 200),
        ("time=-1", 400),
        ("time=99999999999999999999", 400),
        ("offset=99999999999999999999999", 200),
        ("offset=-99999999999999999999999", 200),
        ("partition=99999999999999999999999", 400),
        ("limit=0", 400),
        ("limit=1001", 400),
    ],
)
def test_places_that_no_topic_has(roads: Roads, query: str, status: int) -> None:
    assert roads.ask("boss", "GET", f"/topics/public/records?{query}").status_code == status
