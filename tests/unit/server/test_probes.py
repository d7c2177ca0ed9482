"""/livez and /readyz, as an orchestrator asks them."""

from __future__ import annotations

import pytest

from ksql.control.statements.execute import Health
from server.app import create_app
from server.context import AppContext
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask


class Broken(FakeService):
    """A service of which no part may be asked by a probe of life."""

    @property
    def terminated(self):
        raise AssertionError("asked")

    @terminated.setter
    def terminated(self, _value):
        pass

    def unready(self):
        raise AssertionError("asked")

    def health(self) -> Health:
        raise AssertionError("asked")


@pytest.mark.parametrize("state", ["INITIALIZING", "READY", "TERMINATING", "TERMINATED"])
def test_a_server_lives_in_every_state_whatever_its_parts_do(state):
    app = create_app(context=AppContext(Broken(), state))
    answer = ask(FakeService(), "GET", "/livez", app=app)
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("state", "reasons", "words"),
    [
        ("READY", {}, []),
        ("READY", {"kafka": "no answer", "leadership": "lost"}, ["kafka", "leadership"]),
        ("INITIALIZING", {}, ["starting"]),
        ("INITIALIZING", {"replaying": "it is"}, ["replaying"]),
        ("TERMINATING", {"kafka": "no answer"}, ["stopping"]),
        ("TERMINATED", {}, ["terminated"]),
    ],
)
def test_a_server_is_ready_unless_there_are_reasons(state, reasons, words):
    app = create_app(context=AppContext(FakeService(reasons=reasons), state))
    answer = ask(FakeService(), "GET", "/readyz", app=app)
    assert answer.status_code == (503 if words else 200)
    body = answer.json()
    assert body["isReady"] is (not words)
    assert [reason["reason"] for reason in body["reasons"]] == words
    assert all(reason["detail"] for reason in body["reasons"])


def test_a_service_that_was_terminated_elsewhere_is_not_ready():
    answer = ask(FakeService(terminated=True), "GET", "/readyz")
    assert answer.json()["reasons"][0]["reason"] == "terminated"


@pytest.mark.parametrize("state", ["INITIALIZING", "READY", "TERMINATING"])
def test_metrics_are_given_in_every_state_with_the_reasons(state):
    service = FakeService()
    app = create_app(context=AppContext(service, state))
    answer = ask(service, "GET", "/metrics", app=app, headers={"accept": "text/x"})
    assert (answer.status_code, answer.text) == (200, "ksql_ready 1.0\n")
    words = {"INITIALIZING": ("starting",), "READY": (), "TERMINATING": ("stopping",)}[state]
    assert service.calls == [("metrics", "text/x", *words)]
