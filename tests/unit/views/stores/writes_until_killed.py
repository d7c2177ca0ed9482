"""A process that commits without end; each commit sets every key to the commit's number."""

from __future__ import annotations

import sys
from pathlib import Path

from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.txn import TxnStore
from tests.unit.views.stores.support import apply

KEYS = [b"%04d" % n for n in range(500)]


def main(path: str) -> None:
    # a small buffer, so that the kill also falls into flushes and compactions
    store = TxnStore.open(Path(path), StoreBudget(1 << 20, 1 << 20, store_buffer_bytes=64 << 10))
    number = store.position() or 0
    while True:
        number += 1
        value = b"%d" % number
        apply(store, [(key, value, number) for key in KEYS], number)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
