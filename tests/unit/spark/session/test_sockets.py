"""The folder in which the JVM and its workers have their sockets."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ksql.spark.session import session as module

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENABLED = "spark.python.unix.domain.socket.enabled"
_FOLDER = "spark.python.unix.domain.socket.dir"


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """Give a scratch space whose path leaves no room for a socket's name."""
    scratch = tmp_path / ("long" * 20) / "scratch-1"
    (scratch / "tmp").mkdir(parents=True)
    yield scratch
    module._remove(scratch)


def test_sockets_lie_in_the_scratch_space_if_their_paths_are_short_enough() -> None:
    folder = Path("/srv/ksql/spark/scratch-12345/tmp")
    assert module._sockets(folder.parent, folder) == {_ENABLED: "true", _FOLDER: str(folder)}


def test_sockets_of_a_deep_scratch_space_lie_in_a_folder_that_goes_with_it(deep: Path) -> None:
    folder = Path(module._sockets(deep, deep / "tmp")[_FOLDER])
    assert module._holds_sockets(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / ".left.sock").touch()
    module._remove(deep)
    assert not folder.exists()
    assert not deep.exists()


def test_the_folder_of_the_sockets_is_kept_when_spark_starts_again(deep: Path) -> None:
    first = module._sockets(deep, deep / "tmp")
    assert module._sockets(deep, deep / "tmp") == first


def test_a_folder_that_somebody_removed_is_replaced(deep: Path) -> None:
    first = Path(module._sockets(deep, deep / "tmp")[_FOLDER])
    first.rmdir()
    second = Path(module._sockets(deep, deep / "tmp")[_FOLDER])
    assert second.is_dir()


def test_without_a_short_place_the_loopback_interface_is_used(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(deep / "tmp"))
    assert module._sockets(deep, deep / "tmp") == {}
