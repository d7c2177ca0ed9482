"""The terminal as a command: ``ksql -e`` and ``ksql -f`` against a server, and how they end."""

from __future__ import annotations

import json

import pytest

from server import datagen
from tests.kafka.records import produce, unique
from tests.kafka.servers import run_command


@pytest.fixture(scope="module")
def stream(server):
    name = unique("shop").upper()
    server.http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    produce(server.bootstrap, name, [(f"k{n}", {"N": n}) for n in range(5)])
    return name


def test_statements_and_a_query_of_the_command_line(http, stream):
    done = run_command(
        http.url,
        "-e",
        f"SET 'auto.offset.reset'='earliest'; SHOW STREAMS; "
        f"SELECT K, N FROM {stream} EMIT CHANGES LIMIT 3;",
    )
    assert done.returncode == 0, done.stderr
    assert stream in done.stdout
    for n in range(3):
        assert f"k{n}" in done.stdout
    assert "Limit Reached" in done.stderr


def test_a_file_runs_to_its_end(http, stream, tmp_path):
    created = unique("made").upper()
    script = tmp_path / "shop.sql"
    script.write_text(
        f"-- what a shop needs\nDEFINE source = '{stream}';\n"
        f"CREATE STREAM {created} AS\n  SELECT K, N FROM ${{source}};\nDESCRIBE {created};\n"
        f"INSERT INTO ${{source}} (K, N) VALUES ('last', 99);\n"
    )
    done = run_command(http.url, "-f", str(script))
    assert done.returncode == 0, done.stderr
    assert f"CSAS_{created}_" in done.stdout
    rows = http.rows(f"SELECT K, N FROM {stream} WHERE N = 99;")
    assert rows == [["last", 99]]


def test_generated_records_can_be_read(server, http, capsys):
    topic = unique("orders")
    options = ("format=json", "iterations=50", "msgRate=1000", "seed=1", f"topic={topic}")
    assert (
        datagen.main(["quickstart=orders", *options, f"bootstrap-server={server.bootstrap}"]) == 0
    )
    said = capsys.readouterr()
    assert said.err.splitlines() == [f"created the topic {topic}", f"50 records written to {topic}"]
    assert len(said.out.splitlines()) == 50
    http.ksql(
        f"CREATE STREAM {topic} (ID INT KEY, ORDERID INT, ADDRESS STRUCT<CITY STRING>) "
        f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON');"
    )
    rows = http.rows(f"SELECT ID, ORDERID, ADDRESS->CITY FROM {topic};")
    assert [row[:2] for row in rows] == [[number, number] for number in range(50)]
    assert all(city.startswith("City_") for *_, city in rows)


def test_the_first_failure_ends_the_file_with_status_1(http, tmp_path):
    before, after = unique("before").upper(), unique("after").upper()
    script = tmp_path / "bad.sql"
    script.write_text(
        f"CREATE TYPE {before} AS INT;\nSELECT * FROM NOWHERE EMIT CHANGES;\n"
        f"CREATE TYPE {after} AS INT;\n"
    )
    done = run_command(http.url, "-f", str(script))
    assert done.returncode == 1
    assert "NOWHERE does not exist" in done.stdout + done.stderr
    types = http.one("SHOW TYPES;")["types"]
    assert before in types
    assert after not in types


def test_json_output_is_the_servers_own(http):
    done = run_command(http.url, "--output", "JSON", "-e", "SHOW QUERIES;")
    assert done.returncode == 0
    assert [entity["@type"] for entity in json.loads(done.stdout)] == ["queries"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-e", "SELEC 1;"], "SELECT"),
        (["-e", "DESCRIBE NOTHING;"], "NOTHING"),
        (["-f", "/no/such/file.sql"], "/no/such/file.sql"),
    ],
)
def test_faults_end_with_a_sentence_and_status_1(http, arguments, said):
    done = run_command(http.url, *arguments)
    assert done.returncode == 1
    assert said in done.stdout + done.stderr


def test_a_server_that_is_not_there():
    done = run_command("http://127.0.0.1:9", "-e", "SHOW STREAMS;")
    assert done.returncode == 1
    assert "http://127.0.0.1:9" in done.stdout + done.stderr


def test_a_script_of_the_tutorials_harness_is_piped(http, tmp_path):
    name, spooled, steps = unique("piped").upper(), tmp_path / "out.log", tmp_path / "steps.sql"
    steps.write_text(
        f"INSERT INTO {name} VALUES (1, 'one');\nINSERT INTO {name} VALUES (2, 'two');"
    )
    lines = [
        "SET CLI COLUMN-WIDTH 20",
        f"spool '{spooled}'",
        "SET 'auto.offset.reset' = 'earliest';",
        "DROP CONNECTOR IF EXISTS c;",
        "CREATE SOURCE CONNECTOR c WITH ('connector.class'='x');",
        "SHOW CONNECTORS;",
        f"CREATE STREAM {name} (k INT KEY, v VARCHAR)",
        f"  WITH (kafka_topic='{name}', partitions=1, value_format='json');",
        "INSERT INTO NOWHERE VALUES (1);",
        f"run script '{steps}'",
        f"SELECT k, v FROM {name} EMIT CHANGES LIMIT 2;",
        "output json",
        "SHOW TYPES;",
        "spool OFF",
        "exit",
        "THIS IS NEVER READ;",
    ]
    done = run_command(http.url, stdin="\n".join(lines))
    assert done.returncode == 0
    assert "unknown stream/table: `NOWHERE`" in done.stderr
    assert "no Kafka Connect is configured" in done.stderr
    assert "No connectors." in done.stdout
    assert "NEVER" not in done.stdout + done.stderr
    assert "| one " in done.stdout
    assert "| two " in done.stdout
    assert '"@type":"type_list"' in done.stdout.replace(" ", "").replace("\n", "")
    text = spooled.read_text()
    for part in ("ksql> CREATE STREAM", "unknown stream/table: `NOWHERE`", "| two ", "type_list"):
        assert part in text
    done = run_command(http.url, "-f", "-", stdin="\n".join(lines))
    assert done.returncode == 1
    assert "one" not in done.stdout
