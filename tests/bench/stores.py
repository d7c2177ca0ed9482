"""`python -m tests.bench stores`: what the stores of tables cost, and their answers.

Each number comes from a process of its own; CPU is that of all its threads, RocksDB's too. The
feed is scripted, but for `topic` and `http`: records of 100 random bytes, in pieces of 5,000, as a
reader gives them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from ksql.core.records import Offset
from ksql.core.types.windowed import WindowedKeys
from ksql.views.store_writer import PartitionStore, StoreWriter
from ksql.views.stores.base import Change, Store
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import TYPES, StoreType, open_store
from ksql.views.stores.write_batch import coalesced
from tests.bench import serving
from tests.bench.alone import alone, say
from tests.bench.following import Topics, followed

ROWS = 1_000_000
WINDOW_ROWS = 10_000_000
_PIECE = 5_000
_VALUE_BYTES = 100
_FEW_KEYS = 10_000
_MOST_BYTES = 16 << 20
_COMMIT_S = 2.0
_PLACE = ("t", 0)
_RANGES = 2_000
_KEYS = 1_000


def main(argv: Sequence[str]) -> int:
    """Print all numbers, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench stores", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args(argv)
    if unknown := set(given.names) - set(MEASURES):
        parser.error(f"unknown names: {', '.join(sorted(unknown))}")
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.rows:,} rows")
    for name in given.names or MEASURES:
        MEASURES[name](given.rows)
    return 0


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _written() -> int:
    """Bytes that this process has handed to the system."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


# --- a scripted topic


def _records(rows: int, keys: int) -> Iterator[list[Change]]:
    """The records of a topic in pieces; ``keys`` come in no order."""
    random = Random(1)
    blob = random.randbytes(1 << 20)
    last = len(blob) - _VALUE_BYTES
    for start in range(0, rows, _PIECE):
        piece = []
        for offset in range(start, min(start + _PIECE, rows)):
            at = random.randrange(last)
            key = b"key%010d" % (offset * 7_919 % keys)
            piece.append((key, blob[at : at + _VALUE_BYTES], offset))
        yield piece


def _filling(store: Store, end: int) -> tuple[StoreWriter, PartitionStore]:
    part = PartitionStore(place=_PLACE, store=store, commit_s=_COMMIT_S)
    part.resume(0, end)
    writer = StoreWriter(_MOST_BYTES, time.monotonic)
    writer.fill([part])
    return writer, part


def _take(writer: StoreWriter, piece: list[Change]) -> None:
    """Give a piece; the times of the records are their offsets."""
    writer.take({_PLACE: coalesced(piece)}, {_PLACE: piece[-1][2] + 1})


# --- the cost of a row


def _fill(kind: StoreType, path: str, rows: int, keys: int) -> tuple[float, float, float]:
    """Return CPU and time of a row in us, and bytes written per byte of the records."""
    pieces = list(_records(rows, keys))
    store = open_store(kind, Path(path), StoreBudget())
    writer, _ = _filling(store, rows)
    size = sum(len(key) + len(value or b"") for piece in pieces for key, value, _ in piece)
    written, cpu, start = _written(), _cpu_s(), time.perf_counter()
    for piece in pieces:
        _take(writer, piece)
    writer.commit()
    spent, cpu = time.perf_counter() - start, _cpu_s() - cpu
    store.close()
    return cpu / rows * 1e6, spent / rows * 1e6, (_written() - written) / size


def rows(count: int) -> None:
    """What a row costs that is read from the topic, with distinct keys and with few."""
    say("a stored row:          keys     CPU us   time us   bytes written per byte")
    for kind in TYPES:
        for keys in (count, _FEW_KEYS):
            with tempfile.TemporaryDirectory() as directory:
                cpu, spent, amplified = alone(_fill, kind, f"{directory}/s", count, keys)
            say(f"  {kind:<14} {keys:>12,} {cpu:>10.2f} {spent:>9.2f} {amplified:>10.2f}")


# --- commits


def _commit(kind: StoreType, path: str, piece_rows: int) -> tuple[float, float]:
    """Return the median and the 99th percentile of a commit with its put, in ms."""
    store = open_store(kind, Path(path), StoreBudget())
    spent = []
    for number, piece in enumerate(islice(_records(_PIECE * 200, ROWS), 200), 1):
        start = time.perf_counter()
        store.put(piece[:piece_rows])
        store.commit(Offset(number))
        spent.append((time.perf_counter() - start) * 1e3)
    store.close()
    return statistics.median(spent), statistics.quantiles(spent, n=100)[98]


def commits(_count: int) -> None:
    """What a put and a commit take, of one row and of many."""
    say("put and commit:        rows     p50 ms    p99 ms")
    for kind in TYPES:
        for piece_rows in (1, 100, 5_000):
            with tempfile.TemporaryDirectory() as directory:
                middle, high = alone(_commit, kind, f"{directory}/s", piece_rows)
            say(f"  {kind:<14} {piece_rows:>12,} {middle:>10.3f} {high:>9.3f}")


# --- after a kill


def _fill_and_die(kind: StoreType, path: str, rows: int) -> None:
    store = open_store(kind, Path(path), StoreBudget())
    writer, _ = _filling(store, rows + 1)  # to have caught up would be a reason to commit
    for piece in _records(rows, rows):
        _take(writer, piece)
    os.kill(os.getpid(), signal.SIGKILL)


def _recover(kind: StoreType, path: str, rows: int) -> tuple[float, int]:
    """Return the time until all rows are there, in seconds, and how many were read again."""
    pieces = list(_records(rows, rows))
    start = time.perf_counter()
    store = open_store(kind, Path(path), StoreBudget())
    writer, part = _filling(store, rows)
    again = rows - part.reached
    for piece in pieces:
        if piece[-1][2] >= part.reached:
            _take(writer, [change for change in piece if change[2] >= part.reached])
    value = store.get(pieces[-1][-1][0])
    spent = time.perf_counter() - start
    assert value is not None
    store.close()
    return spent, again


def recovery(count: int) -> None:
    """From a kill -9 of a full store to its answer; the records come from memory."""
    say("recovery after kill -9:  seconds   read again")
    for kind in TYPES:
        with tempfile.TemporaryDirectory() as directory:
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=_fill_and_die, args=(kind, f"{directory}/s", count))
            process.start()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            spent, again = alone(_recover, kind, f"{directory}/s", count)
        say(f"  {kind:<14} {spent:>15.2f} {again:>12,}")


# --- ranges


def _ranges(kind: StoreType, path: str, rows: int) -> tuple[float, float]:
    """Return the median and 99th percentile of a range of 10 windows of a key, in ms."""
    store = open_store(kind, Path(path), StoreBudget())
    windows, each = WindowedKeys(60_000), rows // _KEYS
    for piece in range(0, each, 100):
        store.put(
            (windows.join(b"key%06d" % key, (start * 60_000, 0)), b"v" * _VALUE_BYTES, start)
            for start in range(piece, min(piece + 100, each))
            for key in range(_KEYS)
        )
        store.commit(Offset(piece + 1))
    store.put([(windows.join(b"key000001", (0, 0)), b"waiting", 0)])
    random, spent = Random(2), []
    for _ in range(_RANGES):
        first = random.randrange(each - 10) * 60_000
        key = b"key%06d" % random.randrange(_KEYS)
        start = time.perf_counter()
        ends = windows.join(key, (first, 0)), windows.join(key, (first + 10 * 60_000, 0))
        pairs = list(store.range(*ends))
        spent.append((time.perf_counter() - start) * 1e3)
        assert len(pairs) == 10
    store.close()
    return statistics.median(spent), statistics.quantiles(spent, n=100)[98]


def ranges(count: int) -> None:
    """A range of 10 windows of a key, among ten times as many rows as elsewhere."""
    total = count * (WINDOW_ROWS // ROWS)
    say(f"10 windows of a key among {total:,}:   p50 ms    p99 ms")
    for kind in ("rocksdb", "txn_rocksdb"):
        with tempfile.TemporaryDirectory() as directory:
            middle, high = alone(_ranges, kind, f"{directory}/s", total)
        say(f"  {kind:<14} {middle:>28.3f} {high:>9.3f}")


# --- from Kafka


def topic(count: int) -> None:
    """A table's topic into its stores: the same with Kafka's client; starts a broker."""
    say("a row from Kafka:      keys     CPU us    seconds until all are there")
    with Topics(count, _FEW_KEYS) as topics:
        for kind in TYPES:
            for name, (bootstrap, keys) in topics.items():
                rate = alone(followed, kind, bootstrap, name, count)
                say(f"  {kind:<14} {keys:>12,} {rate.cpu_us:>10.2f} {rate.seconds:>10.1f}")


MEASURES: dict[str, Callable[[int], None]] = {
    "rows": rows,
    "commits": commits,
    "recovery": recovery,
    "ranges": ranges,
    "topic": topic,
    "http": serving.http,
}
