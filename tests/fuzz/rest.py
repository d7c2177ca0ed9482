"""Requests to the service's doors with odd bodies and statements: each is answered or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.fuzz.mutate import ODD_VALUES, damaged
from tests.fuzz.service import doors
from tests.fuzz.sql import SCRIPT, Writer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_FRESH_AFTER = 300  # requests
ODD: list[Any] = [
    *ODD_VALUES,
    "x" * 5000,
    {"": None},
    {"a": {"b": []}},
    "NaN",
    "SHOW STREAMS;",
    "S",
    2**63,
    "-1",
    "true",
]
PROPERTIES = [
    "auto.offset.reset",
    "ksql.query.pull.table.scan.enabled",
    "",
    "x",
    "ksql.streams.x",
    "ksql.service.id",
    "cache.max.bytes.buffering",
    "ksql.query.push.v2.enabled",
    "ksql.timestamp.throw.on.invalid",
    "ksql.persistence.default.format.value",
    "ksql.variable.substitution.enable",
    "ksql.insert.into.values.enabled",
    "\0",
    "ksql.functions.collect_list.limit",
    "max.poll.records",
    "ksql.max.push.queries",
    "ksql.push.query.state.max.bytes",
    "ksql.cast.strings.preserve.nulls",
]
PATHS = [
    "/",
    "/info",
    "/healthcheck",
    "/chc/live",
    "/chc/ready",
    "/status",
    "/status/x",
    "/status/%00",
    "/status/stream/S/create",
    "/status/%FF%FE",
    "/is_valid_property/x",
    "/is_valid_property/%FF",
    "/v1/metadata",
    "/v1/metadata/id",
    "/clusterStatus",
    "/heartbeat",
    "/lag",
    "/ws/query",
    "/docs",
    "/docs-files/x",
    "/docs-files/../server.py",
    "/openapi.json",
    "/ksql",
    "/query",
    "/query-stream",
    "/close-query",
    "/inserts-stream",
    "/nosuch",
    "/ksql/x",
    "/ksql/terminate",
    "/status?x=%FF&x=1",
    "/info?a[]=1",
    "//",
    "/status/" + "x" * 3000,
]
ACCEPTS = [
    "*/*",
    "application/json",
    "application/vnd.ksql.v1+json",
    "",
    "x",
    ";;q=,",
    "*/*;q=NaN",
    "application/vnd.ksqlapi.delimited.v1",
    "application/vnd.ksql.v1+protobuf",
    "a/b;q=1e999",
    "application/json;q=abc",
    "text/plain",
    ",,,",
]
CODINGS = ["gzip", "deflate", "*", "gzip;q=0", ";;", "gzip;q=x", "br", "identity, gzip"]
_HOST = {"host": "h", "port": 1}
_LAG = {"currentOffsetPosition": 1, "endOffsetPosition": 2, "offsetLag": 1}
_LAGS = {"stateStoreLags": {"Q#S": {"lagByPartition": {"0": _LAG}}}}
FORMS = [*ACCEPTS[:3], *ACCEPTS[7:9]]
TYPES = ["application/json", "", "x", "text/plain; charset=utf-16", "multipart/form-data", "a;b=c"]
_ROW = ["K", "A", "B", "D", "X", "T", "Y", "DT", "TM", "TS", "L", "M", "R", "O", "`K`", "``", "Z"]


class _Service:
    """Doors that are made again from time to time: statements leave something behind."""

    def __init__(self):
        self._requests = 0
        self._doors = None

    def ask(self, method, path, **request):
        if self._doors is None or self._requests >= _FRESH_AFTER:
            self.close()
            self._doors, self._requests = doors(SCRIPT), 0
        self._requests += 1
        return self._doors.ask(method, path, **request)

    def close(self):
        if self._doors is not None:
            self._doors.app.state.context.release()
        self._doors = None


_SERVICE = _Service()


def attempt(chance: random.Random) -> tuple[object, Callable[[], bool]]:
    """A request, and its sending."""
    given = request(chance)
    return given, lambda: send(given)


def send(given):
    """Whether it was answered with success."""
    method, path, headers, body = given
    answer = _SERVICE.ask(method, path, headers=headers, content=body)
    if path == "/ksql/terminate" and answer.is_success:
        _SERVICE.close()
    return answer.is_success


def request(chance):
    """Method, path, headers and body."""
    write, headers = Writer(chance), {"accept": chance.choice(ACCEPTS[:3])}
    roll = chance.random()
    if roll < 0.3:
        return "POST", "/ksql", headers, _body(chance, {"ksql": write.statement()})
    if roll < 0.6:
        headers["accept"] = chance.choice(FORMS if chance.random() < 0.9 else ACCEPTS)
        text = chance.choice([write.pull, write.push])()
        path, name = chance.choice([("/query-stream", "sql"), ("/query", "ksql")])
        return "POST", path, headers, _body(chance, {name: text})
    if roll < 0.75:
        return "POST", "/inserts-stream", headers, _rows(chance)
    return _odd(chance, write)


def _odd(chance, write):
    headers = {"accept": chance.choice(ACCEPTS), "content-type": chance.choice(TYPES)}
    method = chance.choice(["GET", "POST", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
    names = [
        "ksql",
        "sql",
        "streamsProperties",
        "properties",
        "sessionVariables",
        "queryId",
        "commandSequenceNumber",
        "deleteTopicList",
        "target",
        "requestProperties",
        "hostInfo",
        "ksqlHost",
        "hostStoreLags",
    ]
    body = {name: chance.choice([*ODD, _HOST, _LAGS]) for name in chance.sample(names, 4)}
    if chance.random() < 0.3:
        headers["accept-encoding"] = chance.choice(CODINGS)
    if chance.random() < 0.5:
        body |= {chance.choice(["ksql", "sql"]): write.statement()}
    if chance.random() < 0.2:
        body = chance.choice(ODD)
    return method, chance.choice(PATHS), headers, _broken(chance, json.dumps(body).encode())


def _body(chance, body):
    roll = chance.random()
    if roll < 0.08:
        properties = {chance.choice(PROPERTIES): chance.choice(ODD) for _ in range(2)}
        body |= {"properties" if "sql" in body else "streamsProperties": properties}
    elif roll < 0.15:
        name = chance.choice(["sessionVariables", "streamsProperties", "properties"])
        body |= {name: chance.choice([*ODD, {"x": chance.choice(ODD)}])}
    return _broken(chance, json.dumps(body, ensure_ascii=chance.random() < 0.5).encode())


def _broken(chance, body):
    if chance.random() < 0.04:
        pieces = list(body)
        damaged(chance, pieces, [0, 0xFF, 0xD8, 0x22, 0x5C, 0x7B])
        return bytes(pieces)
    return body


def _rows(chance):
    write = Writer(chance)
    lines = [{"target": chance.choice(["S", "s", "`S`", "N", "U", "", "``", "nosuch", *ODD])}]
    if chance.random() < 0.8:
        lines = [{"target": "S"}]
    for _ in range(chance.randrange(4)):
        row = {chance.choice(_ROW[:-1]): _item(chance, write) for _ in range(3)}
        lines.append(row if chance.random() < 0.95 else chance.choice(ODD))
    return b"\n".join(_broken(chance, json.dumps(line).encode()) for line in lines)


def _item(chance, write):
    if chance.random() < 0.5:
        return chance.choice(ODD)
    return chance.choice(
        [
            "2020-01-01",
            "2020-02-30",
            "+999999999-01-01",
            "23:59",
            "25:00",
            "2020-01-01T00:00:00",
            "\ud800",
            "AA==",
            "A",
            "1e99999",
            "1E400",
            "-0",
            1e-320,
            [1, "2", None],
            {"F": 1, "G": "x"},
            {"F": "x"},
            {"\ud800": 1},
            {"a": 1, "b": "x"},
            12345678.99,
            123456789012.999,
            "-9999999999999999999-01-01",
        ]
    )
