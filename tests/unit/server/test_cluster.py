"""What servers say to one another, and what is shown of it."""

from __future__ import annotations

import json

import pytest

from ksql.cluster.members import HostStoreLags, LagInfo, StateStoreLags
from tests.unit.server.fakes import FakeService
from tests.unit.server.web import ask

HOST = {"host": "10.0.0.7", "port": 8088}
LAG = {"currentOffsetPosition": 3, "endOffsetPosition": 10, "offsetLag": 7}
LAGS = {"stateStoreLags": {"CTAS_T_0#T": {"lagByPartition": {"0": LAG}}}, "updateTimeMs": 5}


def test_the_state_of_the_cluster() -> None:
    answer = ask(FakeService(), "GET", "/clusterStatus")
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "clusterStatus": {
                "127.0.0.1:8088": {
                    "hostAlive": True,
                    "lastStatusUpdateMs": 7,
                    "activeStandbyPerQuery": {},
                    "hostStoreLags": {"stateStoreLags": {}, "updateTimeMs": 7},
                }
            }
        },
    )


def test_a_heartbeat_is_noted() -> None:
    service = FakeService()
    answer = ask(service, "POST", "/heartbeat", json={"hostInfo": HOST, "timestamp": 1})
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert service.calls == [("note_alive", "10.0.0.7:8088")]


def test_a_server_with_an_ipv6_address_has_the_name_that_the_others_know() -> None:
    service = FakeService()
    host = {"host": "fd00::7", "port": 8088}
    ask(service, "POST", "/heartbeat", json={"hostInfo": host})
    ask(service, "POST", "/lag", json={"ksqlHost": host, "hostStoreLags": LAGS})
    assert [call[1] for call in service.calls] == ["[fd00::7]:8088"] * 2


def test_lags_are_noted() -> None:
    service = FakeService()
    answer = ask(service, "POST", "/lag", json={"ksqlHost": HOST, "hostStoreLags": LAGS})
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    lags = HostStoreLags({"CTAS_T_0#T": StateStoreLags({"0": LagInfo(3, 10, 7)})}, 5)
    assert service.calls == [("reported", "10.0.0.7:8088", lags)]


@pytest.mark.parametrize("path", ["/heartbeat", "/lag"])
@pytest.mark.parametrize("body", [{}, {"hostInfo": {"host": "x"}}, {"ksqlHost": HOST}, []])
def test_malformed_report_is_refused(path: str, body: object) -> None:
    service = FakeService()
    answer = ask(service, "POST", path, content=json.dumps(body))
    assert (answer.status_code, answer.json()["error_code"], service.calls) == (400, 40000, [])
