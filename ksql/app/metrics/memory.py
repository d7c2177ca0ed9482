"""Reads how much memory the processes of a server take, from Linux' /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from ksql.core import resident_bytes

Role = Literal["server", "spark", "kafka", "worker", "other"]
_PROC: Final = Path("/proc")
_BROKER: Final = b"kafka.Kafka"


def memory_by_role(pid: int | None = None, proc: Path = _PROC) -> Mapping[str, int]:
    """Return the resident bytes of a process (this one, if None) and of all below it, by role.

    Nothing where there is no such file system. A process that ends meanwhile is left out.
    """
    sizes: dict[str, int] = {}
    for role, process in _roles(pid or os.getpid(), "server", proc):
        size = resident_bytes(proc / str(process))
        if size:
            sizes[role] = sizes.get(role, 0) + size
    return sizes


def _roles(pid: int, role: Role, proc: Path) -> Iterator[tuple[Role, int]]:
    yield role, pid
    for child in _children(proc / str(pid)):
        yield from _roles(child, _role(proc / str(child), role), proc)


def _role(process: Path, parent: Role) -> Role:
    """Return what a process is: workers are Spark's children, and run Python."""
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return "other"
    program = command.split(b"\0")[0].rsplit(b"/")[-1]
    if program == b"java":
        return "kafka" if _BROKER in command else "spark"
    if parent in ("spark", "worker"):
        return "worker"
    return "other"


def _children(process: Path) -> list[int]:
    children: list[int] = []
    try:
        for thread in (process / "task").iterdir():
            children += map(int, (thread / "children").read_bytes().split())
    except OSError:  # it ends, or the kernel does not show them
        return children
    return children
