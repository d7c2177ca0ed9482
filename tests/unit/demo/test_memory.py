from __future__ import annotations

import os
import subprocess
import sys

from server.demo import memory


def test_a_tree_is_a_process_and_what_descends_from_it():
    table = [(1, 0, 100), (2, 1, 10), (3, 2, 1), (4, 1, 20), (9, 8, 5000)]
    assert memory.rss_of_tree(1, table) == 131
    assert memory.rss_of_tree(2, table) == 11
    assert memory.rss_of_tree(77, table) == 0


def test_a_child_counts():
    code = "import sys; held = bytearray(50_000_000); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        table = memory._from_proc() if memory._PROC.joinpath("self").exists() else memory._from_ps()
        assert memory.tree_rss_bytes(child.pid) > 40_000_000
        child.stdin.close()
    sizes = {pid: size for pid, _, size in table}
    assert sizes[child.pid] > 40_000_000
    assert memory.rss_of_tree(os.getpid(), table) >= sizes[os.getpid()] + sizes[child.pid]


def test_ps_and_proc_agree_about_this_process():
    mine = os.getpid()
    parents = {pid: parent for pid, parent, _ in memory._from_ps()}
    assert parents[mine] == os.getppid()
    if memory._PROC.joinpath("self").exists():
        assert {pid: parent for pid, parent, _ in memory._from_proc()}[mine] == os.getppid()


def test_the_peak_stays():
    peak = memory.PeakMemory()
    peak.look()
    assert peak.peak_bytes > 1_000_000
    peak.peak_bytes = highest = 2**60
    peak.look()
    assert peak.peak_bytes == highest
