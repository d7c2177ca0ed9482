"""Spark's whole paths in a checkpoint lead into it, wherever it was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ksql.core.error_table import STATE_METADATA_UNKNOWN
from ksql.spark.checkpoint import incarnations
from ksql.spark.checkpoint.incarnations import repair_paths
from tests.stored.corpora import V1

QUERY = "CTAS_KEPT_COUNTS_8"
FROZEN = V1 / "service" / "state" / "kept_" / "queries" / QUERY
SCHEMA = "state/0/_stateSchema/default/0_683ec1fa-cc27-4734-b312-c43b63e0e598"
ONE = (FROZEN / "state/0/_metadata/v2/0").read_text("utf-8")


def metadata(checkpoint, operator=0, batch=0, text=None):
    """A file as Spark has written it where the checkpoint lay before."""
    file = checkpoint / "state" / str(operator) / "_metadata" / "v2" / str(batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = ONE.replace("state/0/", f"state/{operator}/")
    file.write_text(written if text is None else text, "utf-8")
    return file


def body(text):
    form, _, rest = text.partition("\n")
    assert form == "v2"
    return json.loads(rest)


def paths(file):
    text = body(file.read_text("utf-8"))
    return [path for store in text["stateStoreInfo"] for path in store["stateSchemaFilePaths"]]


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("place", ["queries/Q", "blank + @ ü %41/Q", "state/0/_stateSchema/x/y/Q"])
def test_a_moved_checkpoint_leads_into_itself_and_is_else_as_it_was(tmp_path, place):
    here = tmp_path / place
    file = metadata(here)
    repair_paths(here)
    assert paths(file) == [f"file:{here}/{SCHEMA}"]
    text = body(file.read_text("utf-8"))
    text["stateStoreInfo"][0]["stateSchemaFilePaths"] = body(ONE)["stateStoreInfo"][0][
        "stateSchemaFilePaths"
    ]
    assert text == body(ONE)


def test_it_may_move_again_and_again(tmp_path):
    here = tmp_path / "first"
    metadata(here)
    for name in ("second one", "third+ü", "%20"):
        repair_paths(here)
        here = here.rename(tmp_path / name)
    repair_paths(here)
    assert paths(here / "state/0/_metadata/v2/0") == [f"file:{here}/{SCHEMA}"]


def test_correct_paths_are_not_touched(tmp_path):
    file = metadata(tmp_path)
    repair_paths(tmp_path)
    checksum = file.with_name(".0.crc")
    checksum.write_bytes(b"sum")
    before = file.stat()
    repair_paths(tmp_path)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert checksum.exists()


def test_every_batch_of_every_operator_is_led_home(tmp_path):
    files = [metadata(tmp_path, *at) for at in ((0, 0), (0, 12), (1, 0), (11, 3))]
    repair_paths(tmp_path)
    for file in files:
        operator = file.parents[2].name
        assert paths(file) == [f"file:{tmp_path}/{SCHEMA.replace('/0/', f'/{operator}/', 1)}"]


def test_a_checksum_of_the_former_text_goes_and_other_files_stay(tmp_path):
    file = metadata(tmp_path)
    others = [file.with_name(name) for name in (".0.new", ".1.tmp", "later")]
    for other in (*others, file.with_name(".0.crc")):
        other.write_bytes(b"half")
    repair_paths(tmp_path)
    assert names(file.parent) == [".1.tmp", "0", "later"]


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_crash_leaves_what_the_next_start_ends(tmp_path, monkeypatch, written):
    files = [metadata(tmp_path, operator) for operator in range(3)]
    former = [file.read_bytes() for file in files]
    for file in files:
        file.with_name(".0.crc").write_bytes(b"sum")
    left = iter(range(written))
    real = Path.replace

    def replaced(self, target):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replaced)
    with pytest.raises(KeyboardInterrupt):
        repair_paths(tmp_path)
    monkeypatch.undo()
    for file, before in zip(files[written:], former[written:], strict=True):
        assert file.read_bytes() == before
    for file in files[:written]:
        assert not file.with_name(".0.crc").exists()
    repair_paths(tmp_path)
    for operator, file in enumerate(files):
        assert paths(file) == [f"file:{tmp_path}/{SCHEMA.replace('/0/', f'/{operator}/', 1)}"]
        assert names(file.parent) == ["0"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it begins with ''"),
        (ONE.replace("v2", "v3", 1), "it begins with 'v3'"),
        (ONE[:200], "Unterminated string"),
        ("v2\n[]", "it is no JSON object"),
        ("v2\n{}", 'it has no list "stateStoreInfo"'),
        ('v2\n{"stateStoreInfo":["default"]}', 'it has no list "stateSchemaFilePaths"'),
        (ONE.replace("stateSchemaFilePaths", "paths"), 'it has no list "stateSchemaFilePaths"'),
        (ONE.replace("state/0/_stateSchema", "state/1/_stateSchema"), "operator 0"),
        (ONE.replace("_stateSchema", "_schemas"), "is no path of a schema"),
        (ONE.replace("file:/var", "s3a://var"), "is no path of a schema"),
        ('v2\n{"stateStoreInfo":[{"stateSchemaFilePaths":[7]}]}', "7 is no path of a schema"),
    ],
)
def test_another_form_is_an_error_that_names_the_file_and_changes_nothing(tmp_path, text, reason):
    file = metadata(tmp_path, text=text)
    with pytest.raises(STATE_METADATA_UNKNOWN.base, match=STATE_METADATA_UNKNOWN.pattern) as caught:
        repair_paths(tmp_path)
    assert str(file) in str(caught.value)
    assert reason in caught.value.detail
    assert "ksql.state.anew" in caught.value.hint
    assert file.read_text("utf-8") == text


def test_bytes_that_are_no_text_are_an_error_too(tmp_path):
    file = metadata(tmp_path)
    file.write_bytes(b"v2\n\xff")
    with pytest.raises(STATE_METADATA_UNKNOWN.base, match="does not have the form"):
        repair_paths(tmp_path)


def test_an_incarnation_that_continues_is_led_home(tmp_path):
    here = tmp_path / "Q"
    incarnations.begin(here, "f00d")
    file = metadata(here)
    incarnations.require("Q", here)
    assert paths(file) == [f"file:{here}/{SCHEMA}"]


def test_a_checkpoint_without_state_has_nothing_to_lead_home(tmp_path):
    repair_paths(tmp_path)
    assert list(tmp_path.iterdir()) == []
