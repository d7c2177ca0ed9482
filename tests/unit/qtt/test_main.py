from __future__ import annotations

import itertools
import json

import pytest

from qtt import report
from qtt.__main__ import main, stratified
from qtt.model import QueryTestCase

GOOD = {
    "name": "good",
    "statements": [
        "CREATE STREAM a (k INT KEY, v INT) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON');",
        "CREATE STREAM b AS SELECT k, v + 1 AS v FROM a;",
    ],
    "inputs": [{"topic": "a", "key": 1, "value": {"v": 1}}],
    "outputs": [{"topic": "B", "key": 1, "value": {"V": 2}}],
}
BAD = {**GOOD, "name": "bad", "outputs": [{"topic": "B", "key": 1, "value": {"V": 3}}]}


@pytest.fixture
def folder(tmp_path):
    def folder_of(*tests):
        (tmp_path / "f.json").write_text(json.dumps({"tests": list(tests)}))
        return str(tmp_path)

    return folder_of


def _run(*args):
    return main(["--driver", "local", "--jobs", "1", *args])


def test_all_good(folder, capsys):
    assert _run(folder(GOOD)) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed, 0 unsupported\n"


def test_a_failure_is_reported_and_counts(folder, capsys, tmp_path):
    path = folder(GOOD, BAD)
    out = tmp_path / "out" / "report.json"
    out.parent.mkdir()
    assert _run("--report", str(out), path) == 1
    output = capsys.readouterr().out
    assert 'value {"V":3} expected, {"V":2} found' in output
    assert output.endswith("1 passed, 1 failed, 0 unsupported\n")
    assert json.loads(out.read_text())["failed"] == 1


def test_a_known_gap_does_not_count_but_a_closed_one_does(folder, monkeypatch):
    path = folder(GOOD, BAD)
    monkeypatch.setattr(report, "known_gaps", lambda _: {"f - bad": "why"})
    assert _run(path) == 0
    monkeypatch.setattr(report, "known_gaps", lambda _: {"f - bad": "why", "f - good": "why"})
    assert _run(path) == 1


def test_a_run_with_all_lines_says_why_at_once(folder, capsys):
    assert _run("--verbose", folder(BAD, GOOD)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3:2]] == ["failed", "passed"]
    assert 'value {"V":3} expected' in lines[1]


def test_filter(folder, capsys):
    assert _run("--filter", "g..d$", "--verbose", folder(GOOD, BAD)) == 0
    assert "f - good" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["--filter", "(", "."], "not a regular expression"),
        (["--jobs", "0", "."], "at least 1"),
    ],
)
def test_wrong_arguments_are_reported(args, text, capsys):
    with pytest.raises(SystemExit) as ended:
        _run(*args)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_a_file_that_is_no_test_file_is_reported(tmp_path, capsys):
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(SystemExit) as ended:
        _run(str(tmp_path))
    assert ended.value.code == 2
    assert "broken.json: " in capsys.readouterr().err


def _cases(count):
    return [QueryTestCase(id=str(number), steps=(), outputs=()) for number in range(count)]


def test_a_sample_is_spread_and_always_the_same():
    cases = _cases(100)
    sample = stratified(cases, 10)
    assert sample == stratified(cases, 10)
    places = [int(case.id) for case in sample]
    assert len(places) == 10
    assert {b - a for a, b in itertools.pairwise(places)} == {10}


@pytest.mark.parametrize("count", [3, 4])
def test_a_sample_of_everything_is_everything(count):
    assert stratified(_cases(3), count) == _cases(3)
