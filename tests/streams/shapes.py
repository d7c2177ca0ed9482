"""The shapes of queries that are compared: what a case of each says, and its statements."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Given = dict[str, Any]
"""A case without its records: the shape, the kinds of its joins, its times in milliseconds."""
Draw = Callable[[random.Random], Given]

_COLUMNS = {"l": "V BIGINT, F STRING", "r": "W BIGINT", "s": "X BIGINT"}
_LENGTHS = (1, 7, 10, 1000, 60_000, 3_600_000)
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Join:
    """The source that comes to those before it."""

    other: str
    on: str
    within: bool = False


@dataclass(frozen=True)
class Shape:
    """What is drawn for a case; l and what is joined to it; the query over that."""

    draws: tuple[Draw, ...]
    streams: str
    tables: str
    joins: tuple[Join, ...]
    query: Callable[[Given, str], str]

    def draw(self, chance: random.Random) -> Given:
        """The kinds and times of a case."""
        return {name: value for draw in self.draws for name, value in draw(chance).items()}


def statements(given: Given, tag: str = "") -> str:
    """The case in SQL; the result is OUT. Topics are named after their sources, then the tag."""
    shape = SHAPES[given["shape"]]
    lines = []
    for topic in shape.streams + shape.tables:
        kind, key = ("STREAM", "KEY") if topic in shape.streams else ("TABLE", "PRIMARY KEY")
        columns = f"K STRING {key}, {_COLUMNS[topic]}"
        lines.append(
            f"CREATE {kind} {topic} ({columns}) WITH (KAFKA_TOPIC='{topic}{tag}', PARTITIONS=1);"
        )
    read = "l"
    for kind, join in zip(given.get("kind", "").split(), shape.joins, strict=True):
        within = f" {_within_clause(given)}" if join.within else ""
        read += f" {kind} JOIN {join.other}{within} ON {join.on}"
    query = shape.query(given, read).replace("OUT AS", f"OUT WITH (KAFKA_TOPIC='OUT{tag}') AS")
    return "\n".join([*lines, query])


def unit_ms(given: Given) -> int:
    """The length of time that records of the case lie apart by."""
    lengths = [given[name] for name in ("before", "after", "size", "gap") if name in given]
    return max(lengths, default=10)


# --- joins


def _kinds(*kinds: str) -> Draw:
    return lambda chance: {"kind": chance.choice(kinds)}


def _within(chance: random.Random) -> Given:
    after = chance.choice(_LENGTHS)
    before = chance.choice((after, after, 0, after // 2, 3 * after))
    grace = chance.choice((0, after // 2, 3 * after, None, None, 2 * _DAY_MS))
    return {"before": before, "after": after, "join-grace": grace}


def _within_clause(given: Given) -> str:
    within = f"WITHIN ({_ms(given['before'])}, {_ms(given['after'])})"
    grace = given["join-grace"]
    return within if grace is None else f"{within} GRACE PERIOD {_ms(grace)}"


def _rows(result: str, columns: str) -> Callable[[Given, str], str]:
    def query(given: Given, read: str) -> str:
        kinds = given["kind"].split()
        key = "ROWKEY" if "FULL" in kinds else "l.K"
        if kinds[-1] == "RIGHT":
            key = "r.K" if len(kinds) == 1 else "s.K"
        return f"CREATE {result} OUT AS SELECT {key} AS K, {columns} FROM {read};"

    return query


# --- aggregates

_FOLDS = "COUNT(*) AS C, SUM(V) AS S, COLLECT_LIST(V) AS L"


def _groups(given: Given, read: str) -> str:
    del given
    return f"CREATE TABLE OUT AS SELECT F, {_FOLDS} FROM {read} GROUP BY F;"


def _kept(chance: random.Random, size: int) -> Given:
    grace = chance.choice((0, size // 2, size, 5 * size))
    retention = size + grace + chance.choice((0, size, _DAY_MS))
    return {"grace": grace, "retention": retention, "final": chance.random() < 0.5}


def _windows(chance: random.Random) -> Given:
    size = chance.choice(_LENGTHS)
    advance = chance.choice((size, size, max(1, size // 2), max(1, size // 3)))
    return {"size": size, "advance": advance, **_kept(chance, size)}


def _sessions(chance: random.Random) -> Given:
    gap = chance.choice(_LENGTHS)
    return {"gap": gap, **_kept(chance, gap)}


def _windowed(given: Given, read: str) -> str:
    kept = f"RETENTION {_ms(given['retention'])}, GRACE PERIOD {_ms(given['grace'])}"
    if "gap" in given:
        window = f"SESSION ({_ms(given['gap'])}, {kept})"
    elif given["size"] == given["advance"]:
        window = f"TUMBLING (SIZE {_ms(given['size'])}, {kept})"
    else:
        hop = f"ADVANCE BY {_ms(given['advance'])}"
        window = f"HOPPING (SIZE {_ms(given['size'])}, {hop}, {kept})"
    emit = "FINAL" if given["final"] else "CHANGES"
    return (
        f"CREATE TABLE OUT AS SELECT l.K AS K, {_FOLDS} FROM {read} "
        f"WINDOW {window} GROUP BY l.K EMIT {emit};"
    )


def _ms(length: int) -> str:
    return f"{length} MILLISECONDS"


# --- all of them

_KINDS = ("INNER", "LEFT", "RIGHT", "FULL")
_ANY = _kinds(*_KINDS)
_OF_STREAM = _kinds(*_KINDS[:2])
_TWO = _kinds(*(f"{one} {two}" for one in _KINDS[:2] for two in _KINDS))
_TWO_OF_STREAM = _kinds(*(f"{one} {two}" for one in _KINDS[:2] for two in _KINDS[:2]))
_R, _S = Join("r", "l.K = r.K"), Join("s", "l.K = s.K")
_NEAR_R, _NEAR_S = Join("r", "l.K = r.K", within=True), Join("s", "l.K = s.K", within=True)
_FOREIGN = Join("r", "l.F = r.K")
_STREAM, _STREAM_OF_3 = _rows("STREAM", "V, F, W"), _rows("STREAM", "V, F, W, X")
_TABLE, _TABLE_OF_3 = _rows("TABLE", "V, F, W"), _rows("TABLE", "V, F, W, X")

SHAPES: dict[str, Shape] = {
    "stream-stream": Shape((_ANY, _within), "lr", "", (_NEAR_R,), _STREAM),
    "stream-chain": Shape((_TWO, _within), "lrs", "", (_NEAR_R, _NEAR_S), _STREAM_OF_3),
    "streams-table": Shape((_TWO_OF_STREAM, _within), "lr", "s", (_NEAR_R, _S), _STREAM_OF_3),
    "stream-table": Shape((_OF_STREAM,), "l", "r", (_R,), _STREAM),
    "stream-tables": Shape((_TWO_OF_STREAM,), "l", "rs", (_R, _S), _STREAM_OF_3),
    "table-table": Shape((_ANY,), "", "lr", (_R,), _TABLE),
    "table-chain": Shape((_TWO,), "", "lrs", (_R, _S), _TABLE_OF_3),
    "foreign-key": Shape((_OF_STREAM,), "", "lr", (_FOREIGN,), _TABLE),
    "foreign-chain": Shape((_TWO,), "", "lrs", (_FOREIGN, _S), _TABLE_OF_3),
    "table-aggregate": Shape((), "", "l", (), _groups),
    "join-aggregate": Shape((_ANY,), "", "lr", (_R,), _groups),
    "windows": Shape((_windows,), "l", "", (), _windowed),
    "sessions": Shape((_sessions,), "l", "", (), _windowed),
    "join-windows": Shape((_OF_STREAM, _within, _windows), "lr", "", (_NEAR_R,), _windowed),
    "join-sessions": Shape((_OF_STREAM, _within, _sessions), "lr", "", (_NEAR_R,), _windowed),
}
