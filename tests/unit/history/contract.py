"""What the ledger must do on every database; the subclasses say on which."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from ksql.core.records import Offset
from ksql.history.database import (
    Database,
    EntryRefused,
    LedgerUnavailable,
    NewerLedger,
    migrate,
    parse_url,
)
from ksql.history.model import Base
from ksql.history.resilient import Patience, ResilientLedger
from ksql.history.store import Ledger
from tests.unit.history.samples import (
    ABORTED,
    ACCEPTED,
    REBUILD,
    REBUILT,
    REFUSED,
    ROLLED_BACK,
    SWITCHED,
    accepted,
)
from tests.waits import await_true

ROOT = Path(__file__).parents[3]
OPENER = """
import sys
from ksql.history.store import Ledger
print("ready", flush=True)
sys.stdin.readline()
ledger = Ledger.open(sys.argv[1])
print(ledger.created, flush=True)
ledger.close()
"""
EARLIER = """
INSERT INTO upgrades (id, service_id, query_id, sink, statement_old, statement_new, classes, traits,
  guarantees, accepted, reasons, command_offset, status, outcome_reason, rebuilt, begun_ms)
VALUES ('old', 'default_', 'CSAS_BAR_7', 'BAR', 'A', 'B', '["topology"]', '[]',
  '[]', false, '[]', 2, 'refused', '', false, 5)
"""
EAGER = Patience(delay_seconds=0.02, longest_delay_seconds=0.05, busy_ms=50)
SOON = 20.0


def execute(url, *statements):
    database = Database(parse_url(url), busy_ms=5000)
    with database.connection(writing=True) as connection:
        for statement in statements:
            connection.execute(text(statement))
    database.close()


def await_down(resilient: ResilientLedger, caplog: pytest.LogCaptureFixture) -> None:
    """Wait until it has noticed that the database cannot be reached."""
    await_true("the outage is logged", lambda: "ledger_unavailable" in caplog.messages, SOON)
    assert not resilient.flush(0.1)


class LedgerContract:
    """Tests of Ledger; ``url`` is an empty database."""

    @pytest.fixture
    def ledger(self, url):
        opened = Ledger.open(url)
        yield opened
        opened.close()

    def test_an_upgrade_is_distinguished_from_begin_to_end(self, ledger):
        upgrade_id = ledger.record_upgrade(ACCEPTED)
        (begun,) = ledger.upgrades()
        assert (begun.entry, begun.outcome, begun.status) == (ACCEPTED, None, "begun")
        assert ledger.finish_upgrade(upgrade_id, SWITCHED)
        (done,) = ledger.upgrades()
        assert (done.id, done.entry, done.outcome) == (upgrade_id, ACCEPTED, SWITCHED)
        assert (done.status, done.rebuilt) == ("switched", False)

    def test_a_rollback_says_why(self, ledger):
        ledger.finish_upgrade(ledger.record_upgrade(ACCEPTED), ROLLED_BACK)
        (upgrade,) = ledger.upgrades()
        assert (upgrade.outcome, upgrade.status) == (ROLLED_BACK, "rolled_back")

    def test_every_refused_attempt_is_kept(self, ledger):
        assert ledger.record_upgrade(REFUSED) != ledger.record_upgrade(REFUSED)
        upgrades = ledger.upgrades()
        assert [(t.entry, t.status) for t in upgrades] == [(REFUSED, "refused")] * 2

    def test_the_same_attempt_again_changes_nothing(self, ledger):
        upgrade_id = ledger.record_upgrade(ACCEPTED)
        ledger.finish_upgrade(upgrade_id, SWITCHED)
        assert ledger.record_upgrade(ACCEPTED, upgrade_id) == upgrade_id
        (upgrade,) = ledger.upgrades()
        assert upgrade.outcome == SWITCHED

    def test_a_rolled_back_attempt_stays_when_another_gets_its_offset(self, ledger):
        ledger.finish_upgrade(ledger.record_upgrade(accepted(9, statement_new="A")), ROLLED_BACK)
        ledger.finish_upgrade(ledger.record_upgrade(accepted(9, statement_new="B")), SWITCHED)
        ledger.refill([accepted(9, statement_new="B")])
        assert [(t.entry.statement_new, t.outcome) for t in ledger.upgrades()] == [
            ("B", SWITCHED),
            ("A", ROLLED_BACK),
        ]

    def test_interrupted_upgrade_is_completed_from_the_command_topic(self, ledger):
        ledger.record_upgrade(accepted(8))
        ledger.record_upgrade(accepted(9, statement_new="A"))
        ledger.record_upgrade(accepted(9, statement_new="B"))
        ledger.record_upgrade(accepted(9, service_id="other_"))
        assert ledger.refill([accepted(9, statement_new="B")]) == 1
        assert ledger.close_begun("default_", 77) == 2
        upgrades = [
            (t.entry.statement_new, t.status) for t in ledger.upgrades(service_id="default_")
        ]
        assert upgrades == [
            ("B", "switched"),
            ("A", "rolled_back"),
            (ACCEPTED.statement_new, "rolled_back"),
        ]
        assert "the server ended" in ledger.upgrades(service_id="default_")[1].outcome.reason
        assert ledger.upgrades(service_id="other_")[0].status == "begun"

    def test_finishing_what_was_never_recorded_is_reported(self, ledger):
        assert not ledger.finish_upgrade("default_/CSAS_X_1/1", SWITCHED)

    def test_upgrades_come_newest_first_by_query_service_and_number(self, ledger):
        for offset in range(5):
            ledger.record_upgrade(accepted(offset))
        ledger.record_upgrade(accepted(7, query_id="CTAS_T_3"))
        ledger.record_upgrade(accepted(7, service_id="other_"))

        def offsets(*args, **kwargs):
            return [upgrade.entry.command_offset for upgrade in ledger.upgrades(*args, **kwargs)]

        assert offsets() == [7, 7, 4, 3, 2, 1, 0]
        assert offsets(limit=3) == [7, 7, 4]
        assert offsets("CTAS_T_3") == [7]
        assert offsets("CSAS_BAR_7", 2, service_id="default_") == [4, 3]
        assert offsets("CSAS_NONE_1") == []

    def test_rebuilding_twice_is_rebuilding_once(self, ledger):
        known = [accepted(1), accepted(2), accepted(3), REFUSED]
        assert ledger.refill(known) == 3
        assert ledger.refill(known) == 0
        upgrades = ledger.upgrades()
        assert [t.entry for t in reversed(upgrades)] == known[:3]
        assert {(t.status, t.rebuilt) for t in upgrades} == {("switched", True)}

    def test_rebuilding_leaves_what_is_known_better(self, ledger):
        ledger.finish_upgrade(ledger.record_upgrade(accepted(1)), SWITCHED)
        ledger.record_upgrade(accepted(2))
        assert ledger.refill([accepted(1), accepted(2), accepted(3)]) == 2
        assert [(t.status, t.rebuilt) for t in reversed(ledger.upgrades())] == [
            ("switched", False),
            ("switched", False),
            ("switched", True),
        ]

    def test_an_attempt_whose_command_lies_further_back_is_known_by_that_place(self, ledger):
        upgrade_id = ledger.record_upgrade(accepted(7))
        ledger.finish_upgrade(upgrade_id, replace(SWITCHED, command_offset=Offset(9)))
        (upgrade,) = ledger.upgrades()
        assert (upgrade.entry.command_offset, upgrade.outcome) == (9, SWITCHED)
        assert ledger.refill([accepted(9)]) == 0

    def test_an_attempt_cut_short_is_found_though_others_were_written_before_it(self, ledger):
        ledger.record_upgrade(accepted(7))
        assert ledger.refill([accepted(9)]) == 1
        (upgrade,) = ledger.upgrades()
        assert (upgrade.entry.command_offset, upgrade.status, upgrade.rebuilt) == (
            9,
            "switched",
            False,
        )

    def test_the_entry_itself_replaces_the_rebuilt_one(self, ledger):
        ledger.refill([accepted(1)])
        upgrade_id = ledger.record_upgrade(accepted(1))
        ledger.finish_upgrade(upgrade_id, SWITCHED)
        (upgrade,) = ledger.upgrades()
        assert (upgrade.outcome, upgrade.rebuilt) == (SWITCHED, False)

    def test_a_rebuild_is_building_until_it_is_switched(self, ledger):
        ledger.record_upgrade(REBUILD.entry, REBUILD.id)
        assert (ledger.upgrade(REBUILD.id).entry, ledger.upgrade(REBUILD.id).status) == (
            REBUILD.entry,
            "building",
        )
        assert ledger.finish_upgrade(REBUILD.id, REBUILT)
        upgrade = ledger.upgrade(REBUILD.id)
        assert (upgrade.outcome, upgrade.status) == (REBUILT, "switched")

    def test_there_is_no_upgrade_of_an_id_that_was_never_given(self, ledger):
        ledger.record_upgrade(ACCEPTED)
        assert ledger.upgrade("none") is None

    def test_a_start_leaves_the_rebuild_that_is_under_way(self, ledger):
        ledger.record_upgrade(REBUILD.entry, REBUILD.id)
        ledger.record_upgrade(accepted(9))
        assert ledger.refill([REBUILD]) == 0
        assert ledger.close_begun("default_", 77, [REBUILD.id]) == 1
        assert [upgrade.status for upgrade in ledger.upgrades()] == ["rolled_back", "building"]

    def test_a_rebuild_is_not_the_replacement_in_place_of_the_same_text(self, ledger):
        ledger.record_upgrade(REBUILD.entry, REBUILD.id)
        assert ledger.refill([accepted(9)]) == 1
        assert [(upgrade.entry.mode, upgrade.status) for upgrade in ledger.upgrades()] == [
            ("in_place", "switched"),
            ("rebuild", "building"),
        ]

    @pytest.mark.parametrize("outcome", [SWITCHED, ABORTED])
    def test_a_rebuild_is_completed_from_the_command_topic_once(self, ledger, outcome):
        ended = replace(REBUILD, outcome=outcome)
        assert ledger.refill([REBUILD]) == 1
        assert ledger.refill([ended]) == 1
        assert ledger.refill([ended, REBUILD]) == 0
        upgrade = ledger.upgrade(REBUILD.id)
        assert (upgrade.status, upgrade.rebuilt) == (outcome.status, True)

    def test_a_lost_rebuild_is_added_with_its_end(self, ledger):
        assert ledger.refill([replace(REBUILD, outcome=ABORTED)]) == 1
        assert ledger.upgrade(REBUILD.id).outcome == ABORTED

    def test_the_topic_does_not_change_the_end_that_the_ledger_has(self, ledger):
        ledger.record_upgrade(REBUILD.entry, REBUILD.id)
        ledger.finish_upgrade(REBUILD.id, REBUILT)
        assert ledger.refill([replace(REBUILD, outcome=SWITCHED)]) == 0
        assert ledger.upgrade(REBUILD.id).outcome == REBUILT

    def test_texts_that_no_database_takes_are_made_to_fit(self, ledger):
        ledger.record_upgrade(accepted(1, statement_new="a\0b\ud800", plan_new='"\\u0000"'))
        (upgrade,) = ledger.upgrades()
        assert upgrade.entry.statement_new == "a\u2400b\\ud800"
        assert upgrade.entry.plan_new == '"\\u0000"'

    def test_the_secrets_of_a_plan_s_settings_are_not_kept(self, ledger):
        settings = [["ksql.functions.f.password", "m4rk3r"], ["x.url", "http://a:m4rk3r@b"]]
        plan = {"columns": [["password", "STRING"]], "settings": settings}
        text = json.dumps({"version": 1, "plan": plan})
        ledger.record_upgrade(accepted(1, plan_old=text, plan_new=text))
        (upgrade,) = ledger.upgrades()
        hidden = [["ksql.functions.f.password", "***"], ["x.url", "http://***@b"]]
        expected = {"version": 1, "plan": {**plan, "settings": hidden}}
        assert json.loads(upgrade.entry.plan_old) == expected
        assert json.loads(upgrade.entry.plan_new) == expected

    def test_an_entry_that_is_not_json_is_refused(self, ledger):
        with pytest.raises(EntryRefused):
            ledger.record_upgrade(accepted(1, plan_new="{"))
        ledger.record_upgrade(accepted(1))

    def test_it_lasts(self, url):
        first = Ledger.open(url)
        first.record_upgrade(ACCEPTED)
        first.close()
        second = Ledger.open(url)
        assert (first.created, second.created) == (True, False)
        assert [upgrade.entry for upgrade in second.upgrades()] == [ACCEPTED]
        second.check()
        second.close()

    def test_the_migrations_give_the_tables_of_the_model(self, url):
        Ledger.open(url).close()
        database = Database(parse_url(url), busy_ms=5000)
        with database.connection(writing=False) as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, Base.metadata) == []
        database.close()

    def test_a_newer_schema_stops_the_start(self, url):
        Ledger.open(url).close()
        execute(url, "UPDATE alembic_version SET version_num = '9999'")
        for opening in (Ledger.open, ResilientLedger.open):
            with pytest.raises(NewerLedger, match="9999"):
                opening(url)

    @pytest.mark.parametrize("before", ["0001", "0004"])
    def test_an_older_schema_is_brought_up_to_date(self, url, before):
        database = Database(parse_url(url), busy_ms=5000)
        database.make_directory()
        migrate(database, before)
        database.close()
        execute(url, EARLIER)
        ledger = Ledger.open(url)
        for _ in range(2):
            ledger.record_upgrade(accepted(3))
        *now, earlier = (upgrade.entry for upgrade in ledger.upgrades())
        assert now == [accepted(3)] * 2
        assert (earlier.classes, earlier.changes, earlier.inherited) == (("topology",), (), ())
        assert not ledger.created
        ledger.close()

    @pytest.mark.slow
    def test_servers_that_start_at_once_migrate_once(self, url):
        servers = [
            subprocess.Popen(
                [sys.executable, "-c", OPENER, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for _ in range(3)
        ]
        answers = []
        try:
            for server in servers:
                assert server.stdout is not None
                assert server.stdout.readline() == "ready\n"
            for server in servers:
                assert server.stdin is not None
                server.stdin.write("go\n")
                server.stdin.flush()
            answers = [server.communicate(timeout=60)[0] for server in servers]
        finally:
            for server in servers:
                server.kill()
                server.communicate()
        assert sorted(answers) == ["False\n", "False\n", "True\n"]

    def test_threads_share_it(self, ledger):
        def write(service):
            for offset in range(5):
                upgrade_id = ledger.record_upgrade(accepted(offset, service_id=service))
                ledger.finish_upgrade(upgrade_id, SWITCHED)

        threads = [threading.Thread(target=write, args=(f"s{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [upgrade.status for upgrade in ledger.upgrades()] == ["switched"] * 20


class ResilientContract:
    """Tests of ResilientLedger; ``url`` is an empty database, ``locked`` blocks its writers."""

    @pytest.fixture
    def resilient(self, url):
        opened = ResilientLedger.open(url, patience=EAGER)
        yield opened
        opened.close()

    def test_accepted_entry_is_written_and_read(self, resilient, caplog):
        upgrade_id = resilient.record_upgrade(ACCEPTED)
        resilient.finish_upgrade(upgrade_id, SWITCHED)
        refused_id = resilient.record_upgrade(REFUSED)
        resilient.refill([accepted(1), ACCEPTED])
        resilient.refill([])
        assert resilient.flush(SOON)
        statuses = {t.id: t.status for t in resilient.upgrades()}
        assert statuses.pop(refused_id) == "refused"
        assert statuses == {upgrade_id: "switched", "default_/CSAS_BAR_7/1/log": "switched"}
        assert caplog.messages == []

    def test_entries_wait_while_it_is_locked(self, url, locked, caplog):
        Ledger.open(url).close()
        with locked():
            resilient = ResilientLedger.open(url, patience=EAGER)
            upgrade_id = resilient.record_upgrade(ACCEPTED)
            resilient.finish_upgrade(upgrade_id, SWITCHED)
            await_down(resilient, caplog)
            assert resilient.upgrades() == ()
        assert resilient.flush(SOON)
        (upgrade,) = resilient.upgrades()
        assert upgrade.outcome == SWITCHED
        assert resilient.close() == 0
        assert [(r.message, bool(vars(r)["error"])) for r in caplog.records] == [
            ("ledger_unavailable", True)
        ]

    def test_closing_reports_what_it_could_not_write(self, url, locked, caplog):
        Ledger.open(url).close()
        resilient = ResilientLedger.open(url, patience=EAGER)
        with locked():
            resilient.record_upgrade(accepted(1))
            resilient.record_upgrade(accepted(2))
            assert resilient.close(limit_seconds=0.3) == 2
        assert "ledger_entries_lost" in caplog.messages
        resilient.record_upgrade(accepted(3))
        assert caplog.messages[-1] == "ledger_closed"

    def test_closing_writes_what_waits(self, url):
        resilient = ResilientLedger.open(url, patience=EAGER)
        for offset in range(20):
            resilient.record_upgrade(accepted(offset))
        assert resilient.close() == 0
        assert resilient.close() == 0
        ledger = Ledger.open(url)
        assert len(ledger.upgrades()) == 20
        ledger.close()

    def test_an_entry_that_is_refused_does_not_hold_up_the_rest(self, resilient, caplog):
        resilient.record_upgrade(accepted(1, plan_new="{"))
        resilient.finish_upgrade("never/recorded/1", SWITCHED)
        resilient.record_upgrade(accepted(2))
        assert resilient.flush(SOON)
        assert [upgrade.entry.command_offset for upgrade in resilient.upgrades()] == [2]
        assert caplog.messages == ["ledger_entry_refused"] * 2
        assert all(vars(record)["error"] for record in caplog.records)

    def test_tables_that_are_gone_make_it_unavailable(self, url):
        ledger = Ledger.open(url)
        execute(url, "DROP TABLE upgrades")
        with pytest.raises(LedgerUnavailable):
            ledger.upgrades()
        with pytest.raises(LedgerUnavailable):
            ledger.record_upgrade(ACCEPTED)
        ledger.close()
