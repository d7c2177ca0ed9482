from __future__ import annotations

import base64

import pytest

from ksql.base.secretfiles import (
    LEDGER_PASSWORD,
    SPARK_SECRET,
    SPARK_SECRET_FILE,
    BadSecretFile,
    password,
    spark_conf,
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "secret"


@pytest.mark.parametrize("text", ["p@ss/w:rd", " spaces count ", "ü%23\\'\""])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_password_is_the_line_as_it_stands(file, text, end):
    file.write_text(text + end, encoding="utf-8")
    assert password(LEDGER_PASSWORD, str(file)) == text


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines\n", b"\xff"])
def test_what_is_no_line_is_refused_without_being_shown(file, content):
    file.write_bytes(content)
    with pytest.raises(BadSecretFile) as caught:
        password(LEDGER_PASSWORD, str(file))
    assert str(file) in caught.value.text()
    assert "two" not in caught.value.text()


def test_a_file_that_is_missing_is_refused_by_its_property(file):
    for read in (
        lambda: password(LEDGER_PASSWORD, str(file)),
        lambda: spark_conf({SPARK_SECRET_FILE: str(file)}),
    ):
        with pytest.raises(BadSecretFile, match=r"\.file: the file .* cannot be read: No such file"):
            read()


def test_spark_gets_the_secret_that_its_daemons_read_from_the_file(file):
    """They take the Base64 of all its bytes: see tests/kafka/test_compose.py."""
    file.write_bytes(b"all bytes\n")
    found = spark_conf({SPARK_SECRET_FILE: str(file), "spark.authenticate": "true"})
    secret = base64.b64encode(b"all bytes\n").decode()
    assert found == {"spark.authenticate": "true", SPARK_SECRET: secret}


def test_a_secret_by_value_stays(file):
    given = {SPARK_SECRET_FILE: str(file), SPARK_SECRET: "stated"}
    assert spark_conf(given) == given
    assert spark_conf({"spark.cores.max": "1"}) == {"spark.cores.max": "1"}


def test_an_empty_secret_of_spark_is_refused(file):
    file.touch()
    with pytest.raises(BadSecretFile, match="is empty"):
        spark_conf({SPARK_SECRET_FILE: str(file)})
