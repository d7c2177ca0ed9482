"""Projects on the disk: the files of new-project and create, and how files are read."""

from __future__ import annotations

import pytest

from server.cli.migrations.config import Config
from server.cli.migrations.failure import MigrationFailed
from server.cli.migrations.project import create_file, files_in


def test_a_new_project(fresh):
    assert sorted(path.name for path in fresh.root.iterdir()) == [
        "ksql-migrations.properties",
        "migrations",
    ]
    config = Config.read(fresh.config)
    assert config.client().url.startswith("http://127.0.0.1:")
    assert (config.stream, config.table) == ("MIGRATION_EVENTS", "MIGRATION_SCHEMA_VERSIONS")
    assert config.stream_topic("default_") == "default_ksql_MIGRATION_EVENTS"
    assert config.table_topic("default_") == "default_ksql_MIGRATION_SCHEMA_VERSIONS"
    assert config.replicas == 1
    assert config.directory == fresh.root / "migrations"
    assert "File already exists: DIR/shop/ksql-migrations.properties" in fresh.fails(
        "new-project", str(fresh.root), "http://localhost:8088"
    )


def test_new_project_takes_no_configuration(fresh):
    said = fresh.fails("new-project", "-c", "x", str(fresh.root), "http://localhost:8088")
    assert "does not expect a config file" in said


def test_create_counts_on(fresh):
    said = fresh.run("create", "sources  of rides")
    assert "Creating file: DIR/shop/migrations/V000001__sources_of_rides.sql" in said
    fresh.run("create", "totals", "-v", "7")
    fresh.run("create", "more")
    names = [file.path.name for file in files_in(fresh.root / "migrations", print)]
    assert names == [
        "V000001__sources_of_rides.sql",
        "V000007__totals.sql",
        "V000008__more.sql",
    ]
    first, *_ = files_in(fresh.root / "migrations", print)
    assert first.name == "sources of rides"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "again", "-v", "1"), "Found existing migrations file for version 1"),
        (("create", " "), "Description cannot be empty"),
        (("create", "a/b"), "letters that no file name may have"),
        (("create", "x", "-v", "1000000"), "Versions are between 1 and 999999"),
    ],
)
def test_what_create_refuses(fresh, arguments, said):
    fresh.file(1, "first", "")
    assert said in fresh.fails(*arguments)


def test_other_files_are_skipped_with_a_warning(fresh):
    fresh.file(2, "b", "")
    (fresh.root / "migrations" / "notes.txt").write_text("")
    (fresh.root / "migrations" / "V1__short.sql").write_text("")
    warnings: list[str] = []
    assert [file.version for file in files_in(fresh.root / "migrations", warnings.append)] == [2]
    assert [warning.split(": ")[-1] for warning in warnings] == ["V1__short.sql", "notes.txt"]


@pytest.mark.parametrize(
    ("version", "said"), [(0, "must be positive"), (2, "same version. Version: 2")]
)
def test_bad_versions(fresh, version, said):
    fresh.file(2, "b", "")
    fresh.file(version, "c", "")
    with pytest.raises(MigrationFailed, match=said):
        files_in(fresh.root / "migrations", print)


def test_another_directory(fresh, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    with fresh.config.open("a") as config:
        config.write(f"ksql.migrations.dir.override={elsewhere}\n")
    assert "is not a directory" in fresh.fails("create", "x")
    elsewhere.mkdir()
    fresh.run("create", "x")
    assert [path.name for path in elsewhere.iterdir()] == ["V000001__x.sql"]
    with pytest.raises(MigrationFailed, match="File already exists"):
        create_file(elsewhere, None, "x", lambda _: (elsewhere / "V000002__x.sql").touch())


def test_configurations_that_do_not_do(fresh):
    bad = fresh.root / "bad.properties"
    assert "Could not read config file" in fresh.fails("info", "-c", str(bad))
    bad.write_text("ksql.migrations.topic.replicas=many\n")
    assert 'Missing required configuration "ksql.server.url"' in fresh.fails("info", "-c", str(bad))
    bad.write_text(f"ksql.server.url=http://localhost:1\nssl.truststore.location={fresh.root}/no\n")
    assert "which are PEM files" in fresh.fails("info", "-c", str(bad))
    bad.write_text("ksql.server.url=http://localhost:1\n")
    assert "no answer from the server at http://localhost:1" in fresh.fails("info", "-c", str(bad))
    bad.write_bytes(b"\xff\xfe")
    assert "it is not UTF-8 text" in fresh.fails("info", "-c", str(bad))
