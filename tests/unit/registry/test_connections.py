"""The registry's clients take no descriptors from those of REST, stores and Kafka."""

from __future__ import annotations

import contextlib
import socket

from ksql.core import raise_limit
from ksql.registry import rest
from ksql.registry.rest import RegistryServer
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.http.test_idle import to_the_end
from tests.unit.registry.memorylog import MemoryLog


def test_silent_clients_make_room(tmp_path, monkeypatch):
    assert raise_limit() // rest._SHARE > 0
    monkeypatch.setattr(rest, "_CONNECTIONS", 3)
    store = SchemaStore(MemoryLog())
    server = RegistryServer(Subjects(store), "127.0.0.1", 0, tmp_path / "port")
    port = int(server.start().rpartition(":")[2])
    try:
        with contextlib.ExitStack() as stack:
            silent = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
                for _ in range(4)
            ]
            assert to_the_end(silent[0]) == b""
    finally:
        server.stop()
        store.close()
