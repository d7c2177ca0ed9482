"""The texts that the terminal keeps have no passwords."""

from __future__ import annotations

import pytest

from ksql.core import secrets
from ksql.core.secrets import is_secret
from server.cli import kept
from server.cli.kept import without_secrets
from tests.unit.core.test_secrets import CONNECTORS
from tests.unit.server.test_secrets_swept import STATED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SET 'a.password' = 'it''s';", "SET 'a.password' = '***';"),
        ("DEFINE db_password='x';", "DEFINE db_password='***';"),
        ("WITH (\"a.token\"='x', b='y');", "WITH (\"a.token\"='***', b='y');"),
        ("SET 'a.secret'='open", "SET 'a.secret'='***"),
        ("SET 'u'='http://ada:pw@there/x';", "SET 'u'='http://***@there/x';"),
        (
            "SET 'u'='jdbc:mysql://db/x?user=a&password=pw';",
            "SET 'u'='jdbc:mysql://db/x?user=a&password=***';",
        ),
        (
            "SET 'u'='jdbc:sqlserver://db;password=pw;a=b';",
            "SET 'u'='jdbc:sqlserver://db;password=***;a=b';",
        ),
        ("SET 'u'='http://there?api_key=k';", "SET 'u'='http://there?api_key=***';"),
        ("SET 'u'='jdbc:oracle:thin:ada/pw@db:1';", "SET 'u'='jdbc:oracle:thin:***@db:1';"),
        ("SET 'u'='host=db password=pw x=1';", "SET 'u'='host=db password=*** x=1';"),
        ("SET 'u'='http://there?a=b;c&d';", "SET 'u'='http://there?a=b;c&d';"),
        ("SELECT * FROM s WHERE password = name;", "SELECT * FROM s WHERE password = name;"),
        ("SELECT password FROM s WHERE name = 'x';", "SELECT password FROM s WHERE name = 'x';"),
        ("SELECT 'a' || 'mail@there' FROM s;", "SELECT 'a' || 'mail@there' FROM s;"),
    ],
)
def test_what_is_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize("pattern", ["_NAMES", "_URL", "_ORACLE", "_ASSIGNED"])
def test_its_patterns_are_those_of_the_service(pattern: str) -> None:
    """It cannot import them: a client knows the wire only."""
    assert getattr(kept, pattern) == getattr(secrets, pattern)


@pytest.mark.parametrize("name", [*STATED, *CONNECTORS])
def test_its_names_are_those_of_the_service(name: str) -> None:
    is_hidden = "m4rk3r" not in without_secrets(f"SET '{name}'='m4rk3r';")
    assert is_hidden is is_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "'" * 20_000,
        "a." * 50_000,
        "://" * 30_000,
        "://" + "a/" * 50_000,
        "://" + "?password" * 10_000,
        "jdbc:oracle:a:" * 30_000,
        "x='" + "password" * 10_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    assert without_secrets(text) == text
