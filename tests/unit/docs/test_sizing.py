"""docs/sizing.md has the numbers of docs/benchmarks.md, and no others."""

from __future__ import annotations

import re

import pytest

from tests.composed import ROOT, read

SIZING = (ROOT / "docs/sizing.md").read_text("utf-8")
BENCHMARKS = (ROOT / "docs/benchmarks.md").read_text("utf-8")
WORKLOADS = {
    "filter and projection, JSON": "stateless",
    "filter and projection, AVRO": "avro",
    "filter and projection, PROTOBUF": "protobuf",
    "twenty expressions": "project-20",
    "count of 10,000 keys, the last value of a batch": "count-10k-coalesced",
    "count of 10,000 keys, every change": "count-10k-every-change",
    "count of 600,000 keys": "count-600k",
}
_RATES = re.compile(r"^\| ([^|]+) \| ([\d.]+) us \| ([\d,]+) \|$", re.MULTILINE)


def measured(workload):
    """CPU of a record in all processes, in microseconds, and the median of records per second."""
    [line] = re.findall(rf"^\| `{workload}`.*$", BENCHMARKS, re.MULTILINE)
    cells = [cell.strip() for cell in line.split("|")]
    parts = re.findall(r"[\d.]+", cells[4])
    return f"{sum(map(float, parts)):.1f}", cells[2].split(" / ")[1]


def test_the_cores_for_records_are_the_measured_ones():
    rates = {name: (cpu, rate) for name, cpu, rate in _RATES.findall(SIZING)}
    assert rates == {name: measured(workload) for name, workload in WORKLOADS.items()}


@pytest.mark.parametrize("number", sorted(set(re.findall(r"\d+,\d{3}|\d\.\d\d cores", SIZING))))
def test_other_numbers_were_measured_too(number):
    computed = {"20,000", "0.41 cores"}  # the example
    assert number in computed or number in BENCHMARKS


def test_the_limits_of_compose_are_those_of_the_file():
    units = {"m": 1 / 1024, "g": 1}
    limits = [service["mem_limit"] for service in read()["services"].values()]
    total = sum(float(text[:-1]) * units[text[-1]] for text in limits)
    assert f"together {total:g} GiB" in SIZING
