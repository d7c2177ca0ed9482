"""Pull queries over streams that need all rows before they give the first one."""

from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from ksql.functions.registry import BUILTINS
from ksql.serving.clauses import check_clauses
from ksql.serving.pull import bind_stream_pull, needs_all_rows, raw_query, stream_columns
from ksql.serving.results import ResultRow
from ksql.sql.syntax import printer
from tests.unit.world import World

WORLD = World(
    "CREATE STREAM S (K STRING KEY, A INT, H BYTES HEADER('h')) "
    "WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
    "CREATE STREAM W (K STRING KEY, A INT) WITH (KAFKA_TOPIC='w', PARTITIONS=1, "
    "WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');"
)
S, W = WORLD.catalog.source("S"), WORLD.catalog.source("W")


class Raw:
    """The rows of ``raw_query``."""

    def __init__(self, *batches):
        self._batches = batches
        self.closed = False

    def batches(self):
        for batch in self._batches:
            yield [ResultRow(row) for row in batch]

    def close(self):
        self.closed = True


def query(text, *batches):
    raw = Raw(*batches)
    args = WORLD.parse(text), WORLD.catalog, BUILTINS, WORLD.settings, "query_1"
    return bind_stream_pull(*args)(raw), raw


ROWS: list[list[tuple[object, ...]]] = [
    [(10, "a", 3, b"x"), (20, "b", 1, None)],
    [],
    [(30, "a", 2, b"y")],
]


@pytest.mark.parametrize(
    ("text", "rows", "said"),
    [
        ("SELECT K, A FROM S ORDER BY A;", [("b", 1), ("a", 2), ("a", 3)], "Query Completed"),
        ("SELECT A FROM S ORDER BY ROWTIME DESC LIMIT 2;", [(2,), (1,)], "Limit Reached"),
        ("SELECT A FROM S OFFSET 2;", [(2,)], "Query Completed"),
        ("SELECT K, SUM(A) AS A FROM S GROUP BY K ORDER BY K;", [("a", 5), ("b", 1)],
         "Query Completed"),
        ("SELECT COUNT(*) AS C FROM S WHERE H IS NOT NULL;", [(2,)], "Query Completed"),
    ],
)  # fmt: skip
def test_rows(text, rows, said):
    rows_, _ = query(text, *ROWS)
    assert [row.values for batch in rows_.batches() for row in batch] == rows
    assert rows_.final_message == said
    assert {column.role.name for column in rows_.columns} == {"VALUE"}


def test_closing_it_ends_the_reading():
    rows_, raw = query("SELECT A FROM S ORDER BY A;", *ROWS)
    batches = rows_.batches()
    assert next(batches) == []
    rows_.close()
    assert (list(batches), raw.closed, rows_.final_message) == ([], True, None)


def test_the_rows_as_they_are():
    text = "SELECT COUNT(*) FROM {} X WHERE A > 1 GROUP BY K ORDER BY K LIMIT 1 OFFSET 1;"
    whole = WORLD.parse(text.format("S"))
    assert printer.statement(raw_query(whole, S)).split() == (
        ["SELECT", "ROWTIME,", "K,", "A,", "H", "FROM", "S", "X;"]
    )
    assert stream_columns(W) == ["ROWTIME", "WINDOWSTART", "WINDOWEND", "K", "A"]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("SELECT A FROM S WHERE A > 1 LIMIT 2;", False),
        ("SELECT A FROM S ORDER BY A;", True),
        ("SELECT A FROM S OFFSET 0;", True),
        ("SELECT COUNT(*) FROM S;", True),
        ("SELECT K FROM S GROUP BY K HAVING COUNT(*) > 1;", True),
    ],
)
def test_which_need_all_rows(text, needed):
    assert needs_all_rows(WORLD.parse(text), BUILTINS) == needed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM S JOIN W ON S.K = W.K;", "Pull queries don't support JOIN clauses."),
        ("SELECT K FROM S GROUP BY K;", "Pull queries don't support GROUP BY clauses."),
        ("SELECT COUNT(*) FROM S PARTITION BY K;", "don't support PARTITION BY clauses."),
        ("SELECT COUNT(*) FROM S WINDOW SESSION (1 SECOND) GROUP BY K;",
         "Pull queries don't support WINDOW clauses."),
        ("SELECT A FROM S ORDER BY ROWPARTITION;", "columns in ORDER BY clauses: `ROWPARTITION`"),
    ],
)  # fmt: skip
def test_refused(text, said):
    with pytest.raises(KsqlError) as caught:
        check_clauses(WORLD.parse(text), WORLD.catalog, WORLD.settings, BUILTINS)
    assert said in caught.value.text()
