"""Kafka Streams in a process beside us: cases in, the records of its results out.

Its sources are the Java files of this folder. They are compiled into the user's cache, and again
when they change. Needs a JDK of at least 17 and Maven, which fetches Kafka Streams.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ksql.core.process.jars import cache_dir
from ksql.core.types.windowed import WindowedKeys
from tests.streams.cases import Case
from tests.streams.shapes import Given

HERE = Path(__file__).parent
Result = tuple[Any, ...]
"""Key, row and time; of a window the key ends in ``@start/end``.

Of several partitions also the one whose records gave it, and the one that it is written to.
"""
_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_BUILD_S = 1200
_MEMORY = Path("/dev/shm")


class OracleFailed(RuntimeError):
    """Kafka Streams could not run a case, or not be built."""


class Oracle:
    """The process; ``close`` ends it."""

    def __init__(self) -> None:
        built = build()
        # the stores of each case are synced often: in memory, where that is a folder, for speed
        memory = _MEMORY if _MEMORY.is_dir() else None
        self._folder = tempfile.TemporaryDirectory(prefix="ksql-streams-", dir=memory)
        command = ("java", *_JVM, "-cp", f"{built}{os.pathsep}{built}/lib/*", "Oracle")
        self._process = subprocess.Popen(
            (*command, self._folder.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def results(self, case: Case) -> list[Result]:
        """What Kafka Streams makes of a case.

        Raises: OracleFailed when it does not run.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(case.text + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the process has ended"}')
        if "error" in answer:
            raise OracleFailed(f"{answer['error']}\n{case.text}")
        results: list[Result] = list(map(tuple, answer["out"]))
        if "partitions" not in case.given:
            return results
        return [(shown_key(case.given, key), *more) for key, *more in results]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def shown_key(given: Given, key: str | None) -> str | None:
    """A key of a result, of which each letter is a byte; the bounds of a window are shown."""
    if key is None or "retention" not in given:
        return key
    alone, (start, end) = WindowedKeys(given.get("size")).split(key.encode("latin-1"))
    return f"{alone.decode('latin-1')}@{start}/{end}"


def build() -> Path:
    """Compile the oracle, unless it is there already; gives the folder of its classes."""
    sources = sorted([*HERE.glob("*.java"), HERE / "pom.xml"])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    folder = cache_dir() / "streams" / digest[:16]
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        whole = Path(scratch) / "whole"
        whole.mkdir()
        shutil.copy(HERE / "pom.xml", scratch)
        _run(
            ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=whole/lib"),
            scratch,
        )
        java = [str(path) for path in sources if path.suffix == ".java"]
        _run(("javac", "-cp", "whole/lib/*", "-d", "whole", *java), scratch)
        whole.rename(folder)
    return folder


def _run(command: tuple[str, ...], folder: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_BUILD_S
        )
    except FileNotFoundError as error:
        raise OracleFailed(f"{command[0]} is not on this machine") from error
    if done.returncode:
        raise OracleFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
