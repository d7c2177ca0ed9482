"""What a replacement knows of its result's topic: the partitions it was made with, its writers."""

from __future__ import annotations

import pytest

from ksql.sql.catalog.model import Topic
from tests.unit.world import World

SOURCE = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
WINDOWED = "TABLE U AS SELECT K, COUNT(*) N FROM S WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY K{};"


@pytest.mark.parametrize("having", ["", " HAVING COUNT(*) > 1"])
@pytest.mark.parametrize("between", ["", "TERMINATE CTAS_U_1;"])
def test_a_result_is_of_the_partitions_that_it_was_made_with(having, between):
    """Where rows lie follows from that number, however many the topic has got since."""
    world = World(SOURCE, f"CREATE {WINDOWED.format('')}")
    world.topics.known["U"] = Topic("U", 4)
    world.run(between or SOURCE.replace("STREAM S", "STREAM Q"))
    world.run(f"CREATE OR REPLACE {WINDOWED.format(having)}")
    assert world.catalog.sources["U"].partitions == 1


def test_a_table_that_is_dropped_and_recreated_is_of_those_that_there_are():
    world = World(SOURCE, f"CREATE {WINDOWED.format('')}")
    world.topics.known["U"] = Topic("U", 4)
    world.run(f"DROP TABLE U; CREATE {WINDOWED.format('')}")
    assert world.catalog.sources["U"].partitions == 4


# --- who writes the topic

OVER_U = (
    "CREATE STREAM V (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='U', PARTITIONS=1);"
    "INSERT INTO V SELECT K, A FROM S;"
)


@pytest.mark.parametrize(
    ("others", "cause"),
    [
        ("INSERT INTO U SELECT K, A FROM S;", "there are multiple queries writing into it"),
        (OVER_U, "there are multiple queries writing into it"),
        (
            "CREATE STREAM V WITH (KAFKA_TOPIC='U') AS SELECT K, A FROM S;",
            "there are multiple queries writing into it",
        ),
        (f"TERMINATE CSAS_U_1; {OVER_U}", "an INSERT query writes into it"),
        (
            "TERMINATE CSAS_U_1; CREATE STREAM V WITH (KAFKA_TOPIC='U') AS SELECT K, A FROM S;",
            "that of V writes into it",
        ),
    ],
)
def test_a_topic_that_several_queries_write_is_refused(others, cause):
    world = World(SOURCE, "CREATE STREAM U AS SELECT K, A FROM S;", others)
    error = world.refuse("CREATE OR REPLACE STREAM U AS SELECT K, A FROM S WHERE A > 1;")
    assert f"REPLACE for sink U is not supported because {cause}" in error.message
    writer = next(query.id for query in world.catalog.queries.values() if query.id != "CSAS_U_1")
    assert writer in error.message
    assert error.hint.startswith("Terminate")


def test_a_source_whose_topic_only_another_one_names_may_be_replaced():
    world = World(
        SOURCE,
        "CREATE STREAM U AS SELECT K, A FROM S;"
        "CREATE STREAM V (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='U', PARTITIONS=1);"
        "CREATE STREAM W AS SELECT * FROM V;",
    )
    world.run("CREATE OR REPLACE STREAM U AS SELECT K, A FROM S WHERE A > 1;")


# --- a query that was terminated


@pytest.mark.parametrize(
    "text",
    ["TABLE U AS SELECT K, COUNT(*) N FROM S GROUP BY K;", "STREAM U AS SELECT K, A FROM S;"],
)
def test_replacement_without_a_query_restarts(text):
    world = World(SOURCE)
    [created] = world.run(f"CREATE {text}")
    [replaced] = world.run(f"CREATE OR REPLACE {text}")
    first = world.query("U").id
    assert created.command_status.message == f"Created query with ID {first}"
    assert replaced.command_status.message == f"Created query with ID {first}"
    world.run(f"TERMINATE {first};")
    [second] = world.run(f"CREATE OR REPLACE {text}")
    assert second.command_status.message == (
        f"Created query with ID {world.query('U').id}\nIt starts over: {first} was terminated, and "
        "its state with it. What it has written stays in topic U."
    )
