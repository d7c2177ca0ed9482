"""A backup as it is stored: read as it was written, or refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ksql.app.backup import form
from ksql.app.backup.directory import checked
from ksql.app.backup.form import NoBackup
from ksql.core.error_table import NEWER_BACKUP
from ksql.core.records import RawRecord
from tests.stored.corpora import V2
from tests.stored.make import RESTORED_MS, saved_records
from tests.stored.make import manifest as frozen

SAVED = form.SavedTopic(
    file="command_topic.jsonl",
    name="t",
    id="i",
    replicas=1,
    configs={"cleanup.policy": "delete"},
    first=0,
    end=8,
    records=3,
    sha256="",
)
MANIFEST = form.Manifest(
    made_ms=1, made_by="0.1.0", service_id="s_", cluster_id="c", topics=(SAVED,)
)
RECORDS = [
    RawRecord("t", 0, 0, 7, b'"k"', b'{"a":"\xc3\xbc"}', None),
    RawRecord("t", 0, 2, 8, None, b"\x00\xff", [("h", b"\xff"), ("h", None), ("g", b"x")]),
    RawRecord("t", 0, 5, -1, b"", None, None),
]


def test_records_are_read_as_they_were(tmp_path):
    file = tmp_path / "records"
    assert form.write_records(file, RECORDS) == 3
    assert list(form.read_records(file, SAVED)) == RECORDS


def test_so_is_the_manifest(tmp_path):
    whole = replace(MANIFEST, state=form.SavedState(files=2, bytes=9, sha256="f"))
    for manifest in (MANIFEST, whole):
        (tmp_path / form.MANIFEST).write_text(manifest.text())
        assert form.read_manifest(tmp_path) == manifest
    assert whole.topic("command_topic.jsonl") == SAVED
    assert whole.topic("schemas.jsonl") is None


def changed(**fields):
    return json.dumps({**json.loads(MANIFEST.text()), **fields})


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        MANIFEST.text()[:-9],
        changed(format="another"),
        changed(made_ms=2),
        changed(more=1),
        changed(version="1"),
        changed(topics=[{}]),
    ],
)
def test_malformed_backups_are_refused(tmp_path, text):
    if text is not None:
        (tmp_path / form.MANIFEST).write_text(text)
    with pytest.raises(NoBackup):
        form.read_manifest(tmp_path)


def test_backup_of_a_later_version_is_refused_by_name(tmp_path):
    (tmp_path / form.MANIFEST).write_text(changed(version=form.VERSION + 1))
    with pytest.raises(NEWER_BACKUP.base, match="format 2, this version knows up to 1"):
        form.read_manifest(tmp_path)


def test_a_backup_of_an_earlier_version_is_read():
    """Frozen: see tests/stored."""
    manifest = checked(V2 / "backup")
    commands, schemas = manifest.topics
    assert manifest == frozen(manifest.topics, manifest.state)
    assert manifest.made_ms == RESTORED_MS
    for saved, records in ((commands, saved_records()), (schemas, saved_records("schemas"))):
        assert list(form.read_records(V2 / "backup" / saved.file, saved)) == records
    assert (V2 / "backup" / form.MANIFEST).read_text() == manifest.text()
