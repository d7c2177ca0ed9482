"""The shapes of queries that are compared: what a case of each says, and its statements."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Given = dict[str, Any]
"""A case without its records: the shape, the kind of its join, its times in milliseconds."""

_COLUMNS = {"l": "V BIGINT, F STRING", "r": "W BIGINT", "s": "X BIGINT"}
_LENGTHS = (1, 7, 10, 1000, 60_000, 3_600_000)
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Shape:
    """What is drawn for a case, its sources, and its query."""

    draw: Callable[[random.Random], Given]
    streams: str
    tables: str
    query: Callable[[Given], str]


def statements(given: Given) -> str:
    """The case in SQL; the result is OUT, its topic, too."""
    shape = SHAPES[given["shape"]]
    lines = []
    for topic in shape.streams + shape.tables:
        kind, key = ("STREAM", "KEY") if topic in shape.streams else ("TABLE", "PRIMARY KEY")
        columns = f"K STRING {key}, {_COLUMNS[topic]}"
        lines.append(
            f"CREATE {kind} {topic} ({columns}) WITH (KAFKA_TOPIC='{topic}', PARTITIONS=1);"
        )
    return "\n".join([*lines, shape.query(given)])


def unit_ms(given: Given) -> int:
    """The length of time that records of the case lie apart by."""
    lengths = [given[name] for name in ("before", "after", "size", "gap") if name in given]
    return max(lengths, default=10)


# --- joins


def _kinds(*kinds: str) -> Callable[[random.Random], Given]:
    return lambda chance: {"kind": chance.choice(kinds)}


def _within(chance: random.Random) -> Given:
    after = chance.choice(_LENGTHS)
    before = chance.choice((after, after, 0, after // 2, 3 * after))
    grace = chance.choice((0, after // 2, 3 * after, None, None, 2 * _DAY_MS))
    kind = chance.choice(("INNER", "LEFT", "RIGHT", "FULL"))
    return {"kind": kind, "before": before, "after": after, "grace": grace}


def _key(given: Given) -> str:
    """The key of a joined row, as it must be selected."""
    if "FULL" in given["kind"]:
        return "ROWKEY AS K"
    return "r.K AS K" if given["kind"] == "RIGHT" else "l.K AS K"


def _stream_stream(given: Given) -> str:
    grace = "" if given["grace"] is None else f" GRACE PERIOD {_ms(given['grace'])}"
    within = f"WITHIN ({_ms(given['before'])}, {_ms(given['after'])}){grace}"
    return (
        f"CREATE STREAM OUT AS SELECT {_key(given)}, V, F, W "
        f"FROM l {given['kind']} JOIN r {within} ON l.K = r.K;"
    )


def _stream_table(given: Given) -> str:
    return (
        f"CREATE STREAM OUT AS SELECT l.K AS K, V, F, W FROM l {given['kind']} JOIN r ON l.K = r.K;"
    )


def _table_table(given: Given) -> str:
    return (
        f"CREATE TABLE OUT AS SELECT {_key(given)}, V, F, W "
        f"FROM l {given['kind']} JOIN r ON l.K = r.K;"
    )


def _table_chain(given: Given) -> str:
    first, second = given["kind"].split()
    return (
        f"CREATE TABLE OUT AS SELECT {_key(given)}, V, F, W, X "
        f"FROM l {first} JOIN r ON l.K = r.K {second} JOIN s ON l.K = s.K;"
    )


def _foreign_key(given: Given) -> str:
    return (
        f"CREATE TABLE OUT AS SELECT l.K AS K, V, F, W FROM l {given['kind']} JOIN r ON l.F = r.K;"
    )


# --- aggregates

_FOLDS = "COUNT(*) AS C, SUM(V) AS S, COLLECT_LIST(V) AS L"


def _table_aggregate(given: Given) -> str:
    del given
    return f"CREATE TABLE OUT AS SELECT F, {_FOLDS} FROM l GROUP BY F;"


def _join_aggregate(given: Given) -> str:
    joined = f"l {given['kind']} JOIN r ON l.K = r.K"
    return f"CREATE TABLE OUT AS SELECT F, {_FOLDS} FROM {joined} GROUP BY F;"


def _grace_and_retention(chance: random.Random, size: int) -> Given:
    grace = chance.choice((0, size // 2, size, 5 * size))
    return {"grace": grace, "retention": size + grace + chance.choice((0, size, _DAY_MS))}


def _windows(chance: random.Random) -> Given:
    size = chance.choice(_LENGTHS)
    advance = chance.choice((size, size, max(1, size // 2), max(1, size // 3)))
    final = chance.choice((None, "close"))
    return {"size": size, "advance": advance, "final": final, **_grace_and_retention(chance, size)}


def _sessions(chance: random.Random) -> Given:
    gap = chance.choice(_LENGTHS)
    final = chance.choice((None, "close"))
    return {"gap": gap, "final": final, **_grace_and_retention(chance, gap)}


def _windowed(given: Given) -> str:
    kept = f"RETENTION {_ms(given['retention'])}, GRACE PERIOD {_ms(given['grace'])}"
    if "gap" in given:
        window = f"SESSION ({_ms(given['gap'])}, {kept})"
    elif given["size"] == given["advance"]:
        window = f"TUMBLING (SIZE {_ms(given['size'])}, {kept})"
    else:
        hop = f"ADVANCE BY {_ms(given['advance'])}"
        window = f"HOPPING (SIZE {_ms(given['size'])}, {hop}, {kept})"
    emit = "CHANGES" if given["final"] is None else "FINAL"
    return f"CREATE TABLE OUT AS SELECT K, {_FOLDS} FROM l WINDOW {window} GROUP BY K EMIT {emit};"


def _ms(length: int) -> str:
    return f"{length} MILLISECONDS"


_CHAINS = tuple(f"{one} {two}" for one in ("INNER", "LEFT") for two in ("INNER", "LEFT", "FULL"))
_ANY = ("INNER", "LEFT", "RIGHT", "FULL")
SHAPES: dict[str, Shape] = {
    "stream-stream": Shape(_within, "lr", "", _stream_stream),
    "stream-table": Shape(_kinds("INNER", "LEFT"), "l", "r", _stream_table),
    "table-table": Shape(_kinds(*_ANY), "", "lr", _table_table),
    "table-chain": Shape(_kinds(*_CHAINS), "", "lrs", _table_chain),
    "foreign-key": Shape(_kinds("INNER", "LEFT"), "", "lr", _foreign_key),
    "table-aggregate": Shape(lambda _: {}, "", "l", _table_aggregate),
    "join-aggregate": Shape(_kinds(*_ANY), "", "lr", _join_aggregate),
    "windows": Shape(_windows, "l", "", _windowed),
    "sessions": Shape(_sessions, "l", "", _windowed),
}
