"""docker-compose.yml: valid by the Compose Specification, and in step with the project."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
import yaml

from ksql.base.config import check
from ksql.base.jars import locked

ROOT = Path(__file__).parent.parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]


def schema():
    file = resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    return json.loads(file.read_text())


def test_it_is_valid_by_the_specification():
    jsonschema.validate(COMPOSE, schema())


@pytest.mark.parametrize(
    ("section", "name", "bad"),
    [
        ("services", "server", {"image": "x", "command": 7}),
        ("services", "server", {"image": "x", "healthchek": {}}),
        ("volumes", "state", "text"),
    ],
)
def test_the_schema_refuses_mistakes(section, name, bad):
    broken = COMPOSE | {section: COMPOSE[section] | {name: bad}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema())


def test_all_parts_are_there_and_can_tell_their_health():
    assert set(SERVICES) == {"kafka", "postgres", "spark-master", "spark-worker", "server"}
    assert all("test" in service["healthcheck"] for service in SERVICES.values())


def test_every_name_that_is_used_is_declared():
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        named = {mount.split(":")[0] for mount in service.get("volumes", ())}
        assert named <= set(COMPOSE["volumes"])


def test_the_state_directory_is_the_same_for_server_and_worker():
    state = "state:/var/lib/ksql"
    assert state in SERVICES["server"]["volumes"]
    assert state in SERVICES["spark-worker"]["volumes"]
    assert options()["ksql.state.dir"] == "/var/lib/ksql"


def options():
    prefix = "--override="
    words = [word for word in SERVICES["server"]["command"] if word.startswith(prefix)]
    return dict(word.removeprefix(prefix).split("=", 1) for word in words)


def test_the_server_is_given_properties_that_exist_and_reach_the_others():
    for name, value in options().items():
        assert check(name, value) == name
    assert options()["bootstrap.servers"] in SERVICES["kafka"]["healthcheck"]["test"]
    assert options()["ksql.spark.master"] in SERVICES["spark-worker"]["command"]
    password = SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert f":{password}@postgres:5432/" in options()["ksql.ledger.url"]


def test_kafka_is_the_version_that_is_embedded():
    [embedded] = [jar for jar in locked() if jar.coordinate.startswith("org.apache.kafka:kafka_")]
    assert SERVICES["kafka"]["image"].split(":")[1] == embedded.coordinate.split(":")[2]


def test_the_image_is_built_from_files_that_exist():
    recipe = SERVICES["server"]["build"]["dockerfile_inline"]
    files = re.findall(r"requirements/\w+\.lock", recipe)
    assert files
    assert all((ROOT / file).is_file() for file in files)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ".venv" in ignored
    assert "requirements" not in ignored
    assert all(
        SERVICES[name]["build"] == SERVICES["server"]["build"]
        for name in ("spark-master", "spark-worker")
    )


@pytest.mark.parametrize("name", ["spark-master", "spark-worker"])
def test_sparks_own_options_stand_apart_from_their_values(name):
    # Its parser knows no --name=value.
    assert not [word for word in SERVICES[name]["command"] if re.match(r"--[\w-]+=", word)]
