from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ksql.core.process.lock import DirectoryBusy, FileLock


def test_lock_has_a_single_named_holder(tmp_path):
    path = tmp_path / "state" / "lock"
    with FileLock(path), pytest.raises(DirectoryBusy) as busy:
        FileLock(path).acquire()
    assert f"process {os.getpid()}" in busy.value.message
    assert str(path.parent) in busy.value.message


def test_of_those_who_share_it_none_is_named(tmp_path):
    path = tmp_path / "lock"
    with FileLock(path):
        pass
    with FileLock(path, shared=True), pytest.raises(DirectoryBusy) as busy:
        FileLock(path).acquire()
    assert busy.value.message == f"the directory {tmp_path} is in use by another server"


def test_a_released_lock_can_be_taken_again(tmp_path):
    lock = FileLock(tmp_path / "lock")
    for _ in range(2):
        lock.acquire()
        lock.release()
    lock.release()
    assert lock.fd == -1


def test_a_file_left_by_a_dead_holder_locks_nobody_out(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import os, pathlib, sys; from ksql.core.process.lock import FileLock;"
        "FileLock(pathlib.Path(sys.argv[1])).acquire(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    with FileLock(path):
        assert path.read_text() == str(os.getpid())


def test_a_child_that_inherits_it_continues_holding_it(tmp_path):
    path = tmp_path / "lock"
    lock = FileLock(path)
    lock.acquire()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock.fd,)
    ) as child:
        lock.release()
        with pytest.raises(DirectoryBusy):
            FileLock(path).acquire(patience_seconds=0.1)
        child.communicate(b"\n")
    FileLock(path).acquire()


def test_a_shared_lock_has_several_holders_next_to_none_of_its_own(tmp_path):
    path = tmp_path / "lock"
    with FileLock(path, shared=True), FileLock(path, shared=True), pytest.raises(DirectoryBusy):
        FileLock(path).acquire()
    with FileLock(path), pytest.raises(DirectoryBusy):
        FileLock(path, shared=True).acquire()
