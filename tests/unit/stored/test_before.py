"""What versions before format zero have left is refused by name, with the version that reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ksql.app.state import OlderState, StateDir
from ksql.control.log.quarantine import UnreadableCommand
from ksql.control.log.record import decode
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.core.versioned_json import BeforeFormatZero
from ksql.spark.checkpoint import checkpoint, incarnations
from ksql.sql.plan.codec import UnreadablePlan, loads
from tests.stored.corpora import V1
from tests.stored.lines import read_lines


def refused(error: KsqlError) -> None:
    assert "is older than format zero: version 0.2.0 and later do not read it" in error.message
    assert "the last build of version 0.1.0" in error.hint
    assert error.code >= 50000


def checkpoint_of(place: Path, *files: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for name in files:
        (place / name).write_text("{}")
    return place


def before_names(folder: Path) -> str:
    incarnations.require("Q", checkpoint_of(folder / "Q", "metadata"))
    return ""


def before_paths(folder: Path) -> str:
    """Spark was given the path as a URI, and has taken its escapes for letters."""
    home = folder / "with blank" / "Q"
    incarnations.begin(home, "f00d")
    checkpoint_of(Path(home.as_uri().removeprefix("file://")), "metadata")
    incarnations.require("Q", home)
    return ""


def in_a_trial(folder: Path) -> str:
    incarnations.begin(folder / "Q", "f00d")
    incarnations.require("Q", checkpoint_of(folder / "Q", "metadata", "trial.json"))
    return ""


@pytest.mark.parametrize("left", [before_names, before_paths, in_a_trial])
def test_a_checkpoint(tmp_path, left):
    with pytest.raises(BeforeFormatZero, match="the checkpoint of query Q") as caught:
        left(tmp_path)
    refused(caught.value)
    assert caught.value.detail


@pytest.mark.parametrize("text", ['{"s": {"0": 3, "1": 0}}', '{"version": {"0": 3}}'])
def test_where_a_query_begins(tmp_path, text):
    (tmp_path / "starts.json").write_text(text)
    with pytest.raises(BeforeFormatZero, match=r"starts\.json") as caught:
        checkpoint.read_starts(tmp_path / "starts.json")
    refused(caught.value)


def test_a_state_directory(tmp_path):
    (tmp_path / "service.json").write_text('{"format": 1, "service.id": "kept_"}')
    settings = Settings({"ksql.state.dir": str(tmp_path), "ksql.service.id": "kept_"})
    with pytest.raises(OlderState, match=str(tmp_path)) as caught:
        StateDir.open(settings, lambda: "new")
    refused(caught.value)


COMMAND = next(
    line for line in read_lines(V1 / "commands.jsonl") if "changes.PutQuery" in line["value"]
)


def of_format_1(plan: str) -> str:
    return json.dumps({**json.loads(plan), "version": 1})


def test_a_plan():
    (change,) = [c for c in json.loads(COMMAND["value"])["changes"] if "query" in c]
    with pytest.raises(UnreadablePlan) as caught:
        loads(of_format_1(change["query"]["plan"]))
    refused(caught.value)


def test_a_command_with_such_a_plan():
    body = json.loads(COMMAND["value"])
    for change in body["changes"]:
        if "query" in change:
            change["query"]["plan"] = of_format_1(change["query"]["plan"])
    with pytest.raises(UnreadableCommand) as caught:
        decode(7, COMMAND["key"].encode(), json.dumps(body).encode())
    assert "is older than format zero" in caught.value.detail
    assert "the last build of version 0.1.0 reads it" in caught.value.detail
    assert caught.value.hint
