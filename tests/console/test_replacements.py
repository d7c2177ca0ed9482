"""Two people replace the same query: the second one replaces nothing, and sees why."""

from __future__ import annotations

import pytest

SOURCE = """
CREATE STREAM doubled (id STRING KEY, n INT)
  WITH (KAFKA_TOPIC='doubled', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
TWICE = "CREATE OR REPLACE STREAM twice AS SELECT * FROM doubled WHERE"


def compared(console, query, condition):
    console.open(f"query/{query}")
    console.press("Replace…")
    console.write(
        f"{TWICE} {condition};",
        within="dialog",
    )
    console.press("Compare")
    console.page.locator("dialog .added", has_text=condition).wait_for()


@pytest.mark.kafka
def test_two_tabs_that_replace_the_same_query(console, server):
    server.http.ksql(SOURCE)
    answer = server.http.one("CREATE STREAM twice AS SELECT * FROM doubled;")
    query = answer["commandStatus"]["queryId"]
    first, second = console(server.http.url), console(server.http.url)
    compared(first, query, "n > 1")
    compared(second, query, "n > 2")
    first.press("Replace the query")
    first.page.locator("dialog .verdict", has_text="Created query").wait_for()
    second.press("Replace the query")
    second.sees("The query was replaced meanwhile")
    statement = server.http.one(f"EXPLAIN {query};")["queryDescription"]["statementText"]
    assert statement.endswith("WHERE n > 1;")
    server.http.ksql(f"TERMINATE {query};")
