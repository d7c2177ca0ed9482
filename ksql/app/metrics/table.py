"""The table of metrics: loads ``table.toml``.

A row is a metric of ``/metrics`` and of docs/metrics.md; the collector gives no other.
Source: Prometheus' rules for names; ksqlDB's monitoring pages for the names of its JMX beans.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from itertools import product
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram", "info"]

_SUFFIXES: Final[dict[Kind, str]] = {"counter": "_total", "info": "_info"}


class Metric(NamedTuple):
    """A metric: its name without ``_total``, ``_bucket`` and the like.

    ``bound`` is what its number of series grows with. ``jmx`` is what ksqlDB, or its Kafka Streams,
    calls the same or the nearest; empty if they have none. ``begin`` has the last labels of those
    series of a counter that are known beforehand. They are there with 0, so that ``increase()``
    sees their first event.
    """

    name: str
    kind: Kind
    doc: str
    bound: str
    labels: tuple[str, ...] = ()
    jmx: str = ""
    begin: tuple[tuple[str, ...], ...] = ()

    @property
    def shown(self) -> str:
        """The name as a scrape has it."""
        return self.name + _SUFFIXES.get(self.kind, "")


class Subject(NamedTuple):
    """Metrics about one thing."""

    title: str
    metrics: tuple[Metric, ...]


def _metric(name: str, row: dict[str, Any]) -> Metric:
    begin = product(*row.get("begin", ())) if "begin" in row else ()
    return Metric(name, **row | {"labels": tuple(row.get("labels", ())), "begin": tuple(begin)})


def _subjects() -> tuple[Subject, ...]:
    text = files("ksql.app.metrics").joinpath("table.toml").read_text("utf-8")
    return tuple(
        Subject(subject["title"], tuple(_metric(*row) for row in subject["rows"].items()))
        for subject in tomllib.loads(text)["subject"]
    )


SUBJECTS: Final = _subjects()
METRICS: Final = tuple(metric for subject in SUBJECTS for metric in subject.metrics)
BY_NAME: Final = {metric.name: metric for metric in METRICS}
