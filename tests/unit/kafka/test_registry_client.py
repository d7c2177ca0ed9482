from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ksql.formats.schema_registry import (
    MemoryRegistry,
    Reference,
    RegistryUnreachable,
    Schema,
    SchemaNotFound,
    SchemaRejected,
)
from ksql.kafka.registry_client import ConfluentRegistry, RegistrySettings, registry_of


class Handler(BaseHTTPRequestHandler):
    """A few paths of the registry's REST interface over one in memory."""

    registry: MemoryRegistry
    paths: list[str]

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.paths.append(self.path)
        path = self.path.split("?")[0]
        try:
            if path == "/subjects":
                self.answer(200, self.registry.subjects())
            elif match := re.fullmatch(r"/schemas/ids/(\d+)", path):
                self.answer(200, shown(self.registry.by_id(int(match[1]))))
            elif match := re.fullmatch(r"/subjects/([^/]+)/versions/(\w+)", path):
                latest = self.registry.latest(match[1])
                if match[2] != "latest":
                    latest = self.registry.version(match[1], int(match[2]))
                if latest is None:
                    raise SchemaNotFound("no")
                place = {"subject": latest.subject, "version": latest.version, "id": latest.id}
                self.answer(200, shown(latest.schema) | place)
            elif match := re.fullmatch(r"/subjects/([^/]+)/versions", path):
                ids = self.registry.ids(match[1])
                if not ids:
                    raise SchemaNotFound("no")
                self.answer(200, list(range(1, len(ids) + 1)))
            else:
                self.answer(500, {"error_code": 50001, "message": "store"})
        except SchemaNotFound:
            self.answer(404, {"error_code": 40401, "message": "not found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        subject = self.path.split("/")[2]
        if "down" in body["schema"]:
            self.answer(500, {"error_code": 50001, "message": "store"})
            return
        if "broken" in body["schema"]:
            self.answer(409, {"error_code": 409, "message": "incompatible"})
            return
        references = tuple(
            Reference(r["name"], r["subject"], r["version"]) for r in body.get("references", ())
        )
        schema = Schema(body.get("schemaType", "AVRO"), body["schema"], references)
        self.answer(200, {"id": self.registry.register(subject, schema)})

    def do_DELETE(self):
        subject = self.path.split("?")[0].split("/")[2]
        if not self.registry.ids(subject):
            self.answer(404, {"error_code": 40401, "message": "not found"})
            return
        self.registry.delete(subject)
        self.answer(200, [1])


def shown(schema):
    references = [
        {"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references
    ]
    return {"schema": schema.text, "schemaType": schema.kind, "references": references}


@pytest.fixture
def server():
    Handler.registry, Handler.paths = MemoryRegistry(), []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http_server.server_port}"
        http_server.shutdown()
        thread.join()


def test_everything_we_ask_for(server):
    registry = ConfluentRegistry(RegistrySettings(server))
    inner = Schema("PROTOBUF", 'syntax = "proto3"; message I {}')
    outer = Schema("PROTOBUF", 'import "i.proto";', (Reference("i.proto", "inner", 1),))
    assert registry.latest("inner") is None
    assert registry.ids("inner") == []
    assert registry.register("inner", inner) == 1
    assert registry.register("t-value", outer) == 2
    assert registry.by_id(2) == outer
    count = len(Handler.paths)
    assert registry.by_id(2) == outer
    assert len(Handler.paths) == count
    latest = registry.latest("t-value")
    assert (latest.schema, latest.id, latest.subject, latest.version) == (outer, 2, "t-value", 1)
    assert registry.version("inner", 1).schema == inner
    assert registry.ids("t-value") == [2]
    assert registry.subjects() == ["inner", "t-value"]
    registry.delete("t-value")
    registry.delete("t-value")
    assert registry.subjects() == ["inner"]
    with pytest.raises(SchemaNotFound):
        registry.by_id(99)
    with pytest.raises(SchemaNotFound):
        registry.version("inner", 5)
    with pytest.raises(SchemaRejected, match="Could not register schema for subject: x"):
        registry.register("x", Schema("AVRO", "broken"))
    with pytest.raises(RegistryUnreachable):
        registry.register("x", Schema("AVRO", "down"))


def test_changes_by_others_are_seen(server):
    registry, other = (ConfluentRegistry(RegistrySettings(server)) for _ in range(2))
    int_, text = Schema("AVRO", '"int"'), Schema("AVRO", '"string"')
    registry.register("s", int_)
    assert registry.latest("s").schema == int_
    other.register("s", text)
    assert registry.latest("s").schema == text
    other.delete("s")
    assert registry.latest("s") is None
    registry.register("s", int_)
    assert other.latest("s").schema == int_


def test_a_registry_that_is_down():
    registry = ConfluentRegistry(RegistrySettings("http://127.0.0.1:9"), timeout_s=0.2, retries=0)
    with pytest.raises(RegistryUnreachable, match="cannot be reached"):
        registry.subjects()
    with pytest.raises(RegistryUnreachable):
        registry.register("x", Schema("AVRO", '"int"'))


def test_settings():
    prefix = "ksql.schema.registry"
    assert RegistrySettings.from_properties({"ksql.service.id": "x"}) is None
    assert RegistrySettings.from_properties({f"{prefix}.url": ""}) is None
    settings_ = RegistrySettings.from_properties(
        {
            f"{prefix}.url": "http://a:8081",
            f"{prefix}.basic.auth.user.info": "u:p",
            f"{prefix}.unknown": "x",
        }
    )
    assert settings_ == RegistrySettings("http://a:8081", (("basic.auth.user.info", "u:p"),))
    assert registry_of(settings_) is registry_of(RegistrySettings(settings_.url, settings_.options))


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@contextlib.contextmanager
def odd_registry(begin, piece=b"", pause_s=0.0, *, closes=False):
    """A registry that sends a begin, and then a piece again and again, or nothing, or ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def answer() -> None:
            client, _ = listening.accept()
            with client, contextlib.suppress(OSError):
                client.recv(1 << 16)
                client.sendall(begin)
                while not closes and not stop.wait(pause_s):
                    client.sendall(piece)

        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(answer)
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                stop.set()
                answered.result()


@pytest.mark.parametrize(
    ("begin", "piece", "pause_s", "closes", "why"),
    [
        (b"", b"", 0.01, False, "did not answer within 0.5 s"),
        (HEAD[:20], b"x", 0.01, False, "did not answer within 0.5 s"),
        (HEAD + b"content-length: 9000\r\n\r\n[", b" ", 0.01, False, "did not answer within 0.5 s"),
        (HEAD + b"content-length: 9000\r\n\r\n[", b"", 0.0, True, "peer closed connection"),
        (
            HEAD + b"content-length: 99999999\r\n\r\n",
            b" " * 9_000,
            0.0,
            False,
            "more than 90000 bytes",
        ),
    ],
)
def test_a_registry_that_stops_in_the_middle_of_its_answer(
    monkeypatch, begin, piece, pause_s, closes, why
):
    """A byte now and then kept a statement for ever, and an endless answer filled the memory."""
    monkeypatch.setattr("ksql.kafka.registry_session.MOST_BYTES", 90_000)
    limit_s = 30.0 if "bytes" in why or closes else 0.5
    with odd_registry(begin, piece, pause_s, closes=closes) as url:
        registry = ConfluentRegistry(RegistrySettings(url), timeout_s=limit_s, retries=0)
        with pytest.raises(RegistryUnreachable) as caught:
            registry.latest("t-value")
    assert why in caught.value.text()
