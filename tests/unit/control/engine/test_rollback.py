"""A plan that an earlier version ran and took back: nobody ever reads what it left in the state."""

from __future__ import annotations

from functools import cache

import pytest

from ksql.control.engine.changes import PutQuery
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, A BIGINT, B BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, A BIGINT, B BIGINT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
"""


class Torn(World):
    """A world in which an earlier version has tried plans on the state itself."""

    def __init__(self, *scripts, **settings):
        super().__init__(SCRIPT, *scripts, **settings)

    def fail(self, text, meanwhile):
        """Run the new plan, as earlier versions did before its command was in the log.

        It was taken back then, as the command was not written.
        """
        [query] = [
            change.query
            for change in self.engine.dry_run(self.parse(text), text, self.settings).changes
            if isinstance(change, PutQuery)
        ]
        running = self.runner.running[query.version]
        old, running.program = running.program, self.runner._program(query)
        meanwhile()
        running.program = old

    def one(self, time, key="k", topic="s", a=100, b=1):
        self.feed(topic, (key, {"A": a, "B": b}, time))


AGGREGATES = ["SUM({})", "MAX({})", "MIN({})", "COLLECT_LIST({})", "TOPK({}, 2)", "AVG({})",
              "HISTOGRAM(CAST({} AS STRING))", "LATEST_BY_OFFSET({})"]  # fmt: skip


def counting(more="", window="", having=""):
    return f"TABLE U AS SELECT K, COUNT(*) N{more} FROM S {window} GROUP BY K {having};"


@cache
def fresh(query):
    """The aggregate of one record, in a world where nothing was taken back."""
    sound = World(SCRIPT, f"CREATE {query}")
    sound.feed("s", ("k", {"A": 100, "B": 5}, 3))
    return sound.last("U")["k"]["M"]


@pytest.mark.slow
@pytest.mark.parametrize("left", AGGREGATES)
@pytest.mark.parametrize("added", AGGREGATES)
@pytest.mark.parametrize("caching", ["0", "1000"])
def test_an_aggregate_never_reads_what_another_one_left(left, added, caching):
    world = Torn(**{"cache.max.bytes.buffering": caching})
    world.run(f"CREATE {counting()}")
    world.one(1)
    old = counting(f", {left.format('A')} M")
    world.fail(
        f"CREATE OR REPLACE {old}",
        lambda: (world.one(2), world.one(2, "x")),
    )
    new = counting(f", {added.format('B')} M")
    world.run(f"CREATE OR REPLACE {new}")
    world.one(3, b=5)
    world.one(3, "x", b=5)
    first = fresh(new)
    assert world.last("U") == {"k": {"N": 3, "M": first}, "x": {"N": 2, "M": first}}
    assert world.runner.errors() == []


@pytest.mark.parametrize("window", ["", "WINDOW TUMBLING (SIZE 1 MINUTE)"])
def test_the_old_plan_continues_over_what_was_left_and_so_does_the_next(window):
    world = Torn()
    world.run(f"CREATE {counting(window=window)}")
    world.one(1)
    for time, attempt in enumerate(("SUM(A)", "MIN(A)", "COLLECT_LIST(A)"), start=2):
        world.fail(
            f"CREATE OR REPLACE {counting(f', {attempt} M', window)}",
            lambda now=time: world.one(now),
        )
    world.one(5)
    assert [value["N"] for _, value, _ in world.out("U")] == [1, 2, 3, 4, 5]
    world.run(f"CREATE OR REPLACE {counting(', MAX(B) M', window)}")
    world.one(6)
    world.one(7, b=3)
    assert [value for _, value, _ in world.out("U")[-2:]] == [{"N": 6, "M": 1}, {"N": 7, "M": 3}]
    world.run(f"CREATE OR REPLACE {counting(', MAX(B) M, SUM(A) O', window)}")
    world.one(8, b=2)
    assert world.out("U")[-1][1] == {"N": 8, "M": 3, "O": 100}


def test_an_attempt_of_the_same_text_restarts():
    world = Torn()
    world.run(f"CREATE {counting()}")
    text = f"CREATE OR REPLACE {counting(', SUM(A) M')}"
    world.fail(text, lambda: (world.one(1), world.one(1, "x")))
    world.one(2)  # the old plan: not in the sum
    world.run(text)
    world.one(3)
    world.one(3, "x")
    assert world.last("U") == {"k": {"N": 3, "M": 100}, "x": {"N": 2, "M": 100}}


def test_an_attempt_that_dropped_an_aggregate_leaves_it_to_the_old_plan():
    world = Torn()
    world.run(f"CREATE {counting(having='HAVING SUM(A) > 150')}")
    world.one(1)
    world.fail(f"CREATE OR REPLACE {counting()}", lambda: world.one(2, a=0))
    world.one(3)
    assert world.last("U") == {"k": {"N": 3}}  # the old plan still knows of the first 100


def test_state_from_before_slot_generations_is_read():
    world = Torn()
    world.run(f"CREATE {counting(', SUM(A) M')}")
    world.one(1)
    [store] = world.runner.running[world.query("U").version].stores
    [(_, state)] = store.scan(b"g")
    assert state == [1, 1, 100]  # the timestamp and two cells, and no mark: as it has always been
    world.run(f"CREATE OR REPLACE {counting(', SUM(A) M, MAX(B) O')}")
    world.one(2)
    assert world.last("U") == {"k": {"N": 2, "M": 200, "O": 1}}


def test_aggregate_over_a_table_continues_to_undo():
    world = Torn("CREATE TABLE U AS SELECT B, COUNT(*) N FROM T GROUP BY B;")
    world.one(1, "x", "t")
    world.one(1, "y", "t")
    world.run("ALTER TABLE T ADD COLUMN C BIGINT;")
    world.fail(
        "CREATE OR REPLACE TABLE U AS SELECT B, COUNT(*) N, 1 AS O FROM T GROUP BY B;",
        lambda: world.feed("t", ("x", {"A": 1, "B": 2, "C": 9}, 2)),
    )
    world.feed("t", ("x", {"A": 1, "B": 3, "C": 9}, 3), ("y", None, 4))
    counts = {key: (value or {"N": 0})["N"] for key, value in world.last("U").items()}
    assert sorted(counts.values()) == [0, 0, 1]


def test_a_join_reads_of_a_longer_row_what_its_plan_knows():
    world = Torn("CREATE STREAM U AS SELECT S.K, S.A SA, T.A TA, S.ROWTIME R "
                 "FROM S JOIN T ON S.K = T.ID;")  # fmt: skip
    world.run("ALTER TABLE T ADD COLUMN C BIGINT;")
    world.fail(
        "CREATE OR REPLACE STREAM U AS SELECT S.K, S.A SA, T.A TA, S.ROWTIME R, T.C TC "
        "FROM S JOIN T ON S.K = T.ID;",
        lambda: world.feed("t", ("k", {"A": 1, "B": 2, "C": 9}, 2)),
    )
    world.one(30)
    assert world.out("U") == [("k", {"SA": 100, "TA": 1, "R": 30}, 30)]


def test_a_table_with_a_filter_reads_of_a_longer_row_what_its_plan_knows():
    world = Torn("CREATE TABLE U AS SELECT ID, A, ROWTIME R FROM T WHERE B > 1;")
    world.run("ALTER TABLE T ADD COLUMN C BIGINT;")
    world.fail(
        "CREATE OR REPLACE TABLE U AS SELECT ID, A, ROWTIME R, C FROM T WHERE B > 1;",
        lambda: world.feed("t", ("k", {"A": 1, "B": 2, "C": 9}, 2)),
    )
    world.feed("t", ("k", {"A": 5, "B": 2, "C": 9}, 3), ("k", None, 4))
    assert [(key, value) for key, value, _ in world.out("U")[-2:]] == [
        ("k", {"A": 5, "R": 3}),
        ("k", None),
    ]


def test_each_attempt_has_a_generation_of_its_own():
    world = World(SCRIPT, f"CREATE {counting()}")
    text = f"CREATE OR REPLACE {counting(', SUM(A) M')}"
    statement = world.parse(text)
    plans = {world.engine.dry_run(statement, text, world.settings).plans["new"] for _ in range(3)}
    assert len(plans) == 3
