"""The file of a headless server: what runs is left alone, what changed is replaced or refused."""

from __future__ import annotations

import pytest

from ksql.app import headless
from ksql.control.statements.queriesfile import StatementsOfCatalog
from ksql.core.config import Settings
from ksql.kafka.processing_log import stream_statement
from ksql.sql.catalog.model import Topic
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);\n"
COPY = "CREATE STREAM C AS SELECT * FROM S;\n"
COUNT = "CREATE TABLE N AS SELECT K, COUNT(*) AS M FROM S GROUP BY K;\n"
INSERT = "INSERT INTO C SELECT * FROM S;\n"
FILE = S + COPY + COUNT + INSERT
LOG = "the_log"


class Headless:
    """A server's life: each start replays the log and reads the file."""

    def __init__(self, folder):
        self.file = folder / "queries.sql"
        self.world = World()

    def start(self, text):
        """Return how many statements are carried out; the file is the text."""
        self.file.write_text(text)
        before = len(self.world.log.commands)
        self.said = headless.carry_out(
            self.file, self.world.services, self.world.settings, self._stated(), LOG
        )
        return len(self.world.log.commands) - before

    def refused(self, text):
        """Return what is said of a file that ends the start; nothing may have changed."""
        before = self.world.catalog
        with pytest.raises(headless.BadQueriesFile) as caught:
            self.start(text)
        assert self.world.catalog is before
        return caught.value.text().replace(str(self.file), "FILE")

    def _stated(self):
        commands = StatementsOfCatalog()
        for command in self.world.log.commands:
            commands.note(command)
        return commands

    @property
    def queries(self):
        return list(self.world.catalog.queries)


@pytest.fixture
def place(tmp_path):
    return Headless(tmp_path)


def test_a_second_start_changes_nothing(place):
    assert place.start(FILE) == 4
    ids = place.queries
    assert ids == ["CSAS_C_1", "CTAS_N_2", "INSERTQUERY_3"]
    assert place.start(FILE) == 0
    assert place.said == f"0 statements of {place.file} carried out, 4 run already"
    assert (
        place.start(
            "-- another order and look\n"
            + S
            + INSERT
            + COUNT
            + COPY.lower().replace(
                "create stream c as select * from s", "CREATE   STREAM C AS\nSELECT * FROM S"
            )
        )
        == 0
    )
    assert place.queries == ids


def test_new_statements_are_added(place):
    place.start(S + COPY)
    assert place.start(S + COUNT + COPY) == 1
    assert place.queries == ["CSAS_C_1", "CTAS_N_2"]
    assert place.start(S + COUNT + COPY + INSERT + INSERT) == 2
    assert place.start(S + COUNT + COPY + INSERT + INSERT) == 0


def test_or_replace_upgrades_in_place(place):
    file = S + COPY + COUNT
    place.start(file)
    other = COPY.replace("*", "K, A, A + 1 AS B")
    said = place.refused(file.replace(COPY, other))
    assert said == (
        "FILE, line 2:1: `C` runs already, and was made by another statement\n"
        f"  {other.strip()}\n  ^\n"
        f"It was: {COPY.strip()}\n"
        "To upgrade what runs, write CREATE OR REPLACE; else restore the statement."
    )
    upgraded = file.replace(COPY, other.replace("CREATE", "CREATE OR REPLACE"))
    assert place.start(upgraded) == 1
    assert place.queries == ["CSAS_C_1", "CTAS_N_2"]
    assert "B" in [c.name for c in place.world.catalog.sources["C"].schema.value]
    assert place.start(upgraded) == 0
    assert place.start(file.replace(COPY, other)) == 0  # the words do not tell how it came


def test_impossible_upgrade_ends_the_start(place):
    place.start(S + COUNT)
    said = place.refused(
        S + "\n\tCREATE OR REPLACE TABLE N AS SELECT A, COUNT(*) FROM S GROUP BY A;"
    )
    assert said.startswith("FILE, line 3:2: Cannot upgrade")
    assert "\n  \t^" in said


def test_readers_of_an_upgraded_source_follow_it(place):
    place.start(S + COPY)
    wider = S.replace("CREATE", "CREATE OR REPLACE").replace("A BIGINT", "A BIGINT, B INT")
    assert place.start(wider + COPY) == 1
    assert [c.name for c in place.world.catalog.sources["C"].schema.value] == ["A"]
    widest = wider.replace("B INT", "B INT, D INT")
    assert place.start(widest + COPY.replace("CREATE", "CREATE OR REPLACE")) == 2
    assert [c.name for c in place.world.catalog.sources["C"].schema.value] == ["A", "B", "D"]


def test_settings_belong_to_a_query(place):
    setting = "SET 'processing.guarantee' = 'exactly_once_v2';\n"
    place.start(S + setting + COPY)
    assert place.start(S + setting + COPY) == 0
    assert place.start(setting + S + COPY) == 0
    said = place.refused(S + COPY)
    assert "It was made with other settings: processing.guarantee." in said
    assert place.start(S + COPY.replace("CREATE", "CREATE OR REPLACE")) == 1


def test_the_file_must_say_what_becomes_of_what_runs(place):
    place.start(FILE)
    ending = "TERMINATE INSERTQUERY_3;\nDROP STREAM IF EXISTS `C`;"
    said = place.refused(S + COUNT)
    assert said == (
        "FILE: the file says nothing about what runs: C, INSERTQUERY_3\n"
        f"Restore their statements or, to end them for good, end the file with:\n{ending}"
    )
    assert place.start(S + COUNT + ending) == 2
    assert place.queries == ["CTAS_N_2"]
    assert place.start(S + COUNT + ending) == 0
    assert place.start(S + COUNT) == 0


def test_types(place):
    text = (
        "CREATE TYPE P AS STRUCT<X INT>;\n"
        "CREATE STREAM T (V P) WITH (KAFKA_TOPIC='t', PARTITIONS=1);\n"
        "CREATE STREAM U AS SELECT V->X AS X FROM T;\n"
    )
    assert place.start(text) == 3
    assert place.start(text) == 0
    other = text.replace("X INT", "X INT, Y INT")
    assert "FILE, line 1:1: the type `P` exists with another structure" in place.refused(other)
    assert place.start("DROP TYPE IF EXISTS P;" + other) == 2


def test_a_source_table_counts_as_a_query(place):
    place.world.topics.create(_topic("t"))
    text = "CREATE SOURCE TABLE T (K INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t');"
    assert place.start(text) == 1
    assert place.start(text) == 0


def test_the_stream_of_the_processing_log_may_stay(place):
    place.world.topics.create(_topic(LOG))
    place.world.run(stream_statement(LOG, "KSQL_PROCESSING_LOG"))
    assert place.start(S + COPY) == 2


def _topic(name):
    return Topic(name, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file does not contain any persistent queries"),
        (S, "the file does not contain any persistent queries"),
        (S + "SHOW STREAMS;", "FILE, line 2:1: SHOW STREAMS cannot stand in ksql.queries.file"),
        (S + "INSERT INTO S VALUES ('a', 1);", "line 2:1: INSERT INTO cannot stand in"),
        (S + "SELECT * FROM S EMIT CHANGES;", "SELECT * cannot stand in"),
        (S + "DEFINE a = 'b';", "DEFINE A cannot stand in"),
        (S + "DROP STREAM S;", "DROP without IF EXISTS cannot stand in"),
        (S + "TERMINATE ALL;", "TERMINATE ALL cannot stand in"),
        (
            S + "CREATE OR REPLACE QUERY Q AS INSERT INTO S SELECT * FROM S;",
            "line 2:1: CREATE OR REPLACE QUERY cannot",
        ),
        (S + COPY + S, "FILE, line 3:1: the file has more than one statement about `S`"),
        (S + COPY + "DROP STREAM IF EXISTS C;", "more than one statement about `C`"),
        (S + "CREATE STREAM C AS SELEC * FROM S;", "FILE, line 2:20: "),
        (S + "CREATE STREAM C AS\n  SELECT X FROM S;", "FILE, line 3:10: "),
        (S + "CREATE STREAM D AS SELECT * FROM NOWHERE;", "FILE, line 2:34: Failed to prepare"),
        (S + "SET 'nonsense' = '1';" + COPY, "Not recognizable as ksql"),
        (S + COPY + "select 'x", "FILE, line 3:8: "),
    ],
)
def test_a_bad_statement_ends_the_start(place, text, says):
    said = place.refused(text)
    assert says in said
    if ", line" in says:
        assert "\n  " in said
        assert "^" in said
    assert place.world.log.commands == []


def test_a_file_that_cannot_be_read(tmp_path):
    assert headless.queries_file(Settings()) is None
    named = headless.queries_file(Settings({"ksql.queries.file": "~/q.sql"}))
    assert named.is_absolute()
    with pytest.raises(headless.BadQueriesFile, match="No such file"):
        headless.read(tmp_path / "q.sql")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    with pytest.raises(headless.BadQueriesFile, match="not UTF-8"):
        headless.read(binary)
