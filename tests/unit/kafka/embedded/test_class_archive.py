from __future__ import annotations

import os

import pytest

from ksql.core.process import archive_options
from ksql.kafka.embedded.broker import archive_of, forget_other_archives

QUIET = "-Xlog:cds*=off"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KSQL_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def jars(tmp_path):
    paths = [tmp_path / "one.jar", tmp_path / "two.jar"]
    for jar in paths:
        jar.touch()
    return paths


@pytest.fixture
def java(tmp_path):
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    return home / "bin" / "java"


def test_each_class_path_and_java_has_its_own(jars, java):
    before = archive_of(java, jars)
    assert archive_of(java, jars) == before
    others = {archive_of(java, jars[:1]), archive_of(java, jars[::-1])}
    os.utime(jars[0], (1, 1))
    others.add(archive_of(java, jars))
    (java.parent.parent / "release").write_text('JAVA_VERSION="17.0.2"')
    others.add(archive_of(java, jars))
    assert len(others - {before}) == 4


def test_it_is_used_if_it_is_there_and_written_if_that_is_asked_for(jars, java):
    archive = archive_of(java, jars)
    assert archive_options(archive, None) == []
    assert archive_options(archive, "new") == [QUIET, "-XX:ArchiveClassesAtExit=new"]
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert archive_options(archive, None) == [QUIET, f"-XX:SharedArchiveFile={archive}"]
    assert archive_options(archive, "new") == [QUIET, "-XX:ArchiveClassesAtExit=new"]


def test_those_of_other_class_paths_go(jars, java):
    archives = [archive_of(java, some) for some in (jars, jars[:1])]
    for each in archives:
        each.parent.mkdir(parents=True)
        each.touch()
    forget_other_archives(archives[0])
    assert [each.exists() for each in archives] == [True, False]
