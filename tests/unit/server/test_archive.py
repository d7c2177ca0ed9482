from __future__ import annotations

import pytest

from ksql.core.errors import StartError
from ksql.core.process.jars import jar_files
from ksql.spark.session.cds_archive import JvmHome, shared_stand
from server.tools import archive, classes


@pytest.fixture
def stand(tmp_path, monkeypatch):
    fetched = jar_files("spark")
    monkeypatch.setenv("KSQL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(archive, "jar_files", lambda _: fetched)
    return shared_stand(fetched)


def test_both_are_written_once(stand, monkeypatch, tmp_path):
    written: list[JvmHome] = []

    def write(to, broker, folder):
        assert folder.is_dir()
        written.append(to)
        for file in (to.archive, broker):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    monkeypatch.setattr(classes, "write", write)
    assert [archive.main(), archive.main()] == [0, 0]
    assert written == [stand]
    [broker] = tmp_path.glob("broker/*/classes.jsa")
    broker.unlink()
    assert archive.main() == 0
    assert written == [stand, stand]


@pytest.mark.parametrize(
    "error", [StartError("Kafka cannot be started", detail="its port"), OSError("disk full")]
)
def test_a_failure_is_shown_in_a_line(stand, monkeypatch, capsys, error):
    def write(*_):
        raise error

    monkeypatch.setattr(classes, "write", write)
    assert archive.main() == 1
    shown = capsys.readouterr().err
    assert "Spark and Kafka start slowly" in shown
    assert str(error).split("\n", 1)[0] in shown
    assert not stand.archive.exists()
