"""A server that runs a file of queries, as a process: started again, and with a changed file."""

from __future__ import annotations

import subprocess

import httpx
import pytest

from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import ServerProcess, command
from tests.waits import PATIENCE_S, await_true


class Headless:
    """A service that runs a file over a topic of its own."""

    def __init__(self, bootstrap, folder):
        self.bootstrap, self.folder = bootstrap, folder
        self.service_id = unique("headless") + "_"
        self.src, self.out, self.counts = (unique(n).upper() for n in ("SRC", "OUT", "CNT"))
        self.file = folder / "queries.sql"
        self.sent = 0
        create_topic(bootstrap, self.src)

    @property
    def source(self):
        return (
            f"CREATE STREAM {self.src} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.src}', VALUE_FORMAT='JSON');\n"
        )

    def text(self, select="K, N", head="CREATE"):
        return (
            "SET 'auto.offset.reset' = 'earliest';\n"
            f"{self.source}"
            f"{head} STREAM {self.out} AS SELECT {select} FROM {self.src};\n"
            f"CREATE TABLE {self.counts} AS SELECT K, COUNT(*) AS C FROM {self.src} GROUP BY K;\n"
        )

    @property
    def properties(self):
        return {
            "bootstrap__servers": self.bootstrap,
            "ksql__state__dir": str(self.folder / "state"),
            "ksql__service__id": self.service_id,
            "ksql__schema__registry__topic": f"_schemas_{self.service_id}",
            "ksql__queries__file": str(self.file),
        }

    def start(self, text):
        self.file.write_text(text)
        return ServerProcess(self.folder / "server.log", **self.properties)

    def fails(self, text):
        """What a server says that does not start."""
        self.file.write_text(text)
        options = [
            part
            for name, value in {"listeners": "http://127.0.0.1:0", **self.properties}.items()
            for part in ("-o", f"{name.replace('__', '.')}={value}")
        ]
        done = subprocess.run(
            command("server", *options),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 78, done  # an operator is needed
        assert "is ready" not in done.stdout
        return done.stderr.replace(str(self.file), "FILE")

    def send(self):
        produce(self.bootstrap, self.src, [("k", {"N": self.sent})])
        self.sent += 1

    def await_values(self, *values):
        """Wait until the output has these values; it never has others."""
        expected = list(values)

        def there():
            rows = [seen.value for seen in read_all(self.bootstrap, self.out)]
            assert rows == expected[: len(rows)]
            return rows == expected

        await_true(f"{expected} in {self.out}", there)

    def await_count(self, count):
        def there():
            records = read_all(self.bootstrap, self.counts)
            return bool(records) and records[-1].value["C"] == count

        await_true(f"the count {count}", there)

    def groups(self):
        """The groups of the service's queries in Kafka: they are named by their ids."""
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 only here

        listed = AdminClient({"bootstrap.servers": self.bootstrap}).list_consumer_groups()
        group_ids = {each.group_id for each in listed.result(PATIENCE_S).valid}
        return sorted(each for each in group_ids if self.service_id in each)


@pytest.fixture
def headless(broker, tmp_path):
    return Headless(broker.bootstrap, tmp_path)


def checkpoints(headless):
    folders = (headless.folder / "state" / headless.service_id / "queries").iterdir()
    return sorted(each.name for each in folders)


@pytest.mark.proof
def test_a_file_runs_and_continues_and_is_upgraded(headless):
    first = headless.start(headless.text())
    headless.send()
    headless.await_values({"N": 0})
    headless.await_count(1)
    ids = checkpoints(headless)
    assert len(ids) == 2
    url = first.http.url
    for path in ("/ksql", "/query-stream", "/query"):
        refused = httpx.post(f"{url}{path}", json={"ksql": "SHOW QUERIES;", "sql": "SELECT 1;"})
        assert (refused.status_code, refused.json()["error_code"]) == (404, 40400)
    assert httpx.get(f"{url}/healthcheck").json()["isHealthy"]
    first.stop()

    headless.send()
    again = headless.start("-- moved\n" + headless.text())  # the same statements
    headless.await_values({"N": 0}, {"N": 1})
    headless.await_count(2)
    assert checkpoints(headless) == ids
    again.kill()

    upgraded = headless.start(headless.text("K, N, N * 2 AS TWICE", "CREATE OR REPLACE"))
    headless.send()
    headless.await_values({"N": 0}, {"N": 1}, {"N": 2, "TWICE": 4})
    headless.await_count(3)
    assert checkpoints(headless) == ids
    upgraded.stop()

    said = headless.fails(headless.text("K, N, N * 3 AS THRICE"))
    assert f"FILE, line 3:1: `{headless.out}` runs already, and was made by another" in said
    assert "write CREATE OR REPLACE" in said
    said = headless.fails(headless.source + f"CREATE STREAM X AS SELECT * FROM {headless.src};")
    assert f"the file says nothing about what runs: {headless.out}, {headless.counts}" in said

    headless.send()
    last = headless.start(headless.text("K, N, N * 2 AS TWICE"))
    headless.await_values({"N": 0}, {"N": 1}, {"N": 2, "TWICE": 4}, {"N": 3, "TWICE": 6})
    assert checkpoints(headless) == ids
    last.stop()


def test_a_bad_statement_ends_the_start_and_nothing_is_made(headless):
    said = headless.fails(headless.text() + f"CREATE STREAM X AS\n  SELEC * FROM {headless.src};\n")
    assert "ksql server: FILE, line 6:3: " in said
    assert f"\n    SELEC * FROM {headless.src};\n    ^" in said
    assert "Traceback" not in said
    server = headless.start(headless.text())
    headless.send()
    headless.await_values({"N": 0})
    server.stop()
