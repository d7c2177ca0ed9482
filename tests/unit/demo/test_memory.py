from __future__ import annotations

import os
import subprocess
import sys

from server.demo import frame


def test_a_tree_is_a_process_and_what_descends_from_it():
    table = [(1, 0, 100), (2, 1, 10), (3, 2, 1), (4, 1, 20), (9, 8, 5000)]
    assert frame.rss_of_tree(1, table) == 131
    assert frame.rss_of_tree(2, table) == 11
    assert frame.rss_of_tree(77, table) == 0


def test_a_child_counts():
    code = "import sys; held = bytearray(50_000_000); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        of_child = frame.tree_rss_bytes(child.pid)
        whole = frame.tree_rss_bytes(os.getpid())
        child.stdin.close()
    assert of_child > 40_000_000
    assert whole >= of_child + 10_000_000  # this process itself


def test_ps_and_proc_agree_about_a_child(monkeypatch, tmp_path):
    code = "import sys; held = bytearray(50_000_000); print(1, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        usual = frame.tree_rss_bytes(child.pid)
        monkeypatch.setattr(frame, "_PROC", tmp_path)  # as where there is none
        by_ps = frame.tree_rss_bytes(child.pid)
        child.stdin.close()
    assert abs(by_ps - usual) < 10_000_000
    assert by_ps > 40_000_000


def test_the_peak_stays():
    peak = frame.PeakMemory()
    peak.sample()
    assert peak.peak_bytes > 1_000_000
    peak.peak_bytes = highest = 2**60
    peak.sample()
    assert peak.peak_bytes == highest
