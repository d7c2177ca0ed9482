"""Properties are tried on few examples, without a deadline: the cores may be shared."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

settings.register_profile("unit", max_examples=10, deadline=None)
settings.load_profile("unit")


# thousands of tests and their modules stay to the end: the collector need not look at them
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    gc.freeze()
    gc.enable()
