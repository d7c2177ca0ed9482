"""Which statements need which rights, and what a rule covers."""

from __future__ import annotations

from typing import get_args

import pytest

from ksql.control.access.needs import Need, needs
from ksql.control.access.requester import NotPermitted, Requester, acting, sees_command
from ksql.control.access.rights import ALL, NONE, Grants, Pattern, Right, Rule
from ksql.core.config import Settings
from ksql.sql.catalog import Catalog
from ksql.sql.syntax import ast
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM OUT AS SELECT * FROM S;
INSERT INTO OUT SELECT * FROM S;
CREATE SOURCE TABLE R (K STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
"""


@pytest.fixture(scope="module")
def world() -> World:
    return World(SETUP)


def shown(need: Need) -> str:
    kind = "" if need.kind == "source" else need.kind + ":"
    return f"{need.right or 'see'} {kind}{need.name}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM S EMIT CHANGES;", "read S"),
        ("SELECT * FROM T WHERE K = 'a';", "read T"),
        ("SELECT * FROM A JOIN B ON A.K = B.K JOIN C ON A.K = C.K EMIT CHANGES;",
         "read A, read B, read C"),
        ("PRINT orders;", "read topic:orders"),
        ("PRINT '_confluent-metadata-auth';", "read topic:_confluent-metadata-auth"),
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='secret', VALUE_FORMAT='JSON');",
         "define X, define topic:secret"),
        ("CREATE STREAM X (A INT) WITH (kafka_topic='X', VALUE_FORMAT='JSON');", "define X"),
        ("CREATE OR REPLACE TABLE X (A INT PRIMARY KEY) WITH (KAFKA_TOPIC=${t});",
         "define X, define topic:*"),
        ("CREATE STREAM X AS SELECT * FROM SECRET;", "define X, read SECRET"),
        ("CREATE OR REPLACE TABLE X WITH (KAFKA_TOPIC='y') AS SELECT K, COUNT(*) FROM S "
         "GROUP BY K EMIT CHANGES;", "define X, define topic:y, read S"),
        ("INSERT INTO X SELECT * FROM SECRET;", "write X, define X, read SECRET"),
        ("CREATE OR REPLACE QUERY CSAS_OUT_1 AS INSERT INTO X SELECT * FROM S;",
         "write X, define X, read S, define OUT"),
        ("INSERT INTO X (A) VALUES (1);", "write X"),
        ("DELETE FROM X WHERE A = 1;", "write X"),
        ("ALTER STREAM X ADD COLUMN B INT;", "define X"),
        ("DROP STREAM S;", "define S"),
        ("DROP STREAM S DELETE TOPIC;", "define S, define topic:s"),
        ("DROP STREAM OUT DELETE TOPIC;", "define OUT"),
        ("DROP STREAM IF EXISTS NONE DELETE TOPIC;", "define NONE"),
        ("CREATE TYPE P AS STRUCT<X INT>;", "define P"),
        ("DROP TYPE P;", "define P"),
        ("CREATE SOURCE CONNECTOR C WITH ('a'='b');", "define connector:C"),
        ("DROP CONNECTOR C;", "define connector:C"),
        ("PAUSE CSAS_OUT_1;", "operate OUT"),
        ("RESUME csas_out_1;", "operate OUT"),
        ("TERMINATE INSERTQUERY_2;", "operate OUT"),
        ("TERMINATE transient_S_1;", "operate *"),
        ("TERMINATE ALL;", "operate *"),
        ("PAUSE ALL;", "operate *"),
        ("ABORT UPGRADE OF OUT;", "define OUT"),
        ("ROLLBACK UPGRADE OF QUERY INSERTQUERY_2;", "define OUT"),
        ("ROLLBACK UPGRADE OF QUERY NONE;", "define *"),
        ("EXPLAIN SELECT * FROM SECRET EMIT CHANGES;", "read SECRET"),
        ("EXPLAIN CREATE STREAM X AS SELECT * FROM SECRET;", "define X, read SECRET"),
        ("EXPLAIN CSAS_OUT_1;", ""),
        ("EXPLAIN transient_S_1;", ""),
        ("DESCRIBE S EXTENDED;", "see S"),
        ("DESCRIBE CONNECTOR C;", "see connector:C"),
        ("SHOW CONNECTORS;", ""),
        ("SHOW ALL TOPICS EXTENDED;", ""),
        ("SHOW PROPERTIES;", ""),
        ("DESCRIBE TABLES EXTENDED;", ""),
        ("DESCRIBE FUNCTION ABS;", ""),
        ("DESCRIBE UPGRADE 'x';", ""),
        ("ASSERT TOPIC orders;", "see topic:orders"),
        ("ASSERT SCHEMA SUBJECT 'orders-value';", "see topic:orders"),
        ("ASSERT SCHEMA ID 3;", "see topic:*"),
        ("SET 'auto.offset.reset'='earliest';", ""),
        ("DEFINE a = 'b';", ""),
        ("ALTER SYSTEM 'a'='b';", "admin *"),
    ],
)  # fmt: skip
def test_a_statement_needs_rights(world: World, text: str, expected: str) -> None:
    needed = needs(world.parse(text), world.catalog)
    assert ", ".join(shown(need) for need in needed if not need.own) == expected


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("CREATE STREAM X AS SELECT * FROM S;", ["X"]),
        ("CREATE STREAM `x` (A INT) WITH (VALUE_FORMAT='JSON');", ["x"]),
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='X', VALUE_FORMAT='JSON');", ["X"]),
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON');", []),
        ("DROP STREAM OUT DELETE TOPIC;", ["OUT"]),
        ("DROP STREAM OUT;", []),
    ],
)
def test_the_topic_of_a_name_is_its_own(world: World, text: str, topics: list[str]) -> None:
    assert [n.name for n in needs(world.parse(text), world.catalog) if n.own] == topics


def test_a_right_on_all_names_is_none_on_their_topics(world: World) -> None:
    """Else who may define any name would have the data of each topic, by a stream of its name."""
    everything = Pattern("source", "", prefix=True)
    statement = world.parse("CREATE STREAM `private` (A INT) WITH (VALUE_FORMAT='JSON');")

    def refusal(*patterns: Pattern) -> str:
        grants = Grants((Rule(Right.DEFINE, patterns),))
        refused = Requester("ada", grants).lacks(needs(statement, world.catalog))
        return "" if refused is None else refused.message

    assert refusal(everything) == "the user ada may not define the topic private"
    assert refusal(everything, Pattern("topic", "", prefix=True)) == ""
    assert refusal(everything, Pattern("topic", "private")) == ""
    assert refusal(Pattern("source", "priv", prefix=True)) == ""
    assert refusal(Pattern("source", "private")) == ""
    assert refusal(everything, Pattern("source", "p")) != ""


@pytest.mark.parametrize(
    "statement",
    [
        ast.RunScript("/etc/passwd"),
        ast.AssertValues("S", (), ()),
        ast.AssertNullValues("S", (), ()),
    ],
)
def test_what_the_server_does_not_run_is_for_administrators(statement: ast.Statement) -> None:
    assert [shown(need) for need in needs(statement, Catalog())] == ["admin *"]


def test_another_prefix_of_topics_is_a_stated_topic(world: World) -> None:
    settings = Settings({}).with_overrides({"ksql.output.topic.name.prefix": "secret_"})
    statement = world.parse("CREATE STREAM X AS SELECT * FROM S;")
    names = [shown(need) for need in needs(statement, world.catalog, settings)]
    assert names == ["define X", "define topic:secret_X", "read S"]


@pytest.mark.parametrize("query", ["INSERTQUERY_2", "NONE", "transient_S_1"])
@pytest.mark.parametrize(
    "text",
    ["TERMINATE {};", "PAUSE {};", "ROLLBACK UPGRADE OF QUERY {};"],
)
def test_a_refusal_does_not_say_what_a_query_writes(world: World, text: str, query: str) -> None:
    """Nor whether there is one."""
    refused = Requester("ada", READER).lacks(needs(world.parse(text.format(query)), world.catalog))
    assert refused is not None
    assert refused.message.endswith("that query")


def test_a_query_without_a_result_is_for_those_who_operate_everything(world: World) -> None:
    [query] = [query for query in world.catalog.queries.values() if not query.sink]
    statement = world.parse(f"TERMINATE {query.id};")
    assert [shown(need) for need in needs(statement, world.catalog)] == ["operate *"]


def test_every_kind_of_statement_has_needs() -> None:
    """Check likewise to mypy that no kind falls through."""
    for kind in get_args(ast.Statement):
        fields = {name: _Anything() for name in kind.__slots__}
        statement = object.__new__(kind)
        for name, value in fields.items():
            object.__setattr__(statement, name, value)
        if kind in (ast.Query, ast.CreateAsSelect, ast.InsertInto, ast.ReplaceQuery, ast.Explain):
            continue  # the texts above have them
        assert isinstance(needs(statement, Catalog()), tuple)


class _Anything(str):
    """A value of any field."""


READER = Grants((Rule(Right.READ, (Pattern("source", "PUBLIC_", prefix=True),)),))


@pytest.mark.parametrize(
    ("rule", "right", "kind", "name", "held"),
    [
        (Pattern("source", "A"), "read", "source", "A", True),
        (Pattern("source", "A"), "read", "source", "AB", False),
        (Pattern("source", "A", prefix=True), "read", "source", "AB", True),
        (Pattern("source", "A", prefix=True), "read", "source", "a", False),
        (Pattern("source", "A", prefix=True), "read", "source", "*", False),
        (Pattern("source", "", prefix=True), "read", "source", "*", True),
        (Pattern("source", "", prefix=True), "read", "topic", "A", False),
        (Pattern("topic", "", prefix=True), "read", "topic", "A", True),
        (Pattern("source", "", prefix=True), "write", "source", "A", False),
        (Pattern("source", "*"), "read", "source", "*", False),
    ],
)
def test_what_a_pattern_covers(rule, right, kind, name, held) -> None:
    assert Grants((Rule(Right.READ, (rule,)),)).may(Right(right), kind, name) is held


def test_who_administers_may_do_everything() -> None:
    assert all(ALL.may(right, "topic", "x") for right in Right)
    assert not any(NONE.may(right, "topic", "x") for right in Right)


def test_without_any_right_not_even_a_list_is_shown(world: World) -> None:
    with pytest.raises(NotPermitted, match="a request without a user may not do anything here"):
        Requester(grants=NONE).admit(
            world.parse("SHOW STREAMS;"), "", world.catalog, world.settings
        )


def test_a_refusal_says_what_is_missing(world: World) -> None:
    reader = Requester("ada", READER)
    with pytest.raises(NotPermitted) as caught:
        reader.admit(world.parse("PRINT x;"), "", world.catalog, world.settings)
    assert caught.value.code == 40300
    assert caught.value.message == "the user ada may not read the topic x"


def test_a_statement_is_noted_by_user_address_path_and_digest(world: World, caplog) -> None:
    reader = Requester("ada", READER, "192.0.2.1", "/ksql", audited=True)
    text = "SELECT * FROM PUBLIC_A WHERE K = 'my secret';"
    with caplog.at_level("INFO", "ksql.audit"):
        reader.admit(world.parse(text), text, world.catalog, world.settings)
        with pytest.raises(NotPermitted):
            reader.admit_row("B", Right.WRITE, "inserts into B")
    shown_ = [
        (r.message, r.user, r.address, r.path, len(r.digest), r.outcome) for r in caplog.records
    ]
    assert shown_ == [
        ("statement", "ada", "192.0.2.1", "/ksql", 32, "admitted"),
        ("statement", "ada", "192.0.2.1", "/ksql", 32, "refused"),
    ]
    assert not any("secret" in str(vars(record)) for record in caplog.records)


def test_rights_of_a_request_under_way_are_those_of_the_moment() -> None:
    held = [READER]
    needed = (Need(Right.READ, "source", "PUBLIC_A"),)
    requester = Requester("ada", READER, renewed=lambda: held[0])
    requester.still(needed)
    held[0] = NONE
    with pytest.raises(NotPermitted):
        requester.still(needed)
    requester.demand(needed, "")  # that one is about the request as it came
    Requester("ada", NONE).still(needed)  # nobody can say how they are now
    held[0] = ALL
    requester.still(needed)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("CREATE STREAM X AS SELECT * FROM PUBLIC_A;", True),
        ("CREATE STREAM X AS SELECT * FROM PUBLIC_A JOIN SECRET WITHIN 1 DAY ON A = B;", False),
        ("INSERT INTO X SELECT * FROM SECRET;", False),
        ("CREATE STREAM X (A INT) WITH (KAFKA_TOPIC='x', VALUE_FORMAT='JSON');", True),
        ("CREATE STREAM X AS SELECT ...", False),
    ],
)
def test_a_stored_statement_is_shown_to_who_sees_its_sources(text: str, seen: bool) -> None:
    assert Requester("ada", READER).sees_text(text, "X", Catalog()) is seen
    definer = Grants((Rule(Right.DEFINE, (Pattern("source", "X"),)),))
    assert Requester("ada", definer).sees_text(text, "X", Catalog())


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("stream/`PUBLIC_A`/create", True),
        ("table/PUBLIC_A/drop", True),
        ("stream/`SECRET`/create", False),
        ("terminate/CSAS_PUBLIC_A_1/execute", False),
        ("cluster/TerminateCluster/terminate", False),
        ("topic/x/create", False),
    ],
)
def test_a_status_is_seen_by_those_who_see_its_object(command: str, seen: bool) -> None:
    assert sees_command(command)
    with acting(Requester("ada", READER)):
        assert sees_command(command) is seen
