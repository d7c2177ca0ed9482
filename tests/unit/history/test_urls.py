"""The ledger's URL with the password of a file."""

from __future__ import annotations

import pytest

from ksql.core.config import Settings
from ksql.core.secrets import LEDGER_PASSWORD
from ksql.history.database import BadLedgerUrl, configured_url, default_url, parse_url

URL = "ksql.ledger.url"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "password"
    path.write_text("p@ss/w:rd%40 #?'\"\\\n", encoding="utf-8")
    return str(path)


def test_without_a_file_the_url_is_as_given(tmp_path):
    assert configured_url(Settings(), tmp_path) == default_url(tmp_path)
    given = "postgresql://u:p@h:5432/d"
    assert configured_url(Settings({URL: given}), tmp_path) == given


def test_the_password_of_the_file_may_have_any_characters(tmp_path, file):
    given = {URL: "postgresql://ksql@postgres:5432/ksql", LEDGER_PASSWORD: file}
    url = parse_url(configured_url(Settings(given), tmp_path))
    assert url.password == "p@ss/w:rd%40 #?'\"\\"
    assert (url.username, url.host, url.port, url.database) == (
        *("ksql", "postgres", 5432, "ksql"),
    )


@pytest.mark.parametrize(
    ("url", "why"), [("", "takes no password"), ("postgresql://u:p@h/d", "names another")]
)
def test_a_password_that_nobody_takes_is_refused(tmp_path, file, url, why):
    with pytest.raises(BadLedgerUrl, match=why):
        configured_url(Settings({URL: url, LEDGER_PASSWORD: file}), tmp_path)
