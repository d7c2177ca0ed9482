from __future__ import annotations

import pytest

from ksql.core.secrets import LEDGER_PASSWORD, BadSecretFile, password


@pytest.fixture
def file(tmp_path):
    return tmp_path / "secret"


@pytest.mark.parametrize("text", ["p@ss/w:rd", " spaces count ", "ü%23\\'\""])
@pytest.mark.parametrize("end", ["", "\n"])
def test_password_is_the_line_unchanged(file, text, end):
    file.write_text(text + end, encoding="utf-8")
    assert password(LEDGER_PASSWORD, str(file)) == text


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines\n", b"\xff"])
def test_malformed_secret_file_is_refused_without_its_content(file, content):
    file.write_bytes(content)
    with pytest.raises(BadSecretFile) as caught:
        password(LEDGER_PASSWORD, str(file))
    assert str(file) in caught.value.text()
    assert "two" not in caught.value.text()


def test_a_file_that_is_missing_is_refused_by_its_property(file):
    with pytest.raises(BadSecretFile, match=r"\.file: the file .* cannot be read: No such file"):
        password(LEDGER_PASSWORD, str(file))
