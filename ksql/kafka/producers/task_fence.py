"""The process of this machine that writes for a task: named in a small file.

A producer whose transactional id was taken by another would learn so from the broker, as a fatal
error that its library shouts out. Nothing depends on the file but that noise: who holds a stale
turn is still fenced by the broker.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_FOLDER = "ksql-turns"


@dataclass(frozen=True, slots=True)
class TaskFence:
    """A claim to a name, good until another claims it."""

    path: Path
    token: str

    @classmethod
    def taken(cls, name: str) -> TaskFence:
        """Claim the name; its former holder loses it."""
        fence = cls(_folder() / hashlib.sha256(name.encode()).hexdigest(), uuid.uuid4().hex)
        with suppress(OSError):  # a full disk: then the broker decides, as it does between machines
            fence.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = fence.path.with_suffix(f".{fence.token}")
            fresh.write_text(fence.token, encoding="ascii")
            fresh.replace(fence.path)
        return fence

    def held(self) -> bool:
        """Return whether nobody else has claimed it."""
        try:
            return self.path.read_text(encoding="ascii") == self.token
        except OSError:
            return False


def _folder() -> Path:
    """Return Spark's scratch space, shared by all workers of an executor and gone with it."""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(scratch or tempfile.gettempdir()) / _FOLDER
