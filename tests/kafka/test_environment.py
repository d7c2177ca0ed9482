"""What a server cannot help: taken ports, foreign directories, bad records, a lost ledger."""

from __future__ import annotations

import json
import socket
import sqlite3
import time

import pytest

from ksql.app.state import FORMAT
from ksql.core.errors import StartError
from ksql.history.store import Ledger
from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import Hosted, hosted, run_command
from tests.waits import PATIENCE_S, await_true

pytestmark = pytest.mark.proof


def test_a_port_in_use_is_reported_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_command(
            "server",
            "-o",
            f"listeners=http://127.0.0.1:{port}",
            "-o",
            f"ksql.state.dir={tmp_path / 'state'}",
        )
    assert done.returncode == 1
    assert f"port {port} on 127.0.0.1 is in use" in done.stderr
    assert "choose another port" in done.stderr
    assert not (tmp_path / "state").exists()


MARKERS = {
    "foreign": (json.dumps({"format": FORMAT, "service.id": "theirs_"}), 'service "theirs_"'),
    "newer": (json.dumps({"format": FORMAT + 1, "service.id": "default_"}), f"format {FORMAT + 1}"),
    "damaged": ("{", "is damaged"),
}


@pytest.mark.parametrize("kind", MARKERS)
def test_a_directory_of_somebody_else_is_left_alone(tmp_path, kind):
    text, reason = MARKERS[kind]
    (tmp_path / "service.json").write_text(text)
    options = [f"ksql.state.dir={tmp_path}", "listeners=http://127.0.0.1:0"]
    done = run_command("server", *[part for o in options for part in ("-o", o)])
    assert done.returncode == 1
    assert reason in done.stderr
    assert (tmp_path / "service.json").read_text() == text


def test_a_second_server_on_the_same_directory_is_refused(server, runtime):
    state = server.service.node.settings.text("ksql.state.dir")
    service_id = server.service.node.settings.text("ksql.service.id")
    second = Hosted(server.bootstrap, runtime, state, service_id)
    with pytest.raises(StartError, match="is in use by another server"):
        second.service.start()
    assert server.http.client.get("/info").status_code == 200


def test_a_broker_out_of_reach_ends_the_start_after_the_time_given(tmp_path):
    began = time.monotonic()
    options = [
        f"ksql.state.dir={tmp_path}",
        "listeners=http://127.0.0.1:0",
        "bootstrap.servers=127.0.0.1:9",
        "default.api.timeout.ms=2000",
    ]
    done = run_command("server", *[part for o in options for part in ("-o", o)])
    assert done.returncode == 1
    assert "Kafka at 127.0.0.1:9 cannot be reached" in done.stderr
    assert "Check bootstrap.servers" in done.stderr
    assert time.monotonic() - began > 1  # it did try again


def test_a_record_that_does_not_decode_is_skipped_counted_and_reported(server, http):
    source, sink, count = (unique(stem).upper() for stem in ("mixed", "good", "goodcount"))
    http.ksql(
        f"CREATE STREAM {source} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{source}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"CREATE STREAM {sink} AS SELECT K, 100 / N AS PART FROM {source};"
        f"CREATE TABLE {count} AS SELECT K, COUNT(*) AS C FROM {source} GROUP BY K;"
    )
    queries = [i for i in http.queries() if sink in i or count in i]
    good = [("a", {"N": n}) for n in (1, 2, 4)]
    bad = [("a", b"no JSON"), ("a", {"N": "many"})]
    produce(server.bootstrap, source, [*good[:2], *bad, good[2]])
    await_true("the good ones come", lambda: len(read_all(server.bootstrap, sink)) == 3)
    produce(server.bootstrap, source, [bad[0], *good])
    await_true("more of them", lambda: len(read_all(server.bootstrap, sink)) == 6)
    await_true("they are counted", lambda: http.rows(f"SELECT C FROM {count};") == [[6]])
    for query_id in queries:
        assert http.queries()[query_id] == "RUNNING"

    def entry_of(name):
        return http.one(f"DESCRIBE {name} EXTENDED;")["sourceDescription"]["errorStats"]

    for name in (sink, count, source):  # a batch is reported behind its rows
        await_true(f"{name} tells", lambda name=name: "records-skipped: 3" in entry_of(name))

    log = (
        "SELECT LOGGER, MESSAGE->DESERIALIZATIONERROR->ERRORMESSAGE AS M FROM KSQL_PROCESSING_LOG "
        f"WHERE MESSAGE->DESERIALIZATIONERROR->`TOPIC` = '{source}';"
    )
    pulled = await_true("its entries", lambda: len(rows := http.rows(log)) >= 6 and rows)
    assert len(pulled) == 6
    assert {row[0].split(".")[1] for row in pulled} == set(queries)
    failed = f"Failed to deserialize value from topic: {source}. "
    kind = "Can't coerce string to type. targetType: INTEGER, path: $.N"
    assert all(row[1].startswith(failed) for row in pulled)
    assert failed + kind in {row[1] for row in pulled}
    pushed = http.rows("SELECT LEVEL FROM KSQL_PROCESSING_LOG EMIT CHANGES LIMIT 2;")
    assert pushed == [["ERROR"], ["ERROR"]]

    produce(server.bootstrap, source, [("a", {"N": 0})])  # an expression that fails gives NULL
    seen = await_true(
        "the division's row", lambda: (s := read_all(server.bootstrap, sink)) and len(s) == 7 and s
    )
    assert seen[-1].value == {"PART": None}
    entry = await_true(
        "it is told",
        lambda: http.rows(
            "SELECT MESSAGE->RECORDPROCESSINGERROR->ERRORMESSAGE AS M FROM KSQL_PROCESSING_LOG "
            "WHERE MESSAGE->TYPE = 1;"
        ),
    )
    assert len(entry) == 1


# --- the ledger ---------------------------------------------------------------------------------


class Shop:
    """A query that is replaced again and again, one column more each time."""

    def __init__(self, http, bootstrap):
        self.http = http
        self.bootstrap = bootstrap
        self.source, self.sink = unique("stock").upper(), unique("shelf").upper()
        http.ksql(
            f"CREATE STREAM {self.source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.source}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        )
        created = http.one(f"CREATE STREAM {self.sink} AS SELECT K, N FROM {self.source};")
        self.query_id = created["commandStatus"]["queryId"]
        self.columns = 0
        self.assert_it_runs()

    def replace(self):
        self.columns += 1
        more = "".join(f", N + {i} AS N{i}" for i in range(self.columns))
        done = self.http.one(
            f"CREATE OR REPLACE STREAM {self.sink} AS SELECT K, N{more} FROM {self.source};"
        )
        assert done["upgrade"]["accepted"]
        self.assert_it_runs()

    def assert_it_runs(self):
        before = len(read_all(self.bootstrap, self.sink))
        produce(self.bootstrap, self.source, [("a", {"N": 1})])
        record = await_true(
            "one more record",
            lambda: (s := read_all(self.bootstrap, self.sink)) and len(s) == before + 1 and s,
        )
        assert len(record[-1].value) == 1 + self.columns


def recorded(path, query_id):
    """The outcomes of the upgrades that the file holds, the newest first."""
    ledger = Ledger.open(f"sqlite:///{path}", patience_seconds=PATIENCE_S)
    try:
        return [upgrade.entry.command_offset for upgrade in ledger.upgrades(query_id)]
    finally:
        ledger.close()


def test_a_ledger_that_is_locked_or_deleted_stops_nothing(broker, runtime, tmp_path):
    path = tmp_path / "state" / "ledger.db"
    with hosted(broker.bootstrap, runtime, tmp_path / "state", unique("book") + "_") as http:
        shop = Shop(http, broker.bootstrap)
        shop.replace()
        await_true("it is written", lambda: len(recorded(path, shop.query_id)) == 1)

        locked = sqlite3.connect(path, PATIENCE_S, isolation_level=None)
        locked.execute("BEGIN EXCLUSIVE")
        shop.replace()
        locked.execute("ROLLBACK")
        locked.close()
        await_true("what waited is written", lambda: len(recorded(path, shop.query_id)) == 2)

        for file in path.parent.glob("ledger.db*"):
            file.unlink()
        shop.replace()
        await_true("the lost ones are back", lambda: len(recorded(path, shop.query_id)) == 3)

        for file in path.parent.glob("ledger.db*"):
            file.unlink()
        path.write_bytes(b"this is no database" * 100)
        shop.replace()
        await_true("a damaged one is set aside", lambda: len(recorded(path, shop.query_id)) == 4)
