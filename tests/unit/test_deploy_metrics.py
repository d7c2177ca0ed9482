"""The alert rules and the dashboard name metrics and labels that a scrape has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ksql.app.metrics.table import METRICS

DEPLOY = Path(__file__).parents[2] / "deploy"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}
SHOWN = {
    metric.shown + suffix: metric
    for metric in METRICS
    for suffix in SUFFIXES.get(metric.kind, ("",))
}
FROM_PROMETHEUS = {"instance", "job", "le"}
"""Its labels; ``up`` is its own metric of what it scrapes."""


def alerts():
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text("utf-8"))["groups"]
    return group["rules"]


def panels():
    return json.loads((DEPLOY / "grafana" / "dashboard.json").read_text("utf-8"))["panels"]


def expressions():
    """Each expression, with the texts that show labels of its result."""
    yield from (
        (rule["expr"], " ".join(rule["annotations"].values()).replace("$labels.", ""))
        for rule in alerts()
    )
    yield from (
        (target["expr"], target["legendFormat"])
        for panel in panels()
        for target in panel["targets"]
    )


@pytest.mark.parametrize(("expression", "shown"), [*expressions()])
def test_metrics_and_labels_are_there(expression, shown):
    names = re.findall(r"\bksql_\w+", expression)
    assert names or expression.startswith("up{")
    assert set(names) <= set(SHOWN)
    labels = {label for name in names for label in SHOWN[name].labels} | FROM_PROMETHEUS
    grouped = {
        label.strip()
        for group in re.findall(r"by \(([^)]*)\)", expression)
        for label in group.split(",")
    }
    matched = set(re.findall(r"[{,](\w+)[!=]~?=?\"", expression))
    named = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", shown))
    assert grouped | matched | named <= labels


def test_a_server_that_is_gone_raises_an_alert():
    """It has no series of its own any more, and Prometheus names it by its job."""
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8"))
    [job] = config["scrape_configs"]
    assert f'up{{job="{job["job_name"]}"}} == 0' in [rule["expr"] for rule in alerts()]


def test_alerts_and_panels_have_names_of_their_own():
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
