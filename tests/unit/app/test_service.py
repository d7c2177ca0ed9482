from __future__ import annotations

from types import SimpleNamespace

import pytest

from ksql.app import node as module
from ksql.app.service import KsqlService
from ksql.core.config import Settings
from ksql.kafka import KafkaSettings
from server.service import ServerProcess


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SimpleNamespace(start=lambda: "127.0.0.1:9", stop=lambda: None)
    leadership = SimpleNamespace(acquire=lambda: None, start=lambda: None, close=lambda: None)
    monkeypatch.setattr("ksql.app.startup_checks.prepare", lambda *_, **__: leadership)
    monkeypatch.setattr(module, "EmbeddedBroker", lambda _folder: broker)
    admin = SimpleNamespace(cluster_id=lambda: "c", close=lambda: None)
    monkeypatch.setattr(module, "Admin", lambda _settings: admin)


def open_kafka(properties: dict[str, str]) -> KsqlService:
    service = KsqlService(Settings(properties))
    service.node._open_kafka(SimpleNamespace(broker=None, shared=False))
    return service


def as_served(service: KsqlService) -> ServerProcess:
    """The type checker shows that it is what the process serves."""
    return service


def test_the_embedded_broker_reports_its_address() -> None:
    service = open_kafka({})
    assert service.addresses() == {"Kafka": "127.0.0.1:9"}
    assert service.node.settings.text("bootstrap.servers") == "127.0.0.1:9"


def test_address_of_a_named_broker_is_not_repeated() -> None:
    service = open_kafka({"bootstrap.servers": "kafka:9092"})
    assert service.addresses() == {}
    assert service.node.settings.text("bootstrap.servers") == "kafka:9092"


class Leaving:
    """A service of several servers that is stopped, and what it does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, others: int = 1) -> None:
        self.events: list[str] = []
        self.withdrawn = True
        self.promoted = False
        monkeypatch.setattr("ksql.app.shutdown.time.sleep", lambda _s: self.events.append("waits"))
        self.service = KsqlService(Settings({}))
        self.members = SimpleNamespace(
            me="me",
            leader=lambda: "other",
            alive=lambda: (None,) * (1 + others),
            leave=lambda _s: self.events.append("leaves"),
        )
        self.service.node._peers = self.members  # type: ignore[assignment]
        self.service.node._follower = SimpleNamespace(withdraw=self._withdraw)  # type: ignore[assignment]

    def _withdraw(self, _patience_s: float) -> bool:
        self.events.append("withdraws")
        if self.promoted:
            self.service.node._follower = None
        return self.withdrawn

    def done(self) -> list[str]:
        self.service.leave()
        return self.events


def test_a_standby_that_stops_leaves_while_it_still_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Leaving(monkeypatch).done() == ["withdraws", "leaves", "waits"]


def test_stopping_alone_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Leaving(monkeypatch, others=0).done() == ["withdraws"]


def test_restarting_server_does_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving = Leaving(monkeypatch)
    leaving.service.node.again = True
    assert leaving.done() == ["withdraws"]


def test_stopping_leader_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving = Leaving(monkeypatch)
    leaving.withdrawn = False
    assert leaving.done() == ["withdraws"]


def test_server_that_has_become_leader_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving = Leaving(monkeypatch)
    leaving.promoted = True
    assert leaving.done() == ["withdraws"]


def test_leadership_claimed_too_late_is_released_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaving = Leaving(monkeypatch)
    leaving.members.leader = lambda: "me"
    assert leaving.done() == ["withdraws"]


def test_leader_and_single_server_do_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving = Leaving(monkeypatch)
    leaving.service.node._follower = None
    assert leaving.done() == []
    KsqlService(Settings({})).leave()


def test_a_service_that_has_not_started_shows_that_and_its_process() -> None:
    service = KsqlService(Settings({"ksql.service.id": "mine_"}))
    assert service.unready() == {"replaying": "the command topic is not replayed yet"}
    body, _ = service.metrics("", tuple(service.unready()), {("/info", "503"): 2})
    lines = body.decode().splitlines()
    assert "ksql_ready 0.0" in lines
    assert 'ksql_http_requests_total{route="/info",status="503"} 2.0' in lines
    assert 'ksql_unready_reason{reason="replaying"} 1.0' in lines
    assert any(line.startswith("ksql_server_info{") and "mine_" in line for line in lines)
    assert any(line.startswith("ksql_process_resident_memory_bytes ") for line in lines)
    service.stop()


def test_a_service_without_kafka_is_not_ready() -> None:
    service = KsqlService(Settings({}))
    node = service.node
    node.replaying = False
    node.ready.set()
    vars(node).update(
        health_loop=SimpleNamespace(kafka="no answer"),
        leadership=SimpleNamespace(problem="its lease cannot be renewed"),
        views=SimpleNamespace(filling=dict),
    )
    assert service.unready() == {
        "kafka": "no answer",
        "leadership": "its lease cannot be renewed",
    }
    node.lost = "another server leads"
    assert service.unready()["leadership"] == "another server leads"


def test_a_service_that_was_stopped_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does a server that has lost its leadership and rejoins."""
    service = KsqlService(Settings({}))
    monkeypatch.setattr(service.node, "start", lambda: None)
    monkeypatch.setattr(service.node, "stop", lambda: None)
    service.node.monitor = SimpleNamespace(stalled=None)  # type: ignore[assignment]
    service.node.kafka = KafkaSettings("127.0.0.1:9")
    watches = []
    for _ in range(2):
        service.start()
        watches.append(service.node.monitor.stalled)
        service.stop()
    assert watches[0] != watches[1]


def test_topics_are_watched_although_the_look_at_the_queries_fails() -> None:
    node, looks = KsqlService(Settings({})).node, []

    def fail() -> None:
        raise OSError("a defect")

    node.monitor = SimpleNamespace(refresh=fail)  # type: ignore[assignment]
    node._topic_watch = SimpleNamespace(poll=lambda: looks.append("topics"))  # type: ignore[assignment]
    node.ready.set()
    with pytest.raises(OSError, match="a defect"):
        node._poll()
    assert looks == ["topics"]
