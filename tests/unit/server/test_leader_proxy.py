"""What comes to a follower goes to the leader as it is, and its answer comes back so."""

from __future__ import annotations

import contextlib
import json
import socket
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import pytest
import trustme

from ksql.app.compose import heartbeats
from ksql.cluster.members import Server
from ksql.cluster.replicas.cluster_status import own_tls
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.errors import StatementError
from ksql.core.log_context import log_fields, traceparent
from ksql.core.token import ServerSecret
from ksql.http.connections import listen
from ksql.http.hosting import HttpServer
from ksql.http.tls import server_context
from server import leader_proxy as module
from server.app import behind_http, create_app
from server.context import AppContext
from server.leader_proxy import Answer, LeaderProxy, ServerAway
from server.users import Users
from tests.unit.http.clients import hosted
from tests.unit.server.fakes import FakeService, created
from tests.unit.server.web import ask

TEXT = "CREATE STREAM S ...;"
BODY = {"ksql": TEXT, "streamsProperties": {"n": 5}, "sessionVariables": {"v": "x"}}


@contextmanager
def leader(service):
    with listen("127.0.0.1", 0) as sock, behind_http(service, [sock]):
        yield Server("127.0.0.1", sock.getsockname()[1])


def test_a_statement_is_answered_by_the_leader_and_then_known_here():
    far = FakeService([created()])
    with leader(far) as server:
        near = FakeService(other=server)
        answer = ask(near, "POST", "/ksql", json=BODY)
    direct = ask(FakeService([created()]), "POST", "/ksql", json=BODY)
    assert (answer.status_code, answer.json()) == (200, direct.json())
    assert answer.headers["content-type"] == direct.headers["content-type"]
    assert far.calls == [(TEXT, {"n": "5"}, {"v": "x"})]
    assert near.calls == [("await", 3)]


@pytest.mark.parametrize(
    "more",
    [
        '"x": NaN',
        '"x": [-Infinity, Infinity]',
        '"x": 123456789012345678901234567890',
        '"streamsProperties": {"n": NaN}',
        '"x": "\\u0000\\ud83d\\ude00"',
        '"requestProperties": null',
        '"ksql": "old;", "ksql": "CREATE STREAM S ...;"',
    ],
)
def test_any_accepted_request_is_forwarded(more):
    body = f'{{"ksql": "{TEXT}", {more}}}'.encode()
    far, direct = FakeService([created()]), FakeService([created()])
    with leader(far) as server:
        answer = ask(FakeService(other=server), "POST", "/ksql", content=body)
    assert answer.status_code == ask(direct, "POST", "/ksql", content=body).status_code == 200
    assert far.calls == direct.calls


def test_an_error_comes_back_unchanged():
    refused = RequestFailed(StatementError("no such thing"), TEXT)
    with leader(FakeService(refused)) as server:
        answer = ask(FakeService(other=server), "POST", "/ksql", json=BODY)
    direct = ask(FakeService(refused), "POST", "/ksql", json=BODY)
    assert (answer.status_code, answer.json()) == (400, direct.json())


def test_a_request_is_passed_on_once_only():
    far = FakeService([created()], other=Server("127.0.0.1", 1))  # it does not lead any more
    with leader(far) as server:
        answer = ask(FakeService(other=server), "POST", "/ksql", json=BODY)
    assert answer.status_code == 200
    assert [call[0] for call in far.calls] == [TEXT]


def test_credentials_and_the_wanted_form_go_along():
    seen = []

    def far(request):
        seen.append(request)
        return httpx.Response(200, content=b"[]")

    headers = {"authorization": "Basic eDp5", "accept": "application/json", "cookie": "c"}
    with httpx.Client(transport=httpx.MockTransport(far)) as client:
        passing = LeaderProxy(Server("h", 1), "https", "/ksql", b'{"ksql": "X;"}', headers)
        passing.send(client, lambda: True)
    (request,) = seen
    assert str(request.url) == "https://h:1/ksql"
    assert request.headers["authorization"] == "Basic eDp5"
    assert request.headers["accept"] == "application/json"
    assert "cookie" not in request.headers
    assert json.loads(request.content) == {
        "ksql": "X;",
        "requestProperties": {"request.ksql.internal.request": True},
    }


@pytest.fixture
def keys(tmp_path):
    """The settings of servers with certificates of an authority that only they know."""
    authority = trustme.CA()
    key, trusted = tmp_path / "server.pem", tmp_path / "trusted.pem"
    key.write_bytes(authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.bytes())
    trusted.write_bytes(authority.cert_pem.bytes())
    return {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(key),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "ssl.truststore.type": "PEM",
        "ssl.client.authentication": "REQUIRED",
    }


def test_servers_with_an_authority_of_their_own_pass_statements_on(keys):
    far = FakeService([created()])
    with hosted(create_app(context=AppContext(far)), server_context(keys)) as port:
        server = Server("127.0.0.1", port)
        near = FakeService(other=server, scheme="https", tls=own_tls(Settings(keys)))
        assert ask(near, "POST", "/ksql", json=BODY).status_code == 200
    assert len(far.calls) == 1


def test_their_heartbeats_arrive_too(keys):
    far = FakeService()
    with hosted(create_app(context=AppContext(far)), server_context(keys)) as port:
        me, other = Server("127.0.0.1", 1), Server("127.0.0.1", port)
        members = SimpleNamespace(me=me, alive=lambda: (me, other))
        settings = Settings(keys | {"ksql.heartbeat.enable": "true"})
        with contextlib.closing(heartbeats(settings, members, tls=own_tls(settings))) as sending:
            for each in sending.beat():
                each.result(timeout=10)
    assert far.calls == [("note_alive", "127.0.0.1:1")]


def test_servers_of_http_need_no_keys():
    assert own_tls(Settings({"listeners": "http://127.0.0.1:8088"})) is None


def test_a_leader_that_is_gone_is_named():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    answer = ask(FakeService(other=Server("127.0.0.1", port)), "POST", "/ksql", json=BODY)
    assert (answer.status_code, answer.json()["error_code"]) == (503, 50302)
    assert f"127.0.0.1:{port}, does not answer" in answer.json()["message"]


def test_a_server_that_sleeps_is_waited_for_only_while_it_leads(monkeypatch):
    monkeypatch.setattr(module, "_LOOK_S", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as sock:  # the system takes its connections
        passing = LeaderProxy(
            Server("127.0.0.1", sock.getsockname()[1]), "http", "/ksql", b'{"ksql": "X;"}', {}
        )
        looks = iter([True, True, False])
        with httpx.Client() as client, pytest.raises(ServerAway, match="does not answer"):
            passing.send(client, lambda: next(looks))
        assert next(looks, None) is None


def test_the_end_of_the_cluster_is_passed_on():
    far = FakeService([created()])
    with leader(far) as server:
        answer = ask(
            FakeService(other=server), "POST", "/ksql/terminate", json={"deleteTopicList": ["T"]}
        )
    assert answer.status_code == 200
    assert far.calls[-1][-1] == ["T"]


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        (Answer(200, b"[]", ""), -1),
        (Answer(200, b'[{"commandSequenceNumber": 4}, {"message": "x"}]', ""), 4),
        (Answer(400, b'{"entities": [{"commandSequenceNumber": 2}]}', ""), 2),
        (Answer(503, b'{"message": "x"}', ""), -1),
        (Answer(502, b"<html>", ""), -1),
    ],
)
def test_the_last_command_of_an_answer_is_awaited(answer, number):
    assert answer.last_command() == number


def test_a_standby_of_a_service_that_was_terminated_answers_only_that():
    for follower in (FakeService(other=Server("h", 1), terminated=True), FakeService()):
        answer = ask(follower, "POST", "/ksql", json=BODY)
        assert (answer.status_code == 503) == follower.terminated
    answer = ask(FakeService(terminated=True), "GET", "/info")
    assert answer.json()["error_code"] == 50304
    answer = ask(FakeService(terminated=True), "GET", "/healthcheck")
    assert (answer.status_code, answer.json()["serverState"]) == (503, "TERMINATED")


def test_local_answer_knows_its_caller():
    service = FakeService([created()])
    ask(service, "POST", "/ksql", json=BODY, headers={"authorization": "Basic eDp5"})
    assert service.credentials == "Basic eDp5"


def test_servers_that_know_one_another_pass_no_password_on():
    """The user was asked for one by the server that it came to."""
    secret = ServerSecret(b"a secret of the servers")
    users = Users("realm", {"ann": ("word", frozenset())})
    sock = listen("127.0.0.1", 0)
    server = Server("127.0.0.1", sock.getsockname()[1])

    far = FakeService([created()], host=str(server))
    context = AppContext(far)
    http = HttpServer(create_app(context=context, users=users, secret=secret), [sock], 1)
    http.start("far")
    try:
        near = FakeService(other=server, secret=secret)
        app = create_app(near, users=users, secret=secret)
        answer = ask(near, "POST", "/ksql", app=app, json=BODY, auth=("ann", "word"))
        assert answer.status_code == 200
        assert far.calls == [(TEXT, {"n": "5"}, {"v": "x"})]
        assert far.credentials == ""
        assert far.user == "ann"
    finally:
        context.shut()
        http.stop()
        context.release()


def test_the_id_of_a_request_goes_along():
    header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    traces = []

    class Leader(FakeService):
        def begin(self, *arguments, **more):
            traces.append((traceparent(), log_fields()["request_id"]))
            return super().begin(*arguments, **more)

    far = Leader([created()])
    with leader(far) as server:
        for headers in ({"traceparent": header}, {}):
            near = FakeService(other=server)
            assert ask(near, "POST", "/ksql", json=BODY, headers=headers).status_code == 200
    assert traces[0] == (header, "4bf92f3577b34da6a3ce929d0e0e4736")
    assert traces[1][0].startswith(f"00-{traces[1][1]}-")


class Numbers(FakeService):
    """A server with metrics and history of its own."""

    def metrics(self, accept, unready, requests):
        return f"{self.host} {accept}\n".encode(), "text/plain; version=1"


@pytest.mark.parametrize("path", ["/metrics", "/metrics/history/CSAS_X_1"])
def test_a_follower_shows_the_leader_s_numbers_to_who_asks_for_them(path):
    with leader(Numbers(host="far")) as server:
        near = Numbers(host="near", other=server)
        own, of_leader = (ask(near, "GET", f"{path}{more}") for more in ("", "?server=leader"))
    direct = ask(Numbers(host="far"), "GET", path)
    assert (of_leader.status_code, of_leader.text) == (200, direct.text)
    assert of_leader.headers["content-type"] == direct.headers["content-type"]
    assert path != "/metrics" or own.text.startswith("near ")


def test_the_leader_itself_answers_for_itself():
    answer = ask(Numbers(host="far"), "GET", "/metrics?server=leader")
    assert answer.text.startswith("far ")
    assert ask(Numbers(), "GET", "/metrics?server=other").status_code == 400


def test_a_leader_that_is_away_is_an_error_of_that_request_alone():
    near = Numbers(host="near", other=Server("127.0.0.1", 1))
    answer = ask(near, "GET", "/metrics?server=leader")
    assert (answer.status_code, "127.0.0.1:1" in answer.json()["message"]) == (503, True)
    assert ask(near, "GET", "/metrics").status_code == 200


def test_servers_that_know_one_another_show_numbers_to_a_user_without_its_password():
    secret = ServerSecret(b"a secret of the servers")
    users = Users("realm", {"ann": ("word", frozenset())})
    sock = listen("127.0.0.1", 0)
    server = Server("127.0.0.1", sock.getsockname()[1])
    context = AppContext(Numbers(host=str(server)))
    http = HttpServer(create_app(context=context, users=users, secret=secret), [sock], 1)
    http.start("far")
    try:
        for path in ("/metrics", "/metrics/history/CSAS_X_1"):
            for auth, status in ((("ann", "word"), 200), (None, 401)):
                near = Numbers(host="near", other=server, secret=secret)
                app = create_app(near, users=users, secret=secret)
                url = f"{path}?server=leader"
                assert ask(near, "GET", url, app=app, auth=auth).status_code == status
    finally:
        context.shut()
        http.stop()
        context.release()
