from __future__ import annotations

import pytest

from ksql.stores.disk import DiskStore, StoreBudget
from ksql.stores.memory import MemoryStore


@pytest.fixture(scope="session")
def budget():
    return StoreBudget(cache_bytes=8 << 20, buffer_bytes=8 << 20, store_buffer_bytes=1 << 20)


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path, budget):
    made = MemoryStore() if request.param == "memory" else DiskStore.open(tmp_path / "s", budget)
    yield made
    made.close()
