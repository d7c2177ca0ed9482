"""docker-compose.yml: valid by the Compose Specification, in step with the project, guarded.

``tests/kafka/test_compose.py`` runs its commands.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from ksql.core.config import check
from ksql.core.process.jars import locked
from ksql.core.secrets import LEDGER_PASSWORD, is_secret
from ksql.history.database import parse_url
from ksql.kafka.embedded.broker_config import AFTER_MAX_MS, server_properties
from server.propertiesfile import parse_properties
from server.settings import odd_properties
from tests.composed import OWN, RECIPE, ROOT, SECRETS, in_order, java_properties, overrides, read

COMPOSE = read()
SERVICES = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if service["image"] == OWN)
DAEMONS = ["spark-master", "spark-worker"]
OBSERVING = ["prometheus", "grafana"]
OPTIONS = overrides(SERVICES["server"])


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


def test_every_name_that_is_used_is_declared():
    assert set(SERVICES) == {"kafka", "postgres", *OBSERVING, *OURS}
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        named = {mount.split(":")[0] for mount in service.get("volumes", ())}
        files = {name for name in named if name.startswith("./")}
        assert all((ROOT / name).exists() for name in files)
        assert named - files <= set(COMPOSE["volumes"])
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])


def test_the_state_directory_is_the_same_for_server_and_worker():
    state = "state:/var/lib/ksql"
    assert state in SERVICES["server"]["volumes"]
    assert state in SERVICES["spark-worker"]["volumes"]
    assert OPTIONS["ksql.state.dir"] == "/var/lib/ksql"


def test_the_server_is_given_properties_that_exist_and_reach_the_others():
    assert odd_properties(OPTIONS) == []
    for name, value in OPTIONS.items():
        assert name.startswith("spark.") or check(name, value) == name
    host, port = OPTIONS["bootstrap.servers"].split(":")
    assert f"/dev/tcp/{host}/{port}" in SERVICES["kafka"]["healthcheck"]["test"][-1]
    assert OPTIONS["ksql.spark.master"] in SERVICES["spark-worker"]["command"]
    assert parse_url(OPTIONS["ksql.ledger.url"]).host in SERVICES


# --- images: C2, C6 -------------------------------------------------------------------------------


def test_image_is_built_by_one_service_and_not_pulled():
    """Several at once fail: "failed to solve: image .. already exists"."""
    [builder] = [name for name in OURS if "build" in SERVICES[name]]
    policies = {name: SERVICES[name]["pull_policy"] for name in OURS}
    assert policies == dict.fromkeys(OURS, "never") | {builder: "build"}
    needed = {name: {name: SERVICES[name]} for name in OURS}
    for name in OURS:  # whoever starts a service alone starts its builder, too
        waiting = [name]
        while waiting:
            service = SERVICES[waiting.pop()]
            waiting += service.get("depends_on", ())
            needed[name] |= {each: SERVICES[each] for each in service.get("depends_on", ())}
    assert all(builder in names for names in needed.values())
    assert in_order(SERVICES).index(builder) == min(in_order(SERVICES).index(n) for n in OURS)


def test_images_of_others_can_be_pinned_by_a_digest():
    pins = {name: f"x/{name.lower()}@sha256:{'0' * 64}" for name in PINNED}
    pinned = read(pins)["services"]
    assert pinned["kafka"]["image"] == pins["KAFKA_IMAGE"]
    assert pinned["postgres"]["image"] == pins["POSTGRES_IMAGE"]
    assert pinned["prometheus"]["image"] == pins["PROMETHEUS_IMAGE"]
    assert pinned["grafana"]["image"] == pins["GRAFANA_IMAGE"]
    assert pinned["spark-master"]["build"]["args"] == {"PYTHON_IMAGE": pins["PYTHON_IMAGE"]}
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    assert all(f"{name}=" in page for name in PINNED)


PINNED = ("KAFKA_IMAGE", "POSTGRES_IMAGE", "PYTHON_IMAGE", "PROMETHEUS_IMAGE", "GRAFANA_IMAGE")


def test_the_recipe_begins_with_the_image_that_compose_names():
    recipe = RECIPE.read_text("utf-8")
    [named] = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", recipe, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", recipe, re.MULTILINE) == ["${PYTHON_IMAGE}"]
    assert SERVICES["spark-master"]["build"]["args"]["PYTHON_IMAGE"] == named


def test_kafka_is_the_version_that_is_embedded():
    [embedded] = [jar for jar in locked() if jar.coordinate.startswith("org.apache.kafka:kafka_")]
    assert SERVICES["kafka"]["image"].split(":")[1] == embedded.coordinate.split(":")[2]


def test_the_recipe_copies_what_exists_and_ends_with_a_user_of_no_rights():
    recipe = RECIPE.read_text("utf-8")
    files = re.findall(r"requirements/\w+\.lock", recipe)
    assert files
    assert all((ROOT / file).is_file() for file in files)
    assert re.findall(r"^USER (\S+)", recipe, re.MULTILINE) == ["1000:1000"]
    assert "/var/lib/ksql /var/lib/spark" in recipe  # volumes take their owner from these


def context(target: Path) -> Path:
    """A copy of what Docker would send to the build, of the project's own folders and files."""
    patterns = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    ignored = [line.removeprefix("**/") for line in patterns if line and line[0] != "#"]
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*ignored), symlinks=True)
    return target


@pytest.mark.slow
def test_the_context_of_the_build_is_all_that_the_package_needs(tmp_path):
    folder = context(tmp_path / "context")
    assert not any((folder / name).exists() for name in ("secrets", ".git", ".venv", "tests"))
    installed = tmp_path / "installed"
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--target", installed)
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, *options, "."], cwd=folder, check=True)
    expected = {
        path.relative_to(ROOT)
        for name in ("ksql", "server", "qtt", "grammar", "migrations")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and path.suffix in {".py", ".lark", ".toml", ".json", ".sql", ".jar"}
    }
    assert {path for path in expected if not (installed / path).is_file()} == set()


# --- what a container may do: C6, C8 --------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_may_do_more_than_it_needs(name):
    service = SERVICES[name]
    assert service["init"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"kafka"}))
def test_files_are_written_to_volumes_and_memory_only(name):
    assert SERVICES[name]["read_only"] is True
    assert any(each.startswith("/tmp:") for each in SERVICES[name]["tmpfs"])


@pytest.mark.parametrize("name", OURS)
def test_libraries_may_be_loaded_from_the_temporary_folder(name):
    """RocksDB's, by executors: Docker mounts with ``noexec`` unless it is asked not to."""
    [tmp] = SERVICES[name]["tmpfs"]
    assert "exec" in tmp.removeprefix("/tmp:").split(",")


@pytest.mark.parametrize("name", SERVICES)
def test_a_refused_start_is_not_repeated_for_ever(name):
    assert SERVICES[name]["restart"] == "on-failure:5"


# --- health: C5 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_all_can_report_their_health_at_little_cost(name):
    """A JVM takes seconds of CPU, Python a tenth: neither is started every few seconds."""
    check = SERVICES[name]["healthcheck"]
    kind, program, *_ = check["test"]
    assert kind == "CMD"
    seconds = int(check["interval"].removesuffix("s"))
    assert seconds >= {"bash": 10, "pg_isready": 10, "wget": 10, "python": 30}[program]


# --- Kafka's settings: C4 -------------------------------------------------------------------------


def kafka_settings():
    variables = SERVICES["kafka"]["environment"]
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in variables.items()
    }


EMBEDDED = parse_properties(server_properties(Path("/data"), 1, 2))
OF_RECORDS = {
    "log.retention.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "offsets.retention.minutes",
    "message.max.bytes",
    "auto.create.topics.enable",
}
"""What decides which records are taken and kept."""


def test_kafka_takes_and_keeps_the_records_that_the_embedded_broker_does():
    given = kafka_settings()
    assert given["log.message.timestamp.after.max.ms"] == str(AFTER_MAX_MS)
    assert {name: given[name] for name in OF_RECORDS} == {
        name: EMBEDDED[name] for name in OF_RECORDS
    }


def test_no_other_setting_of_both_brokers_differs_unknown():
    both = {name: value for name, value in kafka_settings().items() if name in EMBEDDED}
    where = {"controller.quorum.voters", "listeners", "advertised.listeners", "log.dirs"}
    assert {n for n, value in both.items() if value != EMBEDDED[n]} <= where


# --- secrets: C3, C7 ------------------------------------------------------------------------------


def test_secrets_are_files_and_have_no_default():
    assert COMPOSE["secrets"] == {
        name: {"file": f"./secrets/{name}"}
        for name in ("grafana_password", "postgres_password", "spark.properties")
    }
    for name, service in SERVICES.items():
        texts = [*service.get("command", ()), *service.get("environment", {}).values()]
        used = {use for text in texts for use in re.findall(rf"{SECRETS}([\w.]+)", str(text))}
        assert used == set(service.get("secrets", ())), name
    ignored = (ROOT / ".gitignore").read_text().split()
    assert "/secrets/" in ignored


def test_no_command_and_no_environment_has_a_secret():
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            assert not is_secret(name) or value.startswith(SECRETS), name
    for name, value in OPTIONS.items():
        assert not is_secret(name) or value.startswith(SECRETS), name
    assert parse_url(OPTIONS["ksql.ledger.url"]).password is None
    given = SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD_FILE"]
    assert OPTIONS[LEDGER_PASSWORD] == given


@pytest.mark.parametrize("name", [*DAEMONS, "server"])
def test_spark_takes_applications_with_the_secret_only(name):
    """That it does: tests/kafka/test_compose.py."""
    file = f"{SECRETS}spark.properties"
    if name in DAEMONS:
        command = SERVICES[name]["command"]
        assert command[command.index("--properties-file") + 1] == file
        given = java_properties(SERVICES[name]["environment"]["SPARK_DAEMON_JAVA_OPTS"])
        assert given["spark.master.rest.enabled"] == "false"  # it would take applications without
    else:
        assert f"--config={file}" in SERVICES[name]["command"]


def test_secrets_are_made_once_and_are_closed_to_other_users(tmp_path):
    make = ["make", "-f", str(ROOT / "Makefile"), f"PYTHON={sys.executable}", "secrets"]
    subprocess.run(make, cwd=tmp_path, check=True)
    folder = tmp_path / "secrets"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(texts) == set(COMPOSE["secrets"])
    secret = parse_properties(texts["spark.properties"])
    assert texts["postgres_password"] != texts["grafana_password"]
    for name in ("postgres_password", "grafana_password"):
        assert re.fullmatch(r"[0-9a-f]{64}\n", texts[name])
    assert re.fullmatch(r"[0-9a-f]{64}", secret.pop("spark.authenticate.secret"))
    assert secret == {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
    assert folder.stat().st_mode & 0o777 == 0o700
    # the users of the containers are none of this machine's
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    subprocess.run(make, cwd=tmp_path, check=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == texts


# --- commands: C1 ---------------------------------------------------------------------------------


def test_the_worker_writes_to_volumes():
    command = SERVICES["spark-worker"]["command"]
    mounts = [mount.split(":")[1] for mount in SERVICES["spark-worker"]["volumes"]]
    folders = (
        command[command.index("--work-dir") + 1],
        SERVICES["spark-worker"]["environment"]["SPARK_LOCAL_DIRS"],
    )
    assert all(any(folder.startswith(f"{each}/") for each in mounts) for folder in folders)


@pytest.mark.parametrize("name", DAEMONS)
def test_spark_options_are_separate_from_their_values(name):
    # Its parser knows no --name=value.
    assert not [word for word in SERVICES[name]["command"] if re.match(r"--[\w-]+=", word)]
