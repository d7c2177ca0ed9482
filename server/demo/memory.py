"""The memory that this process and its descendants hold: JVMs, Python workers and all."""

from __future__ import annotations

import os
import resource
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _RSS_PAGES = 1, 21  # fields of /proc/PID/stat, counted after the command's name


def tree_rss_bytes(root: int) -> int:
    """Return resident memory of a process and all its descendants; shared pages count for each.

    Source: proc(5), ``/proc/pid/stat``; elsewhere than on Linux ``ps`` is asked.
    """
    table = _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()
    return rss_of_tree(root, table)


def rss_of_tree(root: int, table: Iterable[tuple[int, int, int]]) -> int:
    """Return the sum below ``root``; the table has process, parent, bytes."""
    children: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = {}
    for pid, parent, size in table:
        children[parent].append(pid)
        sizes[pid] = size
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += sizes.get(pid, 0)
        waiting += children[pid]
    return total


def _from_proc() -> list[tuple[int, int, int]]:
    page = resource.getpagesize()
    processes = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        fields = stat[stat.rindex(")") + 2 :].split()
        processes.append((int(folder.name), int(fields[_PARENT]), int(fields[_RSS_PAGES]) * page))
    return processes


def _from_ps() -> list[tuple[int, int, int]]:
    listed = subprocess.run(
        ["ps", "-axo", "pid=,ppid=,rss="],  # noqa: S607 - where it lies differs by system
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (map(int, line.split()) for line in listed.stdout.splitlines())
    return [(pid, parent, kilobytes * 1024) for pid, parent, kilobytes in rows]


class PeakMemory:
    """The most that the tree of this process held whenever it was looked at."""

    def __init__(self) -> None:
        self.peak_bytes = 0

    def look(self) -> None:
        """Look again."""
        self.peak_bytes = max(self.peak_bytes, tree_rss_bytes(os.getpid()))
