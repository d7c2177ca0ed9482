"""Reads of a table whose rows are moved to another store meanwhile."""

from __future__ import annotations

import pytest

from ksql.query.pull import TableNotReady
from ksql.stores.base import StoreClosed
from tests.unit.query.pulls import bound


@pytest.mark.parametrize(
    "text", ["SELECT * FROM N WHERE K = 'a';", "SELECT * FROM N;", "SELECT * FROM W WHERE K = 'a';"]
)
def test_a_store_that_was_closed_meanwhile_is_no_fault_of_the_server(text):
    """STORE_TYPE has changed: the rows are in another store at once."""
    query, tables = bound(text)
    tables.store.close()
    with pytest.raises(TableNotReady) as caught:
        list(query.batches())
    error = caught.value
    assert (error.code, error.is_ready(), error.patience_s > 0) == (50302, True, True)
    assert error.message == StoreClosed("/var/lib/0").message
    assert "/var/lib" not in error.text()
