"""Requests to the schema registry with odd bodies, schemas and parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ksql.registry.rest import create_app
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.fuzz.mutate import ODD_VALUES, damaged
from tests.fuzz.service import Doors
from tests.unit.registry.memorylog import MemoryLog

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_FRESH_AFTER = 300  # requests
ODD: list[Any] = [*ODD_VALUES, 1, 2**31, "x" * 3000, "BACKWARD", "IMPORT", "AVRO"]
SCHEMAS = {
    "AVRO": [
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 0}]}',
        '{"type": "record", "name": "n.R", "fields": [{"name": "a", "type": ["null", "n.R"]}]}',
        '{"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}',
        '{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}',
        '{"type": "array", "items": {"type": "map", "values": "string"}}',
        '{"type": "fixed", "name": "F", "size": 4}',
        '"int"',
        '["int", "string"]',
    ],
    "JSON": [
        '{"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}',
        '{"$ref": "#/definitions/a", "definitions": {"a": {"type": ["string", "null"]}}}',
        '{"oneOf": [{"const": 1}, {"enum": [1, "x"]}], "required": ["a"]}',
        "true",
        "{}",
        '{"type": "array", "items": {"$ref": "#"}, "maxItems": 3, "pattern": "(("}',
        '{"$ref": "other.json", "allOf": [{"multipleOf": 0}], "additionalProperties": false}',
    ],
    "PROTOBUF": [
        'syntax = "proto3"; message M { int32 a = 1; repeated string b = 2; }',
        'syntax = "proto3"; package p; import "x.proto"; message M { p.M a = 1; oneof o {} }',
        'syntax = "proto2"; message M { required int32 a = 1 [default = 5]; enum E { X = 0; } }',
        'syntax = "proto3"; message M { map<string, M> m = 536870911; reserved 3 to max; }',
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { message N {} }',
    ],
}
WORDS = [
    *"{}[],:;=<>\"'",
    "null",
    "-1",
    "0",
    "1e999",
    "99999999999999999999",
    "true",
    "record",
    "name",
    '"type"',
    '"items"',
    '"fields"',
    '"default"',
    '"$ref"',
    '"#"',
    "message",
    "enum",
    "oneof",
    "repeated",
    "reserved",
    "import",
    "M",
    "\\",
    "\\ud800",
    "\0",
    "é",
    '"required"',
    '"enum"',
]
SUBJECTS = ["a", "b", "a%2Fb", "%00", "%FF", ":.:a", ":.x:a", "é", "%25", "x" * 300, "%F0%9F%98%80"]
VERSIONS = ["1", "latest", "-1", "0", "2", "99999999999", "x", "%FF", "1.5", "²", ""]
QUERIES = [
    "",
    "?deleted=true",
    "?deleted=x",
    "?permanent=true",
    "?offset=-1&limit=-5",
    "?limit=99999999999999999999999",
    "?format=serialized",
    "?normalize=true",
    "?force=true",
    "?verbose=true",
    "?subjectPrefix=%FF",
    "?defaultToGlobal=true",
    "?fetchMaxId=true",
    "?offset=" + "9" * 5000,
    "?subject=%00",
    "?latestOnly=true",
    "?x&&=%%",
]
ACCEPTS = ["*/*", "application/json", "", "x", ";"]


class _Registry:
    """A registry that is made again from time to time."""

    def __init__(self):
        self._requests, self._doors, self._store = _FRESH_AFTER, None, None

    def ask(self, method, path, **request):
        if self._requests >= _FRESH_AFTER:
            if self._store is not None:
                self._store.close()
            self._store = SchemaStore(MemoryLog())
            self._doors, self._requests = Doors(create_app(Subjects(self._store))), 0
        self._requests += 1
        return self._doors.ask(method, path, **request)


_REGISTRY = _Registry()


def attempt(chance: random.Random) -> tuple[object, Callable[[], bool]]:
    """A request, and its sending."""
    given = request(chance)
    return given, lambda: send(given)


def send(given):
    """Whether it was answered with success."""
    method, path, headers, body = given
    return _REGISTRY.ask(method, path, headers=headers, content=body).is_success


def request(chance):
    """Method, path, headers and body."""
    headers = {"accept": chance.choice(ACCEPTS), "content-type": "application/json"}
    subject = chance.choice(SUBJECTS[:2] if chance.random() < 0.7 else SUBJECTS)
    version, query = chance.choice(VERSIONS), chance.choice(["", "", chance.choice(QUERIES)])
    if chance.random() < 0.6:
        path = chance.choice(
            [
                f"/subjects/{subject}/versions",
                f"/subjects/{subject}/versions",
                f"/subjects/{subject}",
                f"/compatibility/subjects/{subject}/versions/{version}",
                f"/compatibility/subjects/{subject}/versions",
            ]
        )
        return "POST", path + query, headers, _broken(chance, json.dumps(_schema(chance)).encode())
    path = chance.choice(
        [
            "/",
            "/contexts",
            "/v1/metadata/id",
            "/schemas",
            "/schemas/types",
            "/subjects",
            "/config",
            "/mode",
            f"/schemas/ids/{version}",
            f"/schemas/ids/{version}/schema",
            f"/mode/{subject}",
            f"/schemas/ids/{version}/subjects",
            f"/schemas/ids/{version}/versions",
            f"/schemas/guids/{subject}",
            f"/subjects/{subject}",
            f"/subjects/{subject}/versions",
            f"/subjects/{subject}/versions/{version}",
            f"/subjects/{subject}/versions/{version}/schema",
            f"/subjects/{subject}/versions/{version}/referencedby",
            f"/config/{subject}",
            "/nosuch",
        ]
    )
    names = ["compatibility", "normalize", "alias", "mode", "compatibilityLevel", "schema", "x"]
    body = {name: chance.choice(ODD) for name in chance.sample(names, 2)}
    if chance.random() < 0.5:
        levels = ["NONE", "FULL", "FORWARD_TRANSITIVE", "backward"]
        body = chance.choice(
            [
                {"compatibility": chance.choice(levels)},
                {"mode": "IMPORT"},
                {"mode": "READWRITE"},
                chance.choice(ODD),
            ]
        )
    method = chance.choice(["GET", "GET", "PUT", "DELETE", "POST", "HEAD"])
    return method, path + query, headers, _broken(chance, json.dumps(body).encode())


def _schema(chance):
    kind = chance.choice(list(SCHEMAS))
    text = chance.choice(SCHEMAS[kind])
    if chance.random() < 0.6:
        pieces = _pieces(text)
        damaged(chance, pieces, WORDS)
        text = "".join(pieces)
    body = {"schema": text, "schemaType": kind}
    if chance.random() < 0.2:
        name = chance.choice(["other.json", "x.proto", "n.R", ""])
        body["references"] = [{"name": name, "subject": "a", "version": chance.choice([1, -1, 7])}]
    if chance.random() < 0.2:
        names = ["schema", "schemaType", "references", "id", "version", "metadata", "ruleSet", "z"]
        body[chance.choice(names)] = chance.choice(ODD)
    return body


def _pieces(text):
    pieces, word = [], ""
    for sign in text:
        if sign.isalnum():
            word += sign
            continue
        pieces += [*([word] if word else []), sign]
        word = ""
    return [*pieces, *([word] if word else [])]


def _broken(chance, body):
    if chance.random() < 0.05:
        pieces = list(body)
        damaged(chance, pieces, [0, 0xFF, 0xD8, 0x22, 0x5C, 0x7B])
        return bytes(pieces)
    return body
