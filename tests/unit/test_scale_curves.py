"""The curves of cost: their records, tables and pictures."""

from __future__ import annotations

import json
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from tests.bench.scale import command
from tests.bench.scale.curves import CURVES, KEYS, Curve, _up_to
from tests.bench.scale.input import Orders
from tests.bench.scale.picture import drawn
from tests.bench.scale.points import Point, table
from tests.bench.site import Usage

SVG = "{http://www.w3.org/2000/svg}"


def point(at, seconds=2.0, **more):
    return Point(at, 1_000_000, seconds, Usage(3.0, 4.0, 0.5, 0.25), 900, **more)


@pytest.mark.parametrize("size", [100, 1_000, 100_000])
def test_a_value_has_the_size_that_is_stated_and_is_json(size):
    for _, value in Orders(5, value_bytes=size).numbered():
        assert len(value) == size
        assert json.loads(value)["NOTE"]


def test_customers_are_new_ones_or_random_below_a_bound():
    assert [key for key, _ in Orders(3, first=7).numbered()] == [b"7", b"8", b"9"]
    random = [int(key) for key, _ in Orders(500, first=7, customers=20).numbered()]
    assert set(random) == set(range(20))
    assert random == [int(key) for key, _ in Orders(500, first=7, customers=20).numbered()]


def test_costs_are_per_record_and_their_sum_has_all_processes():
    one = point(10)
    assert [one.part_us(part) for part in ("workers", "jvm", "service", "broker")] == [
        4.0,
        3.0,
        0.25,
        0.5,
    ]
    assert (one.cost_us, one.rate) == (7.75, 500_000)
    assert one.entry()["cpu_us_sum"] == 7.75


def test_the_table_has_a_line_for_each_point_and_what_only_some_measure():
    lines = table("keys", [point(10_000), point(20_000_000, more={"new": 1.234})]).splitlines()
    assert lines[0].startswith("| keys | CPU us/record | Python workers | Spark's JVMs |")
    assert lines[2] == "| 10,000 | 7.8 | 4.0 | 3.0 | 0.2 | 0.5 | 500,000 | 900 |  |"
    assert lines[3].endswith("| 900 | 1.23 |")
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize("log_up", [True, False])
def test_a_picture_has_a_line_for_each_series_within_its_axes(log_up):
    lines = {"a & b": [(10, 3.0), (1_000, 40.0)], "c": [(10, 8.0)]}
    root = ET.fromstring(drawn("cost", "keys", "us", lines, log_up=log_up))
    drawn_lines = [each.get("points") for each in root.iter(f"{SVG}polyline")]
    (first_x, first_y), (last_x, last_y) = (
        map(float, place.split(",")) for place in drawn_lines[0].split()
    )
    assert len(drawn_lines) == 2
    assert first_x < last_x
    assert first_y > last_y  # more is higher
    assert all(0 <= float(c.get("cy")) <= 360 for c in root.iter(f"{SVG}circle"))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {"a & b", "c", "keys", "us", "10", "1k"} <= set(texts)


def test_a_curve_ends_at_a_bound():
    assert _up_to(KEYS, 0) == list(KEYS)
    assert _up_to(KEYS, 1_000_000) == [10_000, 100_000, 1_000_000]
    assert _up_to(KEYS, 50) == [50]
    assert all(a < b for a, b in pairwise(KEYS))


def test_the_command_writes_report_and_pictures(monkeypatch, tmp_path, capsys):
    curve = Curve("keys", lambda records, most: iter([point(records), point(most)]))
    monkeypatch.setitem(CURVES, "keys", curve)
    report = tmp_path / "r.json"
    options = ["--records", "10", "--most", "20", "--report", str(report)]
    assert command.main(["keys", *options, "--pictures", str(tmp_path / "p")]) == 0
    assert [each["at"] for each in json.loads(report.read_text())["curves"]["keys"]] == [10, 20]
    assert ET.parse(tmp_path / "p" / "scale-keys.svg").getroot().tag == f"{SVG}svg"
    assert "| 20 | 7.8 |" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["colours"], ["keys", "--records", "0"]])
def test_the_command_refuses_what_it_does_not_know(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
