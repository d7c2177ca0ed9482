"""Secrets are hidden where a value is shown."""

from __future__ import annotations

import pytest

from ksql.core.config import Settings
from ksql.core.properties.model import Property
from ksql.core.secrets import hidden_if_secret, is_secret, without_secrets
from ksql.formats.schema_registry import RegistryUnreachable
from ksql.spark.session.jvm import options
from tests.unit.world import World

CONNECTORS = {
    "snowflake.private.key": True,
    "aws.access.key.id": True,
    "azblob.account.key": True,
    "datadog.apiKey": True,
    "key.converter": False,
    "ssl.key.location": False,
    "transforms.private.keys.count": False,
}
LEDGER, REGISTRY = "ksql.ledger.url", "ksql.schema.registry.url"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://there:8081", "http://there:8081"),
        ("http://ada:pass@there:8081/x", "http://***@there:8081/x"),
        ("http://ada@there", "http://***@there"),
        ("https://a:p@1,https://b:p@2", "https://***@1,https://***@2"),
        ("postgresql://ada:p@s/s@there/db", "postgresql://***@there/db"),
        ("postgresql://there/db?sslpassword=p&x=1", "postgresql://there/db?sslpassword=***&x=1"),
        ("mail ada@there.example", "mail ada@there.example"),
        ("failed at 'http://a:b@c': no", "failed at 'http://***@c': no"),
        ("jdbc:oracle:thin:scott/tiger@//db:1521/x", "jdbc:oracle:thin:***@//db:1521/x"),
        ("jdbc:oracle:thin:@//db:1521/x", "jdbc:oracle:thin:@//db:1521/x"),
        ("http://there?api_key=k&x=1", "http://there?api_key=***&x=1"),
    ],
)
def test_urls_are_shown_without_their_secrets(text, shown):
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "://" + "?" * 30_000 + "password" * 5_000,
        "://" * 30_000,
        "://" + "?password" * 10_000,
        "://" + "a@" * 30_000 + " ",
        "://" + "&token=" * 10_000,
        "jdbc:oracle:a:" * 30_000,
    ],
)
def test_no_text_takes_long(text):
    """A stranger's name of 16 KB would have stopped the server for minutes as it was logged."""
    assert "token=&" not in without_secrets(text)


@pytest.mark.parametrize(("name", "secret"), CONNECTORS.items())
def test_names_of_connectors_properties(name, secret):
    assert is_secret(name) is secret
    assert (hidden_if_secret(name, "m4rk3r") == "***") is secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("://?a=b?password=x?y=z&c", "://?a=b?password=***&c"),
        ("://a?token?secret=1,b", "://a?token?secret=***,b"),
        ("://a://b@c@d/e", "://***@d/e"),
        ("x@y://z", "x@y://z"),
        ("://a;Password=;x=1", "://a;Password=***;x=1"),
    ],
)
def test_odd_urls(text, shown):
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("spark.authenticate.secret", True),
        ("ssl.key.password", True),
        ("sasl.jaas.config", True),
        ("ksql.schema.registry.basic.auth.user.info", True),
        ("spark.hadoop.fs.s3a.session.token", True),
        ("spark.sql.shuffle.partitions", False),
        ("ksql.ledger.url", False),
    ],
)
def test_names_of_secrets(name, secret):
    assert is_secret(name) == secret


def test_no_user_is_shown_the_passwords_of_the_service():
    world = World()
    url = "{}://ada:s3cret@there/x"
    world.settings = Settings({LEDGER: url.format("postgresql"), REGISTRY: url.format("http")})
    [answer] = world.run("SHOW PROPERTIES;")
    values = {each.name: each.value for each in answer.properties}
    assert values[LEDGER] == "postgresql://***@there/x"
    assert values[REGISTRY] == "http://***@there/x"
    assert "s3cret" not in str(answer)


def test_an_error_does_not_repeat_them():
    url = "http://ada:s3cret@there"
    assert "s3cret" not in RegistryUnreachable(url, f"cannot connect to {url}").text()
    named = Property(name="x.password", kind="int", default="1", doc="")
    with pytest.raises(Exception, match="expected a whole number") as caught:
        named.check("s3cret")
    assert "s3cret" not in str(caught.value)


def test_the_command_of_the_jvm_names_none():
    shown = options({"spark.authenticate.secret": "s3cret", "spark.master": "local"})
    assert shown == ["--conf", "spark.master=local"]
