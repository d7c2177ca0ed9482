"""The state directory, copied and put in place."""

from __future__ import annotations

import shutil

import pytest

from ksql.app.backup import directory


@pytest.fixture
def state(tmp_path):
    """A state directory as it lies there when a server has stopped."""
    root = tmp_path / "state"
    for name in (
        "service.json",
        "service.lock",
        "identity.lock",
        "registry.port",
        "s_/lease.json",
        "s_/carried_out.json",
        "s_/queries/CSAS_A_1/commits/0",
        "s_/stores/CSAS_A_1/LOCK",
        "s_/stores/CSAS_A_1/000001.sst",
        "spark/scratch-1/x",
        "spark/process.lock",
        "logs/spark.log",
        "servers/h_1/logs/spark.log",
        "servers/h_1/spark/x",
        "servers/h_1/s_/stores/a",
        "servers/h_1/server.lock",
        "broker/data/.lock",
        "replaced-20260101T000000Z/service.json",
        "s_/aside/logs/x",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "s_/queries/CSAS_A_1/empty").mkdir()
    return root


def files(folder):
    files_ = (each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix() for each in files_}


KEPT = {
    "service.json",
    "registry.port",
    "s_/carried_out.json",
    "s_/queries/CSAS_A_1/commits/0",
    "s_/stores/CSAS_A_1/LOCK",
    "s_/stores/CSAS_A_1/000001.sst",
    "servers/h_1/s_/stores/a",
    "broker/data/.lock",
    "s_/aside/logs/x",
}


def saved(state, tmp_path):
    directory.save(state, tmp_path / "copy", tmp_path / "list")
    return tmp_path / "copy", tmp_path / "list"


def test_backup_has_all_but_what_a_start_rebuilds(state, tmp_path):
    count, size = directory.save(state, tmp_path / "copy", tmp_path / "list")
    assert files(tmp_path / "copy") == KEPT
    assert (tmp_path / "copy/s_/queries/CSAS_A_1/empty").is_dir()
    assert (count, size) == (len(KEPT), sum(map(len, KEPT)))
    directory.check(tmp_path / "copy", tmp_path / "list")


@pytest.mark.parametrize("harm", ["changed", "gone", "more", "list"])
def test_a_copy_that_is_not_what_was_saved_is_noticed(state, tmp_path, harm):
    copy, listing = saved(state, tmp_path)
    match harm:
        case "changed":
            (copy / "service.json").write_text("Service.json")
        case "gone":
            (copy / "service.json").unlink()
        case "more":
            (copy / "odd").touch()
        case _:
            listing.write_text("what\n")
    with pytest.raises(ValueError, match=r"service\.json|odd|what"):
        directory.check(copy, listing)


def test_it_is_put_where_there_is_none(state, tmp_path):
    copy, listing = saved(state, tmp_path)
    shutil.rmtree(state)
    state.mkdir()
    (state / "service.lock").touch()
    assert directory.put(directory.stage(copy, state, listing), state, "now") is None
    assert files(state) == KEPT | {"service.lock"}


def test_existing_directory_is_moved_and_nothing_of_it_is_lost(state, tmp_path):
    copy, listing = saved(state, tmp_path)
    (state / "s_/queries/CSAS_A_1/commits/1").write_text("later")
    trash = directory.put(directory.stage(copy, state, listing), state, "now")
    assert trash is not None
    assert trash == state / "replaced-now"
    assert (trash / "s_/queries/CSAS_A_1/commits/1").read_text() == "later"
    assert not (state / "s_/queries/CSAS_A_1/commits/1").exists()
    assert files(state) >= KEPT


def test_staging_restarts_after_a_crash(state, tmp_path):
    copy, listing = saved(state, tmp_path)
    half = directory.stage(copy, state, listing)
    (half / "service.json").unlink()
    assert files(directory.stage(copy, state, listing)) == KEPT


def test_a_directory_with_locks_alone_holds_nothing(tmp_path):
    assert directory.held(tmp_path / "none") == []
    (tmp_path / "service.lock").touch()
    (tmp_path / "restore.json").touch()
    assert directory.held(tmp_path) == []
    (tmp_path / "service.json").touch()
    assert [each.name for each in directory.held(tmp_path)] == ["service.json"]
