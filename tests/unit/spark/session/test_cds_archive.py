from __future__ import annotations

import os

import pytest

from ksql.spark.session import cds_archive
from ksql.spark.session.cds_archive import WRITE, forget_others, prepared_stand, shared_stand


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KSQL_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def jars(tmp_path):
    paths = (tmp_path / "one.jar", tmp_path / "two.jar")
    for jar in paths:
        jar.touch()
    return paths


def test_installation_has_one_archive(cache, jars, tmp_path):
    stand = prepared_stand(jars, tmp_path / "scratch")
    assert stand == shared_stand(jars)
    assert stand.folder.is_relative_to(cache)
    assert (stand.home / "bin" / "spark-submit").exists()
    assert (stand.home / "jars").is_dir()
    assert stand.class_path[:2] == jars


@pytest.mark.parametrize("what", ["jars", "java"])
def test_another_class_path_or_java_needs_another_archive(what, jars, tmp_path, monkeypatch):
    before = shared_stand(jars)
    if what == "jars":
        jars = jars[:1]
    else:
        (tmp_path / "java" / "bin").mkdir(parents=True)
        (tmp_path / "java" / "release").write_text('JAVA_VERSION="99"')
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    assert shared_stand(jars).folder != before.folder


def test_reinstalled_pyspark_needs_another_archive(jars, tmp_path, monkeypatch):
    installed = tmp_path / "pyspark"
    monkeypatch.setattr(cds_archive, "_pyspark", lambda: installed)
    (installed / "jars").mkdir(parents=True)
    (installed / "jars" / "spark.jar").write_bytes(b"spark")
    before = shared_stand(jars)
    assert shared_stand(jars) == before
    os.utime(installed / "jars" / "spark.jar", (1, 1))
    assert shared_stand(jars).folder != before.folder


@pytest.mark.parametrize(
    "change", [lambda jar: jar.write_bytes(b"2"), lambda jar: os.utime(jar, (1, 1))]
)
def test_refetched_jar_needs_another_archive(change, jars):
    before = shared_stand(jars)
    change(jars[0])
    assert shared_stand(jars).folder != before.folder


def test_a_java_that_is_brought_up_to_date_is_another(jars, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    folders = set()
    for version in ("17.0.1", "17.0.2"):
        (tmp_path / "release").write_text(f'JAVA_VERSION="{version}"')
        folders.add(shared_stand(jars).folder)
    assert len(folders) == 2


def test_a_cache_that_cannot_be_written_to_is_done_without(cache, jars, tmp_path):
    cache.write_text("a file where a folder should be")
    stand = prepared_stand(jars, tmp_path / "scratch")
    assert stand.folder.is_relative_to(tmp_path / "scratch")
    assert (stand.home / "jars").is_dir()


def test_options(jars, tmp_path):
    stand = prepared_stand(jars, tmp_path / "scratch")
    assert stand.options({}) == ()
    assert f'"-XX:ArchiveClassesAtExit={tmp_path}/new"' in stand.options({WRITE: f"{tmp_path}/new"})
    stand.archive.touch()
    assert f'"-XX:SharedArchiveFile={stand.archive}"' in stand.options({})
    assert not any("SharedArchiveFile" in each for each in stand.options({WRITE: "new"}))


def test_former_archives_and_those_of_removed_installations_go(jars, tmp_path):
    former, now = (prepared_stand(each, tmp_path / "scratch") for each in (jars[:1], jars))
    removed, other = (now.folder.parent / name for name in ("removed", "other"))
    for folder, target in ((removed, tmp_path / "gone"), (other, tmp_path)):
        (folder / "home").mkdir(parents=True)
        (folder / "home" / "jars").symlink_to(target)
    archives = [stand.archive for stand in (former, now)]
    archives += [folder / now.archive.name for folder in (removed, other)]
    for each in archives:
        each.touch()
    forget_others(now)
    assert [each.exists() for each in archives] == [False, True, False, True]
