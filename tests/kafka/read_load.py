"""Reads while servers come and go: clients at a steady rate, and which copies have answered."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kafka.read_clients import INFO
from tests.kafka.servers import EARLIEST, ROOT, Http, ServerProcess
from tests.waits import PATIENCE_S, await_true


def copies(http: Http, sql: str, properties: Mapping[str, str] = EARLIEST) -> list[dict[str, Any]]:
    """The copies that an answer is of."""
    body = {"sql": sql, "properties": dict(properties), "requestProperties": {INFO: "true"}}
    response = http.client.post("/query-stream", json=body)
    assert response.is_success, response.text
    info: list[dict[str, Any]] = json.loads(response.text.splitlines()[-1])["consistencyInfo"]
    return info


@dataclass
class Reads:
    """What clients that read all the while have done; ``reports`` are there at their end."""

    progress: Path
    reports: list[dict[str, Any]] = field(default_factory=list)

    def await_more(self, count: int) -> None:
        """Wait until the clients have had so many more answers, or failures."""
        goal = self._answered() + count
        await_true(f"{goal} answers", lambda: self._answered() >= goal)

    def _answered(self) -> int:
        return int(self.progress.read_text()) if self.progress.exists() else 0


@contextlib.contextmanager
def reading(
    servers: Sequence[ServerProcess],
    sql: str,
    keys: Sequence[str],
    clients: int = 30,
    per_second: int = 300,
) -> Iterator[Reads]:
    """Clients that read all the while."""
    reads = Reads(Path(tempfile.mkdtemp()) / "progress")
    task = {
        "progress": str(reads.progress),
        "urls": [each.http.url for each in servers],
        "sql": sql,
        "keys": list(keys),
        "clients": clients,
        "per_second": per_second,
    }
    command = [sys.executable, "-m", "tests.kafka.read_clients"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            yield reads
            reads.reports.append(json.loads(process.communicate(timeout=PATIENCE_S)[0]))
        finally:
            process.kill()
            shutil.rmtree(reads.progress.parent, ignore_errors=True)
