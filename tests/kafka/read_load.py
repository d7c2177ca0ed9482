"""Reads while servers come and go: clients at a steady rate, and which copies have answered."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.kafka.read_clients import INFO
from tests.kafka.servers import EARLIEST, ROOT, Http, ServerProcess
from tests.waits import PATIENCE_S


def copies(http: Http, sql: str, properties: Mapping[str, str] = EARLIEST) -> list[dict[str, Any]]:
    """The copies that an answer is of."""
    body = {"sql": sql, "properties": dict(properties), "requestProperties": {INFO: "true"}}
    response = http.client.post("/query-stream", json=body)
    assert response.is_success, response.text
    info: list[dict[str, Any]] = json.loads(response.text.splitlines()[-1])["consistencyInfo"]
    return info


@contextlib.contextmanager
def reading(
    servers: Sequence[ServerProcess],
    sql: str,
    keys: Sequence[str],
    clients: int = 30,
    per_second: int = 300,
) -> Iterator[list[dict[str, Any]]]:
    """Clients that read all the while; at the end the block's list holds what each has seen."""
    task = {
        "urls": [each.http.url for each in servers],
        "sql": sql,
        "keys": list(keys),
        "clients": clients,
        "per_second": per_second,
    }
    command = [sys.executable, "-m", "tests.kafka.read_clients"]
    pipe = subprocess.PIPE
    offsets: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            yield offsets
            offsets.append(json.loads(process.communicate(timeout=PATIENCE_S)[0]))
        finally:
            process.kill()
