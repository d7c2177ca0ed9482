"""GET /upgrades: statements about the history, as resources; the leader answers."""

from __future__ import annotations

import pytest

from ksql.cluster.members import Server
from ksql.control.statements import entities as e
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.show_upgrades import UnknownUpgrade
from tests.unit.server.entities import UPGRADE
from tests.unit.server.fakes import FakeService
from tests.unit.server.test_leader_proxy import leader
from tests.unit.server.web import ask

LIST = e.Upgrades(statement_text="", upgrades=(UPGRADE.info,))
WHOLE = e.UpgradeDescriptionEntity(statement_text="", upgrade_description=UPGRADE)


def texts(service: FakeService) -> list[str]:
    return [call[0] for call in service.calls]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/upgrades", "SHOW UPGRADES;"),
        ("/upgrades?query=CTAS_N_1", "SHOW UPGRADES FOR CTAS_N_1;"),
        ("/upgrades?query=a;b", "SHOW UPGRADES FOR `a;b`;"),
        ("/upgrades?query=a`b", "SHOW UPGRADES FOR `a``b`;"),
        ("/upgrades/default_/CTAS_N_1/7", "DESCRIBE UPGRADE 'default_/CTAS_N_1/7';"),
        ("/upgrades/default_%2FCTAS_N_1%2F7", "DESCRIBE UPGRADE 'default_/CTAS_N_1/7';"),
        ("/upgrades/a'b", "DESCRIBE UPGRADE 'a''b';"),
    ],
)
def test_the_statement_of_a_path(path: str, text: str) -> None:
    service = FakeService([LIST])
    answer = ask(service, "GET", path, headers={"authorization": "Basic eDp5"})
    assert answer.status_code == 200
    assert (texts(service), service.credentials) == ([text], "Basic eDp5")


def test_the_answer_is_the_entity_itself() -> None:
    assert ask(FakeService([LIST]), "GET", "/upgrades").json()["@type"] == "upgrades"
    whole = ask(FakeService([WHOLE]), "GET", "/upgrades/x").json()
    assert (whole["@type"], whole["upgradeDescription"]["id"]) == ("upgradeDescription", UPGRADE.id)
    assert whole["upgradeDescription"]["difference"] == {
        "changed": 3,
        "added": 2,
        "removed": 1,
        "equal": 90,
    }


@pytest.mark.parametrize("path", ["/upgrades", "/upgrades/default_/CTAS_N_1/7"])
def test_a_follower_has_the_leader_answer(path: str) -> None:
    far = FakeService([WHOLE])
    with leader(far) as server:
        near = FakeService([LIST], other=server)
        answer = ask(near, "GET", path)
    direct = ask(FakeService([WHOLE]), "GET", path)
    assert (answer.status_code, answer.json()) == (200, direct.json())
    assert answer.headers["content-type"] == direct.headers["content-type"]
    assert (len(far.calls), near.calls) == (1, [])


def test_an_unknown_upgrade_is_not_there() -> None:
    unknown = RequestFailed(UnknownUpgrade("x"), "DESCRIBE UPGRADE 'x';")
    direct = ask(FakeService(unknown), "GET", "/upgrades/x")
    assert (direct.status_code, direct.json()["error_code"]) == (404, 40400)
    with leader(FakeService(unknown)) as server:
        answer = ask(FakeService(other=server), "GET", "/upgrades/x")
    assert (answer.status_code, answer.json()) == (404, direct.json())


def test_a_leader_that_is_away_is_reported() -> None:
    answer = ask(FakeService(other=Server("127.0.0.1", 1)), "GET", "/upgrades")
    assert answer.status_code == 503
    assert "does not answer" in answer.json()["message"]
