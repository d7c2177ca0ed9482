"""ksql-python: statements over HTTP/1.1, its fast path through hyper; run by an older Python."""

from __future__ import annotations

import json
import socket
import sys
import time

from ksql import KSQLAPI  # type: ignore[attr-defined]  # its package, not ours

client = KSQLAPI(sys.argv[1], timeout=120)  # this machine may have other work, too
client.ksql(
    "CREATE STREAM py_rides (bike STRING KEY, dock INT) "
    "WITH (KAFKA_TOPIC='py_rides', VALUE_FORMAT='JSON', PARTITIONS=1);"
)
client.ksql(
    "CREATE TABLE py_bikes AS SELECT bike, COUNT(*) AS rides FROM py_rides GROUP BY bike;",
    {"auto.offset.reset": "earliest"},
)
rows = [{"BIKE": "b7", "DOCK": 1}, {"BIKE": "b9", "DOCK": 2}, {"BIKE": "b7", "DOCK": 3}]
acks = client.inserts_stream("PY_RIDES", rows)
assert acks == [{"status": "ok", "seq": number} for number in range(3)], acks

earliest = {"auto.offset.reset": "earliest"}
query = "SELECT * FROM py_rides EMIT CHANGES LIMIT 3"
chunks = client.query(query, stream_properties=earliest, use_http2=True)
header, *unloaded = map(json.loads, "".join(chunks).splitlines())
assert header["columnNames"] == ["BIKE", "DOCK"], header
assert unloaded == [["b7", 1], ["b9", 2], ["b7", 3]], unloaded

endless = client.query("SELECT * FROM py_rides EMIT CHANGES", use_http2=True)
assert client.close_query(json.loads(next(endless))["queryId"])
rest = [json.loads(line) for line in "".join(endless).splitlines()]
assert rest == unloaded[: len(rest)], rest  # rows that were on their way

NOT_READY = "Return code is 503."  # the table's query has not finished its first batch


def pull() -> list[list[object]]:
    answer = client.query("SELECT bike, rides FROM py_bikes WHERE bike = 'b7'", use_http2=True)
    try:
        _header, *rows = map(json.loads, "".join(answer).splitlines())
    except socket.timeout:  # noqa: UP041  of older Pythons; the library waits for five seconds
        return []
    except ValueError as error:
        if str(error) != NOT_READY:
            raise
        return []
    return rows


pulled: list[list[object]] = []
deadline = time.monotonic() + 90
while not pulled or pulled[0][1] != 2:
    assert time.monotonic() < deadline, f"not within 90 s: two rides of b7, but {pulled}"
    time.sleep(0.2)
    pulled = pull()
assert pulled == [["b7", 2]], pulled
client.ksql("DROP TABLE py_bikes DELETE TOPIC;")
client.ksql("DROP STREAM py_rides DELETE TOPIC;")
