"""``ksql test`` as ksqlDB's test runners are called."""

from __future__ import annotations

import json

import pytest

from qtt import testrunner
from qtt.local import LocalDrivers
from server import entry

SCRIPT = """-- the tutorial's statements
CREATE STREAM movies (id INT KEY, title VARCHAR, price DECIMAL(5,2))
  WITH (kafka_topic='movies', partitions=1, value_format='json');
SET 'auto.offset.reset' = 'earliest';
CREATE TABLE total AS SELECT id, COUNT(*) AS n, SUM(price) AS sum FROM movies GROUP BY id;
"""
INPUTS = """{"inputs": [ // a comment
  {"topic": "movies", "key": 1, "value": {"title": "a", "price": 1.50}, "timestamp": 5},
  {"topic": "movies", "key": 1, "value": {"title": "b", "price": 2.00}}]}"""
OUTPUTS = """{"outputs": [
  {"topic": "TOTAL", "key": 1, "value": {"N": 1, "SUM": 1.50}},
  {"topic": "TOTAL", "key": 1, "value": {"N": 2, "SUM": 3.50}, "timestamp": 5}]}"""


@pytest.fixture
def files(tmp_path):
    """Return the arguments for a test of these texts."""

    def write_files(script=SCRIPT, inputs=INPUTS, outputs=OUTPUTS):
        arguments = []
        for option, name, text in (
            ("-s", "statements.sql", script),
            ("-i", "input.json", inputs),
            ("-o", "output.json", outputs),
        ):
            (tmp_path / name).write_text(text)
            arguments += [option, str(tmp_path / name)]
        return arguments

    return write_files


def test_a_script_with_its_records(files, capsys):
    assert entry.main(["test", *files()]) == 0
    assert capsys.readouterr().out == "statements\n\t >>> Test passed!\n"


def test_difference_is_reported_and_in_the_exit_status(files, capsys):
    assert entry.main(["test", *files(outputs=OUTPUTS.replace("3.50", "3.5"))]) == 1
    said = capsys.readouterr().out
    assert ">>> Test failed: " in said
    assert '"SUM":3.5}' in said
    assert entry.main(["test", *files(script=SCRIPT.replace("SELECT", "SELEC"))]) == 1
    assert "Syntax Error" in capsys.readouterr().out


def test_all_differences_are_shown_each_in_a_line(files, capsys):
    third = OUTPUTS.replace("]}", ', {"topic": "TOTAL", "key": 2, "value": null}]}').replace(
        '"N": 1', '"N": 7'
    )
    assert entry.main(["test", *files(outputs=third.replace('"N": 2', '"N": 8'))]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("\t >>> Test failed: topic TOTAL, record 0: value ")
    assert said[2].startswith("\t     topic TOTAL, record 1: value ")
    assert said[3].startswith("\t     topic TOTAL: 3 records expected, 2 found")
    assert len(said) == 4


def test_long_lists_of_differences_are_cut(files, capsys):
    record = '{"topic": "TOTAL", "key": 1, "value": {"N": 0, "SUM": 0}}'
    inputs = ", ".join(['{"topic": "movies", "key": 1, "value": {"title": "a"}}'] * 30)
    outputs = ", ".join([record] * 30)
    arguments = files(inputs=f'{{"inputs": [{inputs}]}}', outputs=f'{{"outputs": [{outputs}]}}')
    assert entry.main(["test", *arguments]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "\t     and 9 more differences"


def test_options_have_long_names(files, capsys):
    names = {"-s": "--statements", "-i": "--input", "-o": "--output"}
    arguments = [names.get(each, each) for each in files()]
    assert entry.main(["test", "--driver", "local", *arguments]) == 0
    assert "Test passed!" in capsys.readouterr().out


def test_a_driver_is_closed_whatever_happens(files, monkeypatch):
    closed = []

    class Drivers(LocalDrivers):
        def close(self):
            closed.append(True)

    monkeypatch.setattr(testrunner, "LocalDrivers", Drivers)
    assert entry.main(["test", *files(outputs='{"outputs": []}')]) == 0
    assert closed == [True]


def test_a_folder_of_sql_files(tmp_path, capsys):
    (tmp_path / "t.sql").write_text(
        "--@test: counts\nCREATE STREAM s (k INT KEY, v INT) WITH (kafka_topic='s', "
        "value_format='JSON');\nCREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;\n"
        "INSERT INTO s (k, v) VALUES (1, 10);\nASSERT VALUES t (k, n) VALUES (1, 1);\n"
    )
    assert entry.main(["test", "-td", str(tmp_path), "-tf", "/tmp/x"]) == 0
    assert ">>> Test passed!" in capsys.readouterr().out


def test_a_failed_assertion_is_named(tmp_path, capsys):
    (tmp_path / "t.sql").write_text(
        "--@test: two\nCREATE STREAM s (k INT KEY, v INT) WITH (kafka_topic='s', "
        "value_format='JSON');\nINSERT INTO s (k, v) VALUES (1, 10);\n"
        "ASSERT VALUES s (k, v) VALUES (1, 10);\nASSERT NULL VALUES s (k) KEY (1);\n"
    )
    assert entry.main(["test", "-td", str(tmp_path)]) == 1
    assert "in ASSERT NULL VALUES s (k) KEY (1);" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "either a script (-s) with its outputs (-o), or a folder"),
        (["-s", "s.sql"], "needs the expected outputs"),
        (["-s", "/no.sql", "-o", "/no.json"], "cannot read /no.sql: No such file"),
        (["-td", "/nowhere"], "no tests in it"),
    ],
)
def test_wrong_arguments(more, says, capsys):
    with pytest.raises(SystemExit) as caught:
        entry.main(["test", *more])
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "{", json.dumps({"inputs": [3]}), "{}"])
def test_records_of_another_form(files, text, capsys):
    with pytest.raises(SystemExit):
        entry.main(["test", *files(inputs=text)])
    said = capsys.readouterr().err
    assert "input.json is not of the form" in said or "error: statements: AttributeError" in said
