"""The files in ``deploy/``: they parse, agree with one another, and name settings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ksql.core.config import check
from server.propertiesfile import parse_properties
from server.settings import is_property, odd_properties, properties_of
from tests.composed import read

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
YAML = sorted([*DEPLOY.rglob("*.yml"), *DEPLOY.rglob("*.yaml")])


def documents(path):
    return [*yaml.safe_load_all(path.read_text("utf-8"))]


OBJECTS = [
    document
    for path in sorted(KUBERNETES.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in documents(path)
]


def one(kind, name="ksql"):
    [only] = [o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return only


POD = one("StatefulSet")["spec"]["template"]
[SERVER] = POD["spec"]["containers"]
CONFIGURATION = parse_properties(one("ConfigMap")["data"]["server.properties"])


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_each_file_parses(path):
    assert all(isinstance(document, dict) for document in documents(path))


# --- Kubernetes


def test_each_object_has_what_kubernetes_requires():
    versions = {
        "ConfigMap": "v1",
        "Secret": "v1",
        "Service": "v1",
        "StatefulSet": "apps/v1",
        "PodDisruptionBudget": "policy/v1",
    }
    for each in OBJECTS:
        assert each["apiVersion"] == versions[each["kind"]]
        assert re.fullmatch(r"[a-z][a-z0-9-]*", each["metadata"]["name"])
    assert {each["kind"] for each in OBJECTS} == set(versions)


def test_the_list_of_files_has_all_but_the_secret():
    [listed] = documents(KUBERNETES / "kustomization.yaml")
    here = {path.name for path in KUBERNETES.glob("*.yaml")}
    assert {*listed["resources"]} == here - {"kustomization.yaml", "secret.yaml"}


def test_selectors_find_the_pods():
    labels = POD["metadata"]["labels"]
    selectors = [
        one("Service")["spec"]["selector"],
        one("Service", "ksql-pods")["spec"]["selector"],
    ]
    selectors += [
        one(k)["spec"]["selector"]["matchLabels"] for k in ("StatefulSet", "PodDisruptionBudget")
    ]
    assert all(selector.items() <= labels.items() for selector in selectors)
    assert one("StatefulSet")["spec"]["serviceName"] == "ksql-pods"


def test_what_the_pod_names_is_there():
    spec = POD["spec"]
    volumes = {each["name"] for each in spec["volumes"]}
    volumes |= {c["metadata"]["name"] for c in one("StatefulSet")["spec"]["volumeClaimTemplates"]}
    assert {mount["name"] for mount in SERVER["volumeMounts"]} == volumes
    [config] = [each["configMap"]["name"] for each in spec["volumes"] if "configMap" in each]
    assert config == one("ConfigMap")["metadata"]["name"]
    [secret] = [each["secretRef"]["name"] for each in SERVER["envFrom"]]
    assert secret == one("Secret")["metadata"]["name"]
    mounted = {mount["mountPath"] for mount in SERVER["volumeMounts"]}
    assert str(Path(CONFIGURATION["ksql.state.dir"]).parent) in mounted
    assert str(Path(CONFIGURATION["ksql.extension.dir"]).parent) in mounted
    [file] = [a.removeprefix("--config=") for a in SERVER["args"] if a.startswith("--config=")]
    assert str(Path(file).parent) in mounted
    assert Path(file).name in one("ConfigMap")["data"]


def test_the_settings_exist_and_fit():
    assert odd_properties(CONFIGURATION) == []
    for name, value in CONFIGURATION.items():
        assert check(name, value) == name if name.startswith("ksql.") else is_property(name)


def test_each_variable_of_the_secret_is_a_property():
    variables = one("Secret")["stringData"]
    properties = properties_of(variables)
    assert len(properties) == len(variables)
    assert {*properties} == {"security.protocol", "sasl.mechanism", "sasl.jaas.config"}


def test_probes_ask_paths_that_need_no_user_at_the_port_that_listens():
    port = SERVER["ports"][0]
    assert CONFIGURATION["listeners"].endswith(f":{port['containerPort']}")
    probes = {
        name: SERVER[name]["httpGet"]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert {each["port"] for each in probes.values()} == {port["name"]}
    assert [each["path"] for each in probes.values()] == ["/livez", "/livez", "/readyz"]
    for service in ("ksql", "ksql-pods"):
        assert one("Service", service)["spec"]["ports"][0]["targetPort"] == port["name"]


def test_the_probes_are_those_of_the_documents():
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    [block] = re.findall(r"```text\n(startupProbe:.*?)```", page, re.DOTALL)
    shown = yaml.safe_load(block.replace("port: 8088", "port: http"))
    assert shown == {name: SERVER[name] for name in shown}


def test_a_pod_may_do_no_more_than_it_needs():
    assert POD["spec"]["securityContext"]["runAsNonRoot"] is True
    assert SERVER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["spec"]["terminationGracePeriodSeconds"] >= 30


# --- Prometheus and Grafana


def test_prometheus_asks_the_server_of_compose():
    services = read()["services"]
    [job] = documents(DEPLOY / "prometheus" / "prometheus.yml")[0]["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    [target] = job["static_configs"][0]["targets"]
    assert target.split(":") == ["server", "8088"]
    assert "--override=ksql.allowed.hosts=server" in services["server"]["command"]


def mounts(service):
    parts = [mount.split(":") for mount in read()["services"][service]["volumes"]]
    return {inside: outside for outside, inside, *_ in parts}


def test_prometheus_finds_its_rules_where_they_are_mounted():
    [config] = documents(DEPLOY / "prometheus" / "prometheus.yml")
    inside = mounts("prometheus")
    assert [inside[path] for path in config["rule_files"]] == ["./deploy/prometheus/rules.yml"]


def test_grafana_finds_its_source_and_its_dashboard():
    [sources] = documents(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")
    [source] = sources["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = documents(DEPLOY / "grafana/provisioning/dashboards/ksql.yml")[0]["providers"]
    inside = mounts("grafana")
    [dashboard] = [path for path, file in inside.items() if file.endswith("dashboard.json")]
    assert str(Path(dashboard).parent) == provider["options"]["path"]
    assert inside["/etc/grafana/provisioning"] == "./deploy/grafana/provisioning"
    given = read()["services"]["grafana"]["environment"]
    assert given["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == dashboard


# --- systemd


def test_the_unit_waits_until_the_server_says_that_it_is_ready():
    text = (DEPLOY / "ksql.service").read_text("utf-8")
    unit = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert (unit["Type"], unit["NotifyAccess"]) == ("notify", "main")
    assert unit["KillMode"] == "mixed"
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    section = page.partition("## As a service of systemd")[2].partition("\n## ")[0]
    for line in ("Type=notify", "KillMode=mixed", f"TimeoutStopSec={unit['TimeoutStopSec']}"):
        assert f"`{line}`" in section
