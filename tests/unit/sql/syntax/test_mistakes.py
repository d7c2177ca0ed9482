from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import pytest

from ksql.core.errors import ParseError
from ksql.sql.syntax import explain_error
from tests.parsing import parse

ENTRIES = tomllib.loads(resources.files("grammar").joinpath("bad.toml").read_text("utf-8"))
EXAMPLES = [
    (example, entry["hint"], entry.get("context", 1))
    for entry in ENTRIES["mistake"]
    for example in entry.get("examples", ())
]


@pytest.mark.parametrize(("example", "hint", "context"), EXAMPLES)
def test_every_example_gets_its_hint(example, hint, context):
    with pytest.raises(ParseError) as caught:
        parse(example)
    assert caught.value.hint == hint


def test_no_place_has_two_hints():
    said: dict[Any, Any] = {}
    for example, hint, context in EXAMPLES:
        assert said.setdefault(explain_error.stop_of(example, context), hint) == hint


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT a FROM s EMIT CHANGES ORDER BY a;", "ORDER BY is for pull queries"),
        ("SELECT a FROM s LIMIT 1 ORDER BY a;", "before LIMIT and OFFSET"),
        ("SELECT a FROM s UNION SELECT a FROM t;", "no UNION"),
        ("SELECT a FROM s UNION ALL SELECT a FROM t;", "no UNION"),
        ("SELECT a FROM s x UNION SELECT a FROM t;", "no UNION"),
        ("CREATE STREM s (a INT);", "Did you mean 'STREAM'?"),
        ("SELECT * FORM s;", "Did you mean 'FROM'?"),
        ("SHOW TABELS;", "Did you mean 'TABLES'?"),
        ("SHOW TABLE;", "Did you mean 'TABLES'?"),
        ("LIST TOPIC;", "Did you mean 'TOPICS'?"),
        ("SELECT * FROM s EMIT CHANGS;", "Did you mean 'CHANGES'?"),
        ("SELECT * FROM s WERE a = 1;", "Did you mean 'WHERE' instead of 'WERE'?"),
        ("SELECT * FROM s GRUOP BY a;", "Did you mean 'GROUP' instead of 'GRUOP'?"),
        ("ALTER STREAM s ADD COLUM a INT;", "Did you mean 'COLUMN' instead of 'COLUM'?"),
        (
            "SELECT COUNT(*) FROM s WINDOW TUMBLIN (SIZE 1 HOUR) GROUP BY a;",
            "Did you mean 'TUMBLING' instead of 'TUMBLIN'?",
        ),
        ("TRUNCATE TABLE t;", "no TRUNCATE"),
        ("DELETE FROM x;", "one row of a table"),
        ("DELETE x;", "one row of a table"),
        ("UPDATE t SET a = 1;", "no UPDATE"),
        ("SELECT a;", "SELECT .. FROM name"),
        ("SELECT sum(a) OVER (PARTITION BY b) FROM s;", "no window functions"),
        ("SELECT b FROM s x OFFSET 1 LIMIT 2;", "LIMIT comes before OFFSET"),
        ("SELECT b FROM s LIMIT 20, 10;", "LIMIT 10 OFFSET 20"),
        ("CREATE TABLE t AS SELECT DISTINCT a FROM s;", "no SELECT DISTINCT"),
        ("CREATE STREAM t AS SELECT * FROM x, y WHERE x.a = y.a;", "join them"),
        ("CREATE STREAM s (a INT) WITH (kafka_topic = topic_1);", "is a literal"),
    ],
)
def test_like_mistakes_get_the_hint(text, part):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert part in caught.value.hint


@pytest.mark.parametrize("text", ["DROP STREAM a, b;", "DESCRIBE a, b;", "SELECT a b c FROM s;"])
def test_other_mistakes_get_none(text):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.hint == ""


def test_an_example_must_be_broken():
    with pytest.raises(ValueError, match="no mistake"):
        explain_error.stop_of("SHOW TABLES;", 1)
