"""The registry on SQLite, and what only a file can suffer."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from ksql.ledger.database import default_url
from ksql.ledger.schemastore import SchemaStore
from ksql.registry import errors as err
from ksql.registry.local import LocalRegistry
from ksql.registry.subjects import Subjects
from ksql.topics.registry import RegistryUnreachable
from tests.unit.registry.contract import ROOT, SubjectsContract, avro

ENDLESS = """
import itertools, sys
from ksql.ledger.schemastore import SchemaStore
from ksql.registry.subjects import Subjects
from ksql.topics.registry import Schema
subjects = Subjects(SchemaStore(sys.argv[1]))
for number in itertools.count():
    text = '{"title": "t%d"}' % number
    made = subjects.register("s%d" % (number % 3), Schema("JSON", text))
    print(made.id, flush=True)
"""


@pytest.fixture
def url(tmp_path):
    return default_url(tmp_path)


class TestSubjects(SubjectsContract):
    pass


def test_a_locked_file_is_told_and_works_again(tmp_path, url):
    store = SchemaStore(url, busy_ms=1)
    registry = LocalRegistry(Subjects(store))
    registry.register("s", avro())
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RegistryUnreachable, match=r"ledger\.db"):
        registry.register("s", avro("a"))
    assert registry.latest("s").id == 1  # reading goes on
    other.execute("ROLLBACK")
    assert registry.register("s", avro("a")) == 2
    other.close()
    store.close()


def test_a_lost_file_is_made_anew_and_no_id_comes_twice(tmp_path, url):
    store = SchemaStore(url)
    subjects = Subjects(store)
    registry = LocalRegistry(subjects)
    registry.register("s", avro())
    registry.by_id(1)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(err.StoreFailed):
        subjects.subjects()
    assert registry.latest("s") is None
    assert registry.register("s", avro("a")) == 2
    assert registry.by_id(1).kind == "AVRO"  # it was asked for before
    store.close()


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing_half_done(url):
    command = [sys.executable, "-c", ENDLESS, url]
    acknowledged = 0
    for wanted in (7, 5):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
            assert writer.stdout is not None
            for _ in range(wanted):
                acknowledged = max(acknowledged, int(writer.stdout.readline()))
            writer.kill()
    store = SchemaStore(url)
    subjects = Subjects(store)
    entries = subjects.entries(deleted=True)
    assert sorted(entry.id for entry in entries) == list(range(1, subjects.last_id() + 1))
    assert subjects.last_id() >= acknowledged
    for name in subjects.subjects():
        versions = subjects.versions(name)
        assert versions == list(range(1, len(versions) + 1))
    store.close()
