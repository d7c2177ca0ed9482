from __future__ import annotations

import json
import tomllib
from importlib import resources

import pytest

from qtt import report
from qtt.model import Result

GOOD = Result("a - good", "passed", 0.25)
BAD = Result("a - bad", "failed", 1.0, "it differs")
LATER = Result("a - later", "unsupported", 0.0, "a stream-stream join is not supported yet")


@pytest.fixture
def gaps(monkeypatch):
    """Sets what the list of known gaps says."""

    def put(**reasons):
        monkeypatch.setattr(report, "known_gaps", lambda driver: reasons.get(driver, {}))

    put()
    return put


def test_the_reports_form(tmp_path):
    path = tmp_path / "report.json"
    report.write(path, "local", [GOOD, BAD, LATER])
    assert json.loads(path.read_text()) == {
        "driver": "local",
        "cases": [
            {"id": "a - good", "status": "passed", "seconds": 0.25, "reason": ""},
            {"id": "a - bad", "status": "failed", "seconds": 1.0, "reason": "it differs"},
            {"id": "a - later", "status": "unsupported", "seconds": 0.0, "reason": LATER.reason},
        ],
        "passed": 1,
        "failed": 1,
        "unsupported": 1,
    }


def test_a_failure_that_is_not_listed_is_a_problem(gaps):
    assert report.judge("local", [GOOD, LATER]) == []
    (problem,) = report.judge("local", [GOOD, BAD, LATER])
    assert "a - bad" in problem
    assert "it differs" in problem


def test_a_listed_failure_is_none(gaps):
    gaps(local={"a - bad": "known"})
    assert report.judge("local", [GOOD, BAD]) == []
    assert report.judge("spark", [BAD]) != []


def test_a_listed_case_that_passes_is_a_problem(gaps):
    gaps(local={"a - good": "known"})
    (problem,) = report.judge("local", [GOOD])
    assert "PASSES but is listed as a gap: a - good" in problem


def test_a_listed_case_that_is_not_run_is_none(gaps):
    gaps(local={"a - other": "known", "a - later": "known"})
    assert report.judge("local", [GOOD, LATER]) == []


def test_the_list_of_gaps_has_reasons_and_kinds():
    listed = tomllib.loads((resources.files("qtt") / "expect.toml").read_text())["case"]
    for case in listed:
        assert case["reason"]
        assert case["kind"] in ("notimpl", "notyet", "never")
        assert case.get("driver", "local") in ("local", "spark")
    assert len({(case["id"], case.get("driver")) for case in listed}) == len(listed)
