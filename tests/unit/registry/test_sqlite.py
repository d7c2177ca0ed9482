"""The registry on SQLite, and what only a file can suffer."""

from __future__ import annotations

import sqlite3

import pytest

from ksql.ledger.database import default_url
from ksql.ledger.schemastore import SchemaStore
from ksql.registry import errors as err
from ksql.registry.local import LocalRegistry
from ksql.registry.subjects import Subjects
from ksql.topics.registry import RegistryUnreachable
from tests.unit.registry.contract import SubjectsContract, avro


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
