"""The upgrade history, the applied offset, and the thread that settles an open command."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ksql.control.doubt_resolver import DoubtResolver
from ksql.control.engine.command_execution import Upgrade
from ksql.control.log.log import AppliedOffsetFile
from ksql.control.statements.execute import RequestFailed
from ksql.control.statements.upgradereport import SwitchPoint
from ksql.core.error_table import APPLIED_OFFSET_DAMAGED
from ksql.core.errors import ServerError
from ksql.history.entries import UpgradeEntry
from ksql.history.resilient import ResilientLedger
from ksql.history.upgrade_recorder import UpgradeRecorder
from tests.unit.control.engine.test_command_execution import COUNT, MORE, S, Scene
from tests.waits import PATIENCE_S, await_true


@pytest.fixture
def ledger(tmp_path):
    opened = ResilientLedger.open(f"sqlite:///{tmp_path}/ledger.db")
    yield opened
    opened.close()


def scene(ledger):
    it: Any = Scene(S, COUNT)
    it.known = []
    it.history = it.world.engine.history = UpgradeRecorder(ledger, "default_", lambda: 5, it.known)
    return it


def outcomes(ledger):
    assert ledger.flush(20)
    return [(t.entry.statement_new, t.status) for t in reversed(ledger.upgrades())]


OTHER = MORE.replace("SUM(A)", "MAX(A)")


def test_an_attempt_that_was_rolled_back_stays_and_the_next_is_its_own(ledger):
    it = scene(ledger)
    it.strikes.at = {"append": ServerError("Kafka went away")}
    with pytest.raises(ServerError):
        it.world.execute(MORE)
    it.world.execute(OTHER)
    assert outcomes(ledger) == [(MORE, "rolled_back"), (OTHER, "switched")]
    assert [entry.statement_new for entry in it.known] == [OTHER]


def test_the_ledger_has_the_place_where_the_command_came_to_lie(ledger):
    it = scene(ledger)
    usual = it.world.runner.prepare_switch

    def prepare_switch_later(old, new, **more):
        it.world.execute("CREATE TYPE T AS STRUCT<A INT>;")  # another client's, meanwhile
        return usual(old, new, **more)

    it.world.runner.prepare_switch = prepare_switch_later
    outcome = it.world.execute(MORE)
    assert outcome.offset == 3
    assert outcomes(ledger) == [(MORE, "switched")]
    [upgrade] = ledger.upgrades()
    assert upgrade.entry.command_offset == 3
    assert [entry.command_offset for entry in it.known] == [3]


def test_an_entry_is_made_of_the_validators_verdict(ledger):
    it = scene(ledger)
    old = it.world.catalog.query("CTAS_N_1")
    verdict = it.world.engine.dry_run(it.world.parse(MORE), MORE, it.world.settings).verdict
    it.history.refused(Upgrade(old=old, statement=MORE, verdict=verdict))
    assert ledger.flush(20)
    [upgrade] = ledger.upgrades()
    assert upgrade.entry == UpgradeEntry(
        service_id="default_",
        query_id="CTAS_N_1",
        sink="N",
        statement_old=COUNT,
        statement_new=MORE,
        plan_old=old.plan,
        plan_new=None,
        classes=("schema evolution",),
        traits=("stateful",),
        guarantees=verdict.guarantees,
        changes=verdict.changes,
        inherited=(),
        accepted=True,
        reasons=(),
        command_offset=None,
        begun_ms=5,
    )


def test_a_crash_behind_the_append_is_reported_as_switched_at_the_next_start(ledger, monkeypatch):
    it = scene(ledger)
    monkeypatch.setattr(it.history, "switched", lambda token, switch: None)
    it.world.execute(MORE)
    assert outcomes(ledger) == [(MORE, "begun")]
    again = UpgradeRecorder(ledger, "default_", lambda: 6, [])
    it.history = again
    it.again()
    again.refill()
    assert outcomes(ledger) == [(MORE, "switched")]


def test_a_crash_before_the_append_is_reported_as_rolled_back_at_the_next_start(
    ledger, monkeypatch
):
    it = scene(ledger)
    monkeypatch.setattr(it.history, "rolled_back", lambda token, error: None)
    it.strikes.at = {"append": ServerError("killed")}
    with pytest.raises(ServerError):
        it.world.execute(MORE)
    again = UpgradeRecorder(ledger, "default_", lambda: 6, [])
    it.history = again
    it.again()
    again.refill()
    assert outcomes(ledger) == [(MORE, "rolled_back")]


def test_a_replacement_of_a_paused_query_is_recorded_at_once(ledger):
    it = scene(ledger)
    it.world.execute("PAUSE CTAS_N_1;")
    it.world.execute(MORE)
    assert outcomes(ledger) == [(MORE, "switched")]
    [upgrade] = ledger.upgrades()
    assert (upgrade.outcome.offsets, upgrade.outcome.gap_ms) == (None, None)
    assert "paused" in upgrade.outcome.reason


def test_the_last_replacement_of_a_query_is_explained(ledger):
    it = scene(ledger)
    it.world.services.history = it.history
    assert explained(it).upgrade is None
    it.world.execute(MORE)
    with pytest.raises(RequestFailed):
        it.world.run(OTHER)
    assert outcomes(ledger) == [(MORE, "switched"), (OTHER, "refused")]
    upgrade = explained(it).upgrade
    assert (upgrade.accepted, upgrade.classes) == (True, ("schema evolution",))
    assert [str(change) for change in upgrade.changes] == [
        "SELECT: added `A` BIGINT (schema evolution)"
    ]
    assert (upgrade.query_id, upgrade.switch) == ("CTAS_N_1", SwitchPoint(0, {"s": {"0": 0}}, 0))


def test_replacement_of_an_earlier_query_of_that_id_is_not_explained(ledger):
    it = scene(ledger)
    it.world.services.history = it.history
    insert = "INSERT INTO O {}SELECT * FROM S WHERE A > {};"
    it.world.run("CREATE STREAM O AS SELECT * FROM S;")
    for replaced in (True, False):
        it.world.run(insert.format("WITH (QUERY_ID='MORE') ", 1))
        if replaced:
            it.world.run("CREATE OR REPLACE QUERY MORE AS " + insert.format("", 2))
        assert (explained(it, "MORE").upgrade is not None) is replaced
        it.world.run("TERMINATE MORE;")


def explained(it, query_id="CTAS_N_1"):
    [answer] = it.world.run(f"EXPLAIN {query_id};")
    return answer.query_description


def test_the_mark_lasts(tmp_path):
    file = tmp_path / "deep" / "carried_out.json"
    assert AppliedOffsetFile(file).read() is None
    AppliedOffsetFile(file).write(7)
    assert AppliedOffsetFile(file).read() == 7


@pytest.mark.parametrize("text", ["", "{}", '{"version": 99, "carried_out": 1}', "[1]"])
def test_a_mark_that_cannot_be_read_says_what_to_do(tmp_path, text):
    file = tmp_path / "carried_out.json"
    file.write_text(text)
    with pytest.raises(APPLIED_OFFSET_DAMAGED.base, match=APPLIED_OFFSET_DAMAGED.pattern) as caught:
        AppliedOffsetFile(file).read()
    assert "Remove the file" in caught.value.text()


class Engine:
    """Needs some tries to settle."""

    def __init__(self, problems):
        self.problems = problems
        self.over = threading.Event()

    def settle(self):
        if self.problems:
            raise self.problems.pop()
        self.over.set()

    @property
    def settled(self):
        return self.over.is_set()


def test_settling_continues_until_it_is_settled():
    engine = Engine([ServerError("away"), RuntimeError("odd")])
    doubt_resolver = DoubtResolver(engine, 0.001)
    doubt_resolver.wake()
    doubt_resolver.wake()
    assert engine.over.wait(20)
    doubt_resolver.close()


class Locked:
    """An engine whose lock the statement holds that wakes the thread; nothing is left to do."""

    def __init__(self):
        self.lock = threading.RLock()
        self.reached = threading.Event()
        self.settles = 0

    def settle(self):
        self.settles += 1

    @property
    def settled(self):
        self.reached.set()
        with self.lock:
            return True


def test_a_statement_that_wakes_the_thread_does_not_wait_for_it():
    engine = Locked()
    resolver = DoubtResolver(engine, pause_s=0.0)
    with engine.lock:
        resolver.wake()
        assert engine.reached.wait(PATIENCE_S)
        again = threading.Thread(target=resolver.wake, daemon=True)
        again.start()  # in the place of the statement, which could not give up
        again.join(PATIENCE_S / 10)
        assert not again.is_alive()
    await_true("what came meanwhile is settled, too", lambda: engine.settles > 1)
    await_true("the thread ends", lambda: resolver._worker is None)
