from __future__ import annotations

from types import SimpleNamespace

import pytest

from ksql.app import house as module
from ksql.app.service import KsqlService
from ksql.base.config import Settings


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SimpleNamespace(start=lambda: "127.0.0.1:9", stop=lambda: None)
    tenure = SimpleNamespace(acquire=lambda: None, start=lambda: None, close=lambda: None)
    monkeypatch.setattr("ksql.app.charge.prepare", lambda *_, **__: tenure)
    monkeypatch.setattr(module, "EmbeddedBroker", lambda _folder: broker)
    admin = SimpleNamespace(cluster_id=lambda: "c", close=lambda: None)
    monkeypatch.setattr(module, "Admin", lambda _settings: admin)


def open_kafka(properties: dict[str, str]) -> KsqlService:
    service = KsqlService(Settings(properties))
    service._open_kafka(SimpleNamespace(broker=None, shared=False))
    return service


def test_the_embedded_broker_tells_its_address() -> None:
    service = open_kafka({})
    assert service.addresses() == {"Kafka": "127.0.0.1:9"}
    assert service.settings.text("bootstrap.servers") == "127.0.0.1:9"


def test_a_broker_that_was_named_is_not_told_again() -> None:
    service = open_kafka({"bootstrap.servers": "kafka:9092"})
    assert service.addresses() == {}
    assert service.settings.text("bootstrap.servers") == "kafka:9092"


@pytest.mark.parametrize(
    ("others", "standing_by", "again", "left"),
    [
        (1, True, False, True),
        (0, True, False, False),  # nobody would take over
        (1, False, False, False),  # it is one of them as long as it is in charge
        (1, True, True, False),  # it comes back at once
    ],
)
def test_a_standby_that_stops_leaves_while_it_still_answers(
    monkeypatch: pytest.MonkeyPatch, others: int, standing_by: bool, again: bool, left: bool
) -> None:
    events: list[str] = []
    monkeypatch.setattr("ksql.app.service.time.sleep", lambda _s: events.append("waits"))
    service = KsqlService(Settings({}))
    service.leave()  # alone
    service._peers = SimpleNamespace(  # type: ignore[assignment]
        alive=lambda: (None,) * (1 + others), leave=lambda: events.append("leaves")
    )
    service._standby = SimpleNamespace() if standing_by else None  # type: ignore[assignment]
    service.again = again
    service.leave()
    assert events == (["leaves", "waits"] if left else [])
