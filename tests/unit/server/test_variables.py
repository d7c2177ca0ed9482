"""Environment variables as ksqlDB's image has them, and their place among files and options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import server.main
from server import entry
from server.settings import odd_variables, properties_of, read_configuration

ROOT = Path(__file__).parents[3]
COMPOSE = {
    "KSQL_CONFIG_DIR": "/etc/ksql",
    "KSQL_LOG4J_OPTS": "-Dlog4j.configuration=file:/etc/ksql/log4j-rolling.properties",
    "KSQL_BOOTSTRAP_SERVERS": "broker:9092",
    "KSQL_HOST_NAME": "ksqldb-server",
    "KSQL_LISTENERS": "http://0.0.0.0:8088",
    "KSQL_CACHE_MAX_BYTES_BUFFERING": "0",
    "KSQL_KSQL_SCHEMA_REGISTRY_URL": "http://schema-registry:8081",
    "KSQL_KSQL_STREAMS_AUTO_OFFSET_RESET": "earliest",
    "KSQL_KSQL_LOGGING_PROCESSING_ROWS_INCLUDE": "true",
    "KSQL_KSQL_JSON__SR_CONVERTER_DESERIALIZER_ENABLED": "false",
    "KSQL_CACHE_DIR": "/var/cache",
    "PATH": "/bin",
}


def test_the_variables_of_a_compose_file() -> None:
    assert properties_of(COMPOSE) == {
        "bootstrap.servers": "broker:9092",
        "listeners": "http://0.0.0.0:8088",
        "cache.max.bytes.buffering": "0",
        "ksql.schema.registry.url": "http://schema-registry:8081",
        "ksql.streams.auto.offset.reset": "earliest",
        "ksql.logging.processing.rows.include": "true",
        "ksql.json_sr.converter.deserializer.enabled": "false",
    }
    assert odd_variables(COMPOSE) == [
        "the variable KSQL_CONFIG_DIR has no effect: the property config.dir is not known.",
        "the variable KSQL_HOST_NAME has no effect: the property host.name is not known.",
        "the variable KSQL_LOG4J_OPTS is for a JVM and has no effect. "
        "The option --log-level says how much is logged.",
    ]


def test_misspelt_variable_is_a_warning_without_its_value() -> None:
    warnings = odd_variables({"KSQL_KSQL_SERVIC_ID": "se-cret"})
    assert warnings == [
        "the variable KSQL_KSQL_SERVIC_ID has no effect: the property ksql.servic.id is not known."
        " Did you mean ksql.service.id?"
    ]


def test_system_properties_come_before_variables() -> None:
    environment = {
        "KSQL_OPTS": "-Xmx4g -Dksql.service.id='from opts_' -Dlog4j.debug=true -Dlisteners=http://a:1",
        "KSQL_KSQL_SERVICE_ID": "from_env_",
        "KSQL_BOOTSTRAP_SERVERS": "b:1",
    }
    assert properties_of(environment) == {
        "ksql.service.id": "from opts_",
        "listeners": "http://a:1",
        "bootstrap.servers": "b:1",
    }
    assert odd_variables(environment) == [
        "KSQL_OPTS: -Xmx4g, -Dlog4j.debug has no effect; only -D<property>=<value> is read."
    ]
    assert properties_of({"KSQL_OPTS": "-Dksql.service.id='x"}) == {"ksql.service.id": "'x"}


def test_file_variables_options(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("ksql.service.id=file_\nauto.offset.reset=latest\nlisteners=http://f:1\n")
    environment = {
        "KSQL_KSQL_SERVICE_ID": "env_",
        "KSQL_KSQL_STREAMS_AUTO_OFFSET_RESET": "earliest",
    }
    configuration = read_configuration(file, ["ksql.service.id=option_"], environment)
    assert configuration["ksql.service.id"] == "option_"
    assert configuration["ksql.streams.auto.offset.reset"] == "earliest"
    assert "auto.offset.reset" not in configuration
    assert configuration["listeners"] == "http://f:1"
    assert read_configuration(None, [], environment)["ksql.service.id"] == "env_"


def test_the_server_reads_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, str] = {}

    def run(configuration: dict[str, str]) -> bool:
        settings.update(configuration)
        return False

    monkeypatch.setattr(server.main, "run_server", run)
    monkeypatch.setenv("KSQL_KSQL_SERVICE_ID", "env_")
    monkeypatch.setenv("KSQL_KSQL_QUERIES_FILE", "env.sql")
    monkeypatch.setenv("KSQL_HEAP_OPTS", "-Xmx1g")
    file = tmp_path / "server.properties"
    file.write_text(f"ksql.state.dir={tmp_path / 'state'}\nksql.service.id=file_\n")
    assert entry.main(["server", str(file), "--queries-file", "q.sql"]) == 0
    assert settings["ksql.state.dir"] == str(tmp_path / "state")
    assert settings["ksql.service.id"] == "env_"
    assert settings["ksql.queries.file"] == "q.sql"
    assert "warning: the variable KSQL_HEAP_OPTS is for a JVM" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        entry.main(["server", str(file), "--config", str(file)])
    assert "the configuration file is given twice" in capsys.readouterr().err


def test_the_projects_own_variables_are_no_properties() -> None:
    """Every variable that the project names, but those of its compose file and documents."""
    texts = [
        path.read_text(encoding="utf-8")
        for folder in ("ksql", "server", "qtt", "migrations", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
    ]
    texts.append((ROOT / "Makefile").read_text(encoding="utf-8"))
    own = {
        name
        for text in texts
        for name in re.findall(r"environ(?:\.get\(|\[)\s*\"(KSQL_[A-Z_]+)\"", text)
    }
    own |= {"KSQL_HISTORY_FILE", "KSQL_CACHE_DIR"}
    assert len(own) > 4
    assert properties_of(dict.fromkeys(own, "1")) == {}
    assert odd_variables(dict.fromkeys(own, "1")) == []
