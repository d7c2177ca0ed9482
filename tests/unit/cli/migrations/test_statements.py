"""The statements of a file: cut, supported, allowed, and the session that SET and DEFINE make."""

from __future__ import annotations

import pytest

from server.cli.migrations.failure import MigrationFailed
from server.cli.migrations.statements import (
    DEFAULT_CLASSES,
    Allowed,
    FileSession,
    allowed_by,
    batches,
    check_supported,
    mode_of,
    statements_of,
)
from server.cli.split import Statement


@pytest.mark.parametrize(
    ("head", "allowed"),
    [
        ("", Allowed()),
        ("-- a note\n\n", Allowed()),
        ("-- allow: rebuild\n", Allowed(modes=frozenset({"rebuild"}))),
        (
            "-- Allow:  Data   Selection\n--allow:backfill",
            Allowed(frozenset({"data selection"}), frozenset({"backfill"})),
        ),
        ("-- allow: topology, rebuild\n", Allowed(frozenset({"topology"}), frozenset({"rebuild"}))),
        ("SET 'a'='b';\n-- allow: rebuild\n", Allowed()),
        ("SET 'a'='b'; -- allow: rebuild\n", Allowed()),
        ("/* who\nwhen */ -- allow: topology\n", Allowed(frozenset({"topology"}))),
        ("/* one */ /* two */\n\n-- allow: topology\n", Allowed(frozenset({"topology"}))),
        ("/* -- allow: topology\n-- allow: rebuild */\n", Allowed()),
    ],
)
def test_the_head_says_what_is_allowed(head, allowed):
    assert allowed_by(head + "\nCREATE STREAM s (a INT);") == allowed


def test_an_unknown_word_is_refused():
    with pytest.raises(MigrationFailed, match="does not know 'rebuilding', only configuration"):
        allowed_by("-- allow: rebuilding")


def test_what_a_replacement_lacks():
    allowed = Allowed(frozenset({"data selection"}))
    assert allowed.lacks("in place", ["transparent"]) == ()
    assert allowed.lacks("in place", ["data selection", "configuration"]) == ("configuration",)
    assert allowed.lacks("rebuild", ["data selection"]) == ("rebuild",)
    assert Allowed(modes=frozenset({"rebuild"})).lacks("rebuild", ["topology"]) == ()
    assert str(Allowed(frozenset({"topology"}), frozenset({"rebuild"}))) == "topology, rebuild"
    assert Allowed().classes == DEFAULT_CLASSES


@pytest.mark.parametrize(
    ("text", "report", "mode"),
    [
        ("CREATE OR REPLACE STREAM s AS SELECT * FROM t;", None, "in place"),
        ("CREATE .. WITH (replace_mode = 'REBUILD') AS ..;", None, "rebuild"),
        ("CREATE .. WITH (REPLACE_MODE='auto') AS ..;", None, "rebuild"),
        ("rollback upgrade of s;", None, "rebuild"),
        ("CREATE .. WITH (REPLACE_MODE='auto') AS ..;", {"mode": "in_place"}, "in place"),
        ("CREATE .. WITH (REPLACE_MODE='backfill') AS ..;", {}, "backfill"),
    ],
)
def test_the_mode_of_a_replacement(text, report, mode):
    assert mode_of(text, report) == mode


def test_comments_are_no_part_and_the_last_semicolon_may_lack():
    cut = statements_of("-- one; two\nSET 'a;'='b'; /* ; */\n  DROP STREAM s")
    assert [(one.text, one.line, one.column) for one in cut] == [
        ("SET 'a;'='b';", 2, 1),
        ("DROP STREAM s;", 3, 3),
    ]
    with pytest.raises(MigrationFailed, match="the quote ' is open"):
        statements_of("SET 'a=1;")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select * from s;", "SELECT"),
        ("PRINT t;", "PRINT"),
        ("SHOW STREAMS;", "SHOW"),
        ("LIST TOPICS;", "LIST"),
        ("DESCRIBE s;", "DESCRIBE"),
        ("EXPLAIN q;", "EXPLAIN"),
        ("run  script 'x';", "RUN SCRIPT"),
    ],
)
def test_statements_that_change_nothing_are_not_supported(text, kind):
    with pytest.raises(MigrationFailed, match=f"'{kind}' statements are not supported."):
        check_supported(Statement(text))


def test_what_may_come_from_outside_ends_a_batch():
    texts = [
        "CREATE STREAM a (x INT);",
        "ASSERT TOPIC t;",
        "CREATE STREAM b (x INT);",
        "DROP CONNECTOR IF EXISTS c;",
        "CREATE SOURCE CONNECTOR c WITH ('a'='b');",
    ]
    cut = [[one.text for one in batch] for batch in batches(map(Statement, texts))]
    assert cut == [texts[:2], texts[2:4], texts[4:]]


def test_a_files_session():
    session = FileSession({"who": "world", "kept": "1"})
    for text in (
        "SET 'a'='it''s ${who}';",
        "set 'ksql.streams.b' = '${unknown}' ;",
        "SET 'c'='1';",
        "UNSET 'c';",
        "DEFINE more='${who}!';",
        "DEFINE kept='2';",
        "UNDEFINE who;",
    ):
        assert session.take(text)
    assert not session.take("DROP STREAM s;")
    assert session.properties == {"a": "it's world", "ksql.streams.b": "${unknown}"}
    assert session.variables == {"more": "world!", "kept": "2"}
    assert session.undone({"who": "world", "kept": "1"}) == [
        "UNSET 'a';",
        "UNSET 'b';",
        "UNDEFINE more;",
        "DEFINE kept = '1';",
        "DEFINE who = 'world';",
    ]
