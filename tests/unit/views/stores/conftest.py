from __future__ import annotations

import pytest

from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import TYPES, open_store


@pytest.fixture(scope="session")
def budget():
    return StoreBudget(cache_bytes=8 << 20, buffer_bytes=8 << 20, store_buffer_bytes=1 << 20)


@pytest.fixture(params=TYPES)
def kind(request):
    return request.param


@pytest.fixture
def store(kind, tmp_path, budget):
    store_ = open_store(kind, tmp_path / "s", budget)
    yield store_
    store_.close()
