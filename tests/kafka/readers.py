"""Clients that read one key after another at a steady rate, each from one server until that fails.

``python -m tests.kafka.readers``: the task as JSON on standard input; ends when that is closed and
prints what each client has seen.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit

INFO = "request.ksql.query.pull.consistency.info"


class Client:
    """One client: a connection, the failures that it has seen, and the copies it was answered from.

    A failure is any answer but the row of the key with the copy that it is of.
    """

    def __init__(self, number: int, task: dict[str, Any]) -> None:
        self.urls = task["urls"]
        self.at = number % len(self.urls)
        self.sql, self.keys = task["sql"], task["keys"]
        self.pause_s = task["clients"] / task["per_second"]
        self.asked, self.failures = 0, [""] * 0
        self.copies: dict[str, int] = {}
        self.slowest_ms = 0.0
        self._connection: http.client.HTTPConnection | None = None

    def run(self, ended: threading.Event) -> None:
        due = time.monotonic()
        while not ended.is_set():
            began = time.monotonic()
            try:
                self._ask(self.keys[self.asked % len(self.keys)])
            except (OSError, ValueError, http.client.HTTPException) as problem:
                self.failures.append(f"{self.urls[self.at]}: {type(problem).__name__} {problem}")
                self._connection = None
                self.at = (self.at + 1) % len(self.urls)
            self.slowest_ms = max(self.slowest_ms, (time.monotonic() - began) * 1000)
            self.asked += 1
            due += self.pause_s
            time.sleep(max(0.0, due - time.monotonic()))

    def _ask(self, key: str) -> None:
        if self._connection is None:
            place = urlsplit(self.urls[self.at]).netloc
            self._connection = http.client.HTTPConnection(place, timeout=30)
        body = {"sql": self.sql.format(key=key), "requestProperties": {INFO: "true"}}
        self._connection.request("POST", "/query-stream", json.dumps(body))
        response = self._connection.getresponse()
        text = response.read().decode()
        if response.status != 200:
            raise ValueError(text)
        _header, row, info = map(json.loads, text.splitlines())
        if row[0] != key:
            raise ValueError(text)
        for copy in info["consistencyInfo"]:
            kind = f"{copy['role']} {copy['state']} {'?' if copy['offsetLag'] is None else 'known'}"
            self.copies[kind] = self.copies.get(kind, 0) + 1


def main() -> None:
    task = json.loads(sys.stdin.readline())
    clients = [Client(number, task) for number in range(task["clients"])]
    ended = threading.Event()
    threads = [threading.Thread(target=each.run, args=(ended,)) for each in clients]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    found = [
        {
            "asked": each.asked,
            "failures": each.failures,
            "copies": each.copies,
            "slowest_ms": round(each.slowest_ms, 1),
        }
        for each in clients
    ]
    json.dump({"seconds": seconds, "clients": found}, sys.stdout)


if __name__ == "__main__":
    main()
