from __future__ import annotations

import re
from pathlib import Path

import pytest

from ksql.core.error_table import JARS_MISSING
from ksql.core.process import jars as module
from ksql.core.process.jars import (
    Jar,
    cache_dir,
    jar_dir,
    jar_files,
    locked,
    present,
    sha256,
)


def test_every_row_of_the_lock_is_whole():
    rows = locked()
    assert {row.which for row in rows} == {"broker", "spark", "connect", "connect-file"}
    assert len({row.file_name for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+", row.coordinate)
        assert re.fullmatch(r"[0-9a-f]{64}", row.sha256)
        assert row.size_bytes > 0


def test_the_versions_that_work_together():
    names: dict[str, set[str]] = {row.which: set() for row in locked()}
    for row in locked():
        names[row.which].add(row.file_name)
    assert {"kafka_2.13-4.1.1.jar", "kafka-clients-4.1.1.jar"} <= names["broker"]
    assert names["spark"] == {
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    }


def test_the_cache_is_where_the_user_says():
    home = Path.home() / ".cache" / "ksql-spark"
    assert cache_dir({"KSQL_CACHE_DIR": "/own", "XDG_CACHE_HOME": "/xdg"}) == Path("/own")
    assert cache_dir({"XDG_CACHE_HOME": "/xdg"}) == Path("/xdg/ksql-spark")
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == home
    assert cache_dir({}) == home


def test_only_a_whole_file_is_present(tmp_path):
    jar = Jar("g:a:1", "0" * 64, 3, "spark")
    assert not present(jar, tmp_path)
    (tmp_path / "a-1.jar").write_bytes(b"ab")
    assert not present(jar, tmp_path)
    (tmp_path / "a-1.jar").write_bytes(b"abc")
    assert present(jar, tmp_path)


def test_missing_jars_name_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("KSQL_CACHE_DIR", str(tmp_path))
    with pytest.raises(JARS_MISSING.base, match=JARS_MISSING.pattern) as missing:
        jar_files("spark")
    assert missing.value.message == "4 of the spark jars are missing"
    assert missing.value.hint == "Run: make setup"


def test_present_jars_come_in_the_locks_order(tmp_path, monkeypatch):
    rows = (
        Jar("g:b:1", "", 1, "spark"),
        Jar("g:a:1", "", 1, "spark"),
        Jar("g:c:1", "", 1, "broker"),
    )
    monkeypatch.setenv("KSQL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "locked", lambda: rows)
    jar_dir().mkdir()
    for name in ("a", "b"):
        (jar_dir() / f"{name}-1.jar").write_bytes(b"x")
    assert [path.name for path in jar_files("spark")] == ["b-1.jar", "a-1.jar"]


def test_sha256_of_a_known_text(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    assert sha256(tmp_path / "f").startswith("ba7816bf8f01cfea414140de5dae2223")
