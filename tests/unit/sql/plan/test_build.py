"""What a query means, and every way in which it can be refused."""

from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from ksql.functions.registry import BUILTINS
from ksql.sql.plan import codec
from ksql.sql.plan.build import build
from ksql.sql.plan.explain import explain
from ksql.sql.plan.nodes import Aggregate, Rekey, TimeWindow
from ksql.sql.plan.walk import nodes
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, A BIGINT, B STRING, ST STRUCT<X INT, `y` STRING>, AR ARRAY<INT>)
  WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM S2 (K1 STRING KEY, K2 BIGINT KEY, A BIGINT)
  WITH (KAFKA_TOPIC='s2', PARTITIONS=1, KEY_FORMAT='JSON');
CREATE STREAM J (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='j', PARTITIONS=1);
CREATE STREAM I (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='i', PARTITIONS=1);
CREATE STREAM NOKEY (A BIGINT) WITH (KAFKA_TOPIC='nokey', PARTITIONS=1);
CREATE STREAM KAFKAV (K STRING KEY, A BIGINT)
  WITH (KAFKA_TOPIC='kafkav', PARTITIONS=1, VALUE_FORMAT='KAFKA');
CREATE TABLE T (ID STRING PRIMARY KEY, A BIGINT, NAME STRING)
  WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE T2 (ID BIGINT PRIMARY KEY, NAME STRING) WITH (KAFKA_TOPIC='t2', PARTITIONS=1);
CREATE TABLE T3 (ID STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='t3', PARTITIONS=1);
CREATE STREAM W (K STRING KEY, A BIGINT)
  WITH (KAFKA_TOPIC='w', PARTITIONS=1, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');
CREATE STREAM V (K STRING KEY, A BIGINT)
  WITH (KAFKA_TOPIC='v', PARTITIONS=1, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');
CREATE TABLE WT (K STRING PRIMARY KEY, A BIGINT)
  WITH (KAFKA_TOPIC='wt', PARTITIONS=1, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');
"""
WORLD = World(SCRIPT)


def built(text, *, persistent=True):
    statement = WORLD.parse(f"{text};")
    return build(statement, WORLD.catalog, BUILTINS, sink="OUT", persistent=persistent)


def columns(plan):
    return [n.name for n in plan.key], [n.name for n in plan.value]


REFUSED = [
    # FROM and JOIN
    ("SELECT * FROM ST", "Failed to prepare statement: ST does not exist."),
    ("SELECT * FROM S A JOIN S B ON A.K = B.K",
     "Can not join 'S' to 'S': self joins are not yet supported."),
    ("SELECT * FROM KAFKAV A JOIN T B ON A.K = B.ID",
     "Source(s) KAFKAV are using the 'KAFKA' value format. "
     "This format does not yet support JOIN."),
    ("SELECT * FROM T A JOIN S B ON A.ID = B.K",
     "Invalid join order: table-stream joins are not supported; only stream-table joins. "
     "Got T [INNER] JOIN S."),
    ("SELECT * FROM S A FULL OUTER JOIN T B ON A.K = B.ID",
     "Invalid join type: full-outer join not supported for stream-table join. "
     "Got S [FULL] OUTER JOIN T."),
    ("SELECT * FROM S A RIGHT JOIN T B ON A.K = B.ID",
     "Invalid join type: right-outer join not supported for stream-table join. "
     "Got S RIGHT [OUTER] JOIN T."),
    ("SELECT * FROM S A JOIN T B WITHIN 1 HOUR ON A.K = B.ID",
     "A window definition was provided for a Stream-Table join. These joins are not windowed. "
     "Please drop the window definition (ie. the WITHIN clause) and try to execute your join "
     "again."),
    ("SELECT * FROM W A JOIN T B ON A.K = B.ID",
     "Can not join windowed source to non-windowed source.\n"
     "`W` is TUMBLING windowed\n`T` is not windowed"),
    ("SELECT * FROM S A JOIN T B ON A.K = B.ID AND A.A = B.A",
     "Invalid join condition: joins on multiple conditions are not yet supported. "
     "Got ((A.K = B.ID) AND (A.A = B.A))."),
    ("SELECT * FROM S A JOIN T B ON A.K <> B.ID",
     "Unsupported join expression: (A.K <> B.ID). Only equality join criteria is supported."),
    ("SELECT * FROM S A JOIN T B ON A.K = A.B",
     "Each side of the join must reference exactly one source and not the same source. "
     "Left side references `A` and right references `A`: (A.K = A.B)"),
    ("SELECT * FROM S A JOIN T B ON 'x' = B.ID",
     "Invalid comparison expression ''x'' in join '('x' = B.ID)'. "
     "Each side of the join comparision must contain references from exactly one source."),
    ("SELECT * FROM S A JOIN T B ON A.K = A.B + B.ID",
     "Invalid comparison expression '(A.B + B.ID)' in join '(A.K = (A.B + B.ID))'. "
     "Each side of the join comparision must contain references from exactly one source."),
    ("SELECT * FROM S A JOIN T B ON A.B = B.NAME",
     "Invalid join condition: stream-table joins require to join on the table's primary key. "
     "Got A.B = B.NAME."),
    ("SELECT * FROM S A JOIN T2 B ON A.K = B.ID",
     "Invalid join condition: types don't match. Got A.K{STRING} = B.ID{BIGINT}."),
    ("SELECT A.A, B.NAME FROM S A JOIN T B ON A.K = B.ID",
     "Key missing from projection (ie, SELECT). See https://cnfl.io/2LV7ouS.\n"
     "The query used to build `OUT` must include the join expressions A.K or B.ID in its "
     "projection (eg, SELECT A.K...)."),
    # clauses that do not go together
    ("SELECT A FROM S WINDOW TUMBLING (SIZE 1 SECOND)",
     "WINDOW clause requires a GROUP BY clause."),
    ("SELECT K, COUNT(*) FROM S GROUP BY K EMIT FINAL",
     "EMIT FINAL is only supported for windowed aggregations."),
    ("SELECT A FROM S HAVING A > 1", "HAVING requires a GROUP BY clause."),
    ("SELECT A FROM S ORDER BY A", "ORDER BY is only supported in pull queries."),
    ("SELECT A FROM S OFFSET 2", "OFFSET is only supported in pull queries."),
    ("SELECT * FROM T PARTITION BY A",
     "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the "
     "TABLE's key column ID instead of A."),
    ("SELECT * FROM T JOIN T3 ON T.ID = T3.ID PARTITION BY T.A",
     "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the "
     "TABLE's key column T_ID instead of T_A."),
    ("SELECT * FROM T FULL JOIN T3 ON T.ID = T3.ID PARTITION BY T.A + 1",
     "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the "
     "TABLE's key column ROWKEY instead of (T_A + 1)."),
    ("SELECT * FROM T JOIN T2 ON T.A = T2.ID PARTITION BY NULL",
     "Cannot repartition a TABLE source. If this is a join, make sure that the criteria uses the "
     "TABLE's key column T_ID instead of null."),
    ("SELECT K, COUNT(*) FROM S GROUP BY K PARTITION BY NOPE",
     "Line: 1, Col: 51: PARTITION BY column 'NOPE' cannot be resolved. 'NOPE' must be a column in "
     "the source schema since PARTITION BY is applied on the input."),
    ("SELECT K, A AS ALIAS FROM S PARTITION BY ABS(ALIAS)",
     "Line: 1, Col: 46: PARTITION BY column 'ALIAS' cannot be resolved. 'ALIAS' must be a column "
     "in the source schema since PARTITION BY is applied on the input."),
    ("SELECT WINDOWSTART, COUNT(*) AS C FROM W GROUP BY WINDOWSTART",
     "Reserved column name in select: `WINDOWSTART`. Please remove or alias the column."),
    ("SELECT K, COUNT(*) AS C, WINDOWEND AS WINDOWEND FROM W GROUP BY K, WINDOWEND",
     "Reserved column name in select: `WINDOWEND`. Please remove or alias the column."),
    ("SELECT K, ROWTIME AS ROWTIME FROM S",
     "Reserved column name in select: `ROWTIME`. Please remove or alias the column."),
    ("SELECT K, WINDOWSTART AS WINDOWEND, COUNT(*) AS C FROM W GROUP BY K, WINDOWSTART",
     "`WINDOWEND` is a reserved column name. You cannot use it as an alias for a column."),
    ("SELECT * FROM WT", "KSQL does not support persistent queries on windowed tables."),
    *((f"SELECT K, {select} FROM W WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY K{rest}",
       "Window bounds column WINDOWEND can only be used in the SELECT clause of windowed "
       "aggregations and can not be passed to aggregate functions.\n"
       "See https://github.com/confluentinc/ksql/issues/4397")
      for select, rest in (("COUNT(*)", ", WINDOWEND"), ("COUNT(*)", ", W.WINDOWEND + 1"),
                           ("MAX(WINDOWEND)", ""), ("COUNT(*)", " HAVING WINDOWEND > 1"))),
    # SELECT
    ("SELECT K, A AS ROWTIME FROM S",
     "`ROWTIME` is a reserved column name. You cannot use it as an alias for a column."),
    ("SELECT K, ROWTIME FROM S",
     "Reserved column name in select: `ROWTIME`. Please remove or alias the column."),
    ("SELECT K, NULL FROM S",
     "Can't infer a type of null. Please explicitly cast it to a required type, "
     "e.g. CAST(null AS VARCHAR)."),
    ("SELECT * FROM W PARTITION BY A",
     "Implicit repartitioning of windowed sources is not supported. "
     "See https://github.com/confluentinc/ksql/issues/4385."),
    ("SELECT * FROM W PARTITION BY NULL",
     "Implicit repartitioning of windowed sources is not supported. "
     "See https://github.com/confluentinc/ksql/issues/4385."),
    *(
        (f"SELECT W.K, V.K AS VK, W.A FROM W {kind} JOIN V WITHIN 1 HOUR ON W.K = V.K "
         f"PARTITION BY {by}",
         "Implicit repartitioning of windowed sources is not supported. "
         "See https://github.com/confluentinc/ksql/issues/4385.")
        for kind, by in (("", "W.A"), ("LEFT", "NULL"), ("RIGHT", "W.K"), ("FULL", "W.K"))
    ),
    ("SELECT K1 AS K, K2 AS K, A FROM S2", "Duplicate key columns found in schema: `K` BIGINT KEY"),
    ("SELECT A AS X, B AS X, COUNT(*) FROM S GROUP BY A, B",
     "Duplicate key columns found in schema: `X` STRING KEY"),
    ("SELECT K, A AS X, B AS X FROM S PARTITION BY A, B",
     "Duplicate key columns found in schema: `X` STRING KEY"),
    ("SELECT K, A, A FROM S", "Duplicate value columns found in schema: `A` BIGINT"),
    ("SELECT K, A AS K FROM S", "Duplicate value columns found in schema: `K` BIGINT"),
    ("SELECT X.* FROM S", "'X' is not a valid stream/table name or alias."),
    ("SELECT K, A->* FROM S", "Cannot select all fields of BIGINT: '->*' needs a STRUCT"),
    ("SELECT K FROM S", "The projection contains no value columns."),
    ("SELECT A FROM S",
     "Key missing from projection (ie, SELECT). See https://cnfl.io/2LV7ouS.\n"
     "The query used to build `OUT` must include the key column K in its projection "
     "(eg, SELECT K...)."),
    ("SELECT K1, A FROM S2",
     "Key missing from projection (ie, SELECT). See https://cnfl.io/2LV7ouS.\n"
     "The query used to build `OUT` must include the key columns K1 and K2 in its projection "
     "(eg, SELECT K1, K2...)."),
    ("SELECT K, K AS K2, A FROM S",
     "The projection contains a key column (`K`) more than once, aliased as: K and K2."),
    # WHERE
    ("SELECT K, A FROM S WHERE COUNT(*) > 1",
     "WHERE does not support aggregate functions: COUNT is an aggregate function."),
    # PARTITION BY
    ("SELECT * FROM S PARTITION BY A, NULL", "Cannot PARTITION BY multiple columns including NULL"),
    ("SELECT * FROM S PARTITION BY MAX(A)",
     "PARTITION BY does not support aggregate functions: MAX is an aggregate function."),
    ("SELECT * FROM S PARTITION BY A, A",
     "Duplicate PARTITION BY expression: S.A"),
    ("SELECT K, B FROM S PARTITION BY A + 1",
     "Key missing from projection (ie, SELECT). See https://cnfl.io/2LV7ouS.\n"
     "The query used to build `OUT` must include the partitioning expression (S.A + 1) in its "
     "projection (eg, SELECT (S.A + 1)...)."),
    # GROUP BY
    ("SELECT K, A FROM S GROUP BY K",
     "GROUP BY requires aggregate functions in either the SELECT or HAVING clause."),
    ("SELECT COUNT(*) FROM S",
     "CREATE TABLE AS SELECT statement does not support aggregate function [COUNT(ROWTIME)] "
     "without a GROUP BY clause."),
    ("SELECT COUNT(*) AS N, SUM(A) + COUNT(1) AS X FROM S",
     "CREATE TABLE AS SELECT statement does not support aggregate function "
     "[COUNT(ROWTIME), SUM(A), COUNT(1)] without a GROUP BY clause."),
    ("SELECT K, COUNT(*) FROM S GROUP BY K HAVING COUNT(*)",
     "Type error in HAVING expression: Should evaluate to boolean but is COUNT(*) (BIGINT) "
     "instead."),
    ("SELECT K, STRUCT(X := NULL) FROM S",
     "Can't infer a type of null. Please explicitly cast it to a required type, "
     "e.g. CAST(null AS VARCHAR)."),
    ("SELECT K, A, COUNT(*) FROM S GROUP BY K",
     "Non-aggregate SELECT expression(s) not part of GROUP BY: A"),
    ("SELECT K, A, B + 'x', COUNT(*) FROM S GROUP BY K",
     "Non-aggregate SELECT expression(s) not part of GROUP BY: A, (B + 'x')"),
    ("SELECT K, COUNT(*) FROM S GROUP BY K HAVING A > 1",
     "Non-aggregate HAVING expression not part of GROUP BY: A"),
    ("SELECT K, COUNT(SUM(A)) FROM S GROUP BY K",
     "Aggregate functions can not be nested: COUNT(SUM())"),
    ("SELECT K, LATEST_BY_OFFSET(B, CAST(2 AS INT) + 1) FROM S GROUP BY K",
     "Parameter 2 passed to function LATEST_BY_OFFSET must be a literal constant, "
     "but was expression: '(CAST(2 AS INTEGER) + 1)'"),
    ("SELECT K, COUNT(*) FROM S GROUP BY K, K", "Duplicate GROUP BY expression: S.K"),
    ("SELECT COUNT(*) FROM S GROUP BY K",
     "Key missing from projection (ie, SELECT). See https://cnfl.io/2LV7ouS.\n"
     "The query used to build `OUT` must include the grouping expression K in its projection "
     "(eg, SELECT K...)."),
    ("SELECT K, K AS L, COUNT(*) FROM S GROUP BY K",
     "The projection contains a key column more than once: `K` and `L`."),
    ("SELECT K, COUNT(*) FROM S GROUP BY COUNT(*)",
     "GROUP BY does not support aggregate functions: COUNT is an aggregate function."),
    ("SELECT K, COUNT(*) FROM KAFKAV GROUP BY K",
     "Source(s) KAFKAV are using the 'KAFKA' value format. "
     "This format does not yet support GROUP BY."),
    ("SELECT NAME, MAX(A) FROM T GROUP BY NAME",
     "The aggregation function MAX cannot be applied to a table source, only to a stream source."),
    ("SELECT NAME, MAX(A), MIN(A) FROM T GROUP BY NAME",
     "The aggregation functions MAX and MIN cannot be applied to a table source, "
     "only to a stream source."),
    ("SELECT NAME, COUNT(*) FROM T WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY NAME",
     "Windowing not supported for table aggregations."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused(text, message):
    with pytest.raises(KsqlError) as caught:
        built(text)
    assert caught.value.message == message


def test_a_name_that_looks_like_another_is_offered():
    with pytest.raises(KsqlError) as caught:
        built("SELECT * FROM NOKEYS")
    assert caught.value.hint == "Did you mean NOKEY?"
    assert caught.value.span is not None
    with pytest.raises(KsqlError) as caught:
        built("SELECT SS.* FROM S AS SSS")
    assert caught.value.hint == "Did you mean SSS?"


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("SELECT * FROM S PARTITION BY K", False),
        ("SELECT * FROM S2 PARTITION BY K1, K2", False),
        ("SELECT * FROM S2 PARTITION BY K2, K1", True),
        ("SELECT * FROM S2 PARTITION BY K1", True),
        ("SELECT * FROM W PARTITION BY K", False),
        ("SELECT * FROM S PARTITION BY NULL", True),
        ("SELECT S.K, NAME FROM S JOIN T ON S.K = T.ID PARTITION BY S.K", False),
        ("SELECT T.ID, NAME FROM S JOIN T ON S.K = T.ID PARTITION BY T.ID", True),
    ],
)
def test_rows_that_are_partitioned_so_already_stay_where_they_are(text, moved):
    assert any(isinstance(node, Rekey) for node in nodes(built(text).plan)) is moved


def test_partition_by_knows_no_aliases():
    with pytest.raises(KsqlError) as caught:
        built("SELECT A AS Z, B FROM S PARTITION BY Z")
    assert "'Z' must be a column in the source schema" in caught.value.message


@pytest.mark.parametrize("emit", ["CHANGES", "FINAL"])
@pytest.mark.parametrize("window", ["SESSION (1 SECOND)", "TUMBLING (SIZE 1 SECOND)"])
def test_windows_and_their_last_results_run(window, emit):
    plan = built(f"SELECT K, COUNT(*) AS C FROM S WINDOW {window} GROUP BY K EMIT {emit}").plan
    (aggregate,) = (node for node in nodes(plan) if isinstance(node, Aggregate))
    assert aggregate.window.grace_ms == (0 if emit == "FINAL" else 86_399_000)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("SELECT * FROM S", ["K"], ["A", "B", "ST", "AR"]),
        ("SELECT * FROM J JOIN I WITHIN 1 HOUR ON J.A = I.A PARTITION BY J.B", ["J_B"],
         ["J_A", "J_ROWTIME", "J_ROWPARTITION", "J_ROWOFFSET", "J_K",
          "I_A", "I_ROWTIME", "I_ROWPARTITION", "I_ROWOFFSET", "I_K"]),
        ("SELECT K AS ID, A FROM S", ["ID"], ["A"]),
        ("SELECT A, K FROM S", ["K"], ["A"]),
        ("SELECT K2, A, K1 FROM S2", ["K1", "K2"], ["A"]),
        ("SELECT A FROM NOKEY", [], ["A"]),
        ("SELECT K, A + 1, B AS C, A * 2 FROM S", ["K"], ["KSQL_COL_0", "C", "KSQL_COL_1"]),
        ("SELECT K, ST->X, ST->`y` FROM S", ["K"], ["X", "y"]),
        ("SELECT K, ST->* FROM S", ["K"], ["X", "y"]),
        ("SELECT K, A, ST->X AS A1, S.B FROM S", ["K"], ["A", "A1", "B"]),
        ("SELECT * FROM S PARTITION BY A", ["A"], ["B", "ST", "AR", "K"]),
        ("SELECT * FROM S PARTITION BY A + 1", ["KSQL_COL_0"], ["A", "B", "ST", "AR", "K"]),
        ("SELECT A + 1 AS Z, B FROM S PARTITION BY A + 1", ["Z"], ["B"]),
        ("SELECT * FROM S PARTITION BY NULL", [], ["A", "B", "ST", "AR", "K"]),
        ("SELECT B, A, K FROM S PARTITION BY A, B", ["A", "B"], ["K"]),
        ("SELECT * FROM S X JOIN T Y ON X.K = Y.ID", ["X_K"],
         ["X_A", "X_B", "X_ST", "X_AR", "Y_ID", "Y_A", "Y_NAME"]),
        ("SELECT X.K, Y.NAME, X.A, Y.A FROM S X LEFT JOIN T Y ON X.K = Y.ID", ["K"],
         ["NAME", "X_A", "Y_A"]),
        ("SELECT Y.ID, X.B FROM S X JOIN T Y ON Y.ID = X.K", ["ID"], ["B"]),
        ("SELECT Y.ID, X.B FROM S X JOIN T Y ON X.B + 'x' = Y.ID", ["ID"], ["B"]),
        ("SELECT K, COUNT(*) FROM S GROUP BY K", ["K"], ["KSQL_COL_0"]),
        ("SELECT B AS BB, A, SUM(A) S FROM S GROUP BY A, B", ["A", "BB"], ["S"]),
        ("SELECT A + 1 AS G, COUNT(*) N FROM S GROUP BY A + 1", ["G"], ["N"]),
        ("SELECT K, AS_VALUE(K) AS KV, COUNT(*) N FROM S GROUP BY K", ["K"], ["KV", "N"]),
        ("SELECT * FROM W", ["K"], ["A"]),
        ("SELECT K, WINDOWSTART, A FROM W", ["K"], ["A"]),
        ("SELECT * FROM W JOIN V WITHIN 1 HOUR ON W.K = V.K", ["W_K"],
         ["W_WINDOWSTART", "W_WINDOWEND", "W_A", "V_K", "V_WINDOWSTART", "V_WINDOWEND", "V_A"]),
        ("SELECT V.* FROM W JOIN V WITHIN 1 HOUR ON W.K = V.K", ["V_K"],
         ["V_WINDOWSTART", "V_WINDOWEND", "V_A"]),
        ("SELECT K, WINDOWSTART AS WS, COUNT(*) N FROM S "
         "WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K", ["K"], ["WS", "N"]),
        ("SELECT * FROM T", ["ID"], ["A", "NAME"]),
    ],
)  # fmt: skip
def test_the_columns_of_a_result(text, key, value):
    assert columns(built(text)) == (key, value)


def test_keys_as_written():
    world = World(
        "CREATE STREAM M (A INT KEY, B INT KEY, V INT) "
        "WITH (KAFKA_TOPIC='m', PARTITIONS=1, FORMAT='JSON');",
    )
    text = "CREATE STREAM X AS SELECT B, V, A FROM M;"
    assert [c.name for c in _sink(world, text).key] == ["A", "B"]
    planner = {"ksql.new.query.planner.enabled": "true"}
    assert [c.name for c in _sink(world, text, **planner).key] == ["B", "A"]


def _sink(world, text, **settings):
    settings = world.settings.with_overrides(settings)
    prepared = world.engine.dry_run(world.parse(text), text, settings)
    return codec.loads(prepared.plans["new"]).sink


def test_the_bounds_of_a_window_over_a_join_are_unknown():
    text = (
        "SELECT S.K, COUNT(*), WINDOWSTART AS W FROM S JOIN T ON S.K = T.ID "
        "WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY S.K"
    )
    with pytest.raises(KsqlError) as caught:
        built(text)
    assert "SELECT column 'WINDOWSTART' cannot be resolved." in caught.value.message


def test_a_generated_name_never_hides_a_column():
    world = World(
        "CREATE STREAM X (K STRING KEY, KSQL_COL_0 INT, F INT, ST STRUCT<F INT>) "
        "WITH (KAFKA_TOPIC='x', PARTITIONS=1);",
        "CREATE STREAM Y AS SELECT K, F + 1, ST->F, 2 FROM X;",
    )
    assert [c.name for c in world.plan("Y").sink.value] == ["KSQL_COL_1", "F_1", "KSQL_COL_2"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT * FROM S", "STREAM"),
        ("SELECT * FROM T", "TABLE"),
        ("SELECT K, COUNT(*) FROM S GROUP BY K", "TABLE"),
        ("SELECT * FROM S X JOIN T Y ON X.K = Y.ID", "STREAM"),
    ],
)
def test_kinds(text, kind):
    assert built(text).kind == kind


def test_a_transient_query_has_no_key():
    plan = built("SELECT A FROM S EMIT CHANGES LIMIT 3", persistent=False)
    assert columns(plan) == ([], ["A"])
    plan = built("SELECT COUNT(*) FROM S EMIT CHANGES", persistent=False)
    assert columns(plan) == ([], ["KSQL_COL_0"])
    plan = built("SELECT *, ROWTIME FROM W EMIT CHANGES", persistent=False)
    assert columns(plan) == ([], ["K", "WINDOWSTART", "WINDOWEND", "A", "ROWTIME"])


def test_repeated_aggregate_is_kept_once():
    plan = built(
        "SELECT K, COUNT(*) A, COUNT(*) + 1 B, SUM(A) C FROM S GROUP BY K "
        "HAVING COUNT(*) > 1 AND SUM(A) > 2 AND MAX(A) > 3"
    )
    aggregate = plan.plan.source.source
    assert [(fold.slot, fold.name) for fold in aggregate.folds] == [
        (0, "COUNT()"),
        (1, "SUM(A)"),
        (2, "MAX(A)"),
    ]
    assert aggregate.next_slot == 3
    assert len(plan.states) == 3


def test_a_window_and_its_key():
    plan = built(
        "SELECT K, COUNT(*) FROM S WINDOW HOPPING (SIZE 2 SECONDS, ADVANCE BY 1 SECOND, "
        "GRACE PERIOD 3 SECONDS) GROUP BY K"
    )
    assert plan.plan.source.window == TimeWindow(
        kind="HOPPING", size_ms=2000, advance_ms=1000, grace_ms=3000, retention_ms=5000
    )
    assert (plan.window.kind, plan.window.size_ms) == ("HOPPING", 2000)


def test_planning_is_a_function_of_the_statement():
    text = "SELECT X.K, Y.NAME FROM S X LEFT JOIN T Y ON X.K = Y.ID WHERE X.A > 1"
    assert built(text) == built(text)
    assert explain(built(text).plan) == (
        "> [ PROJECT ] X_K AS K, Y_NAME AS NAME\n"
        "  > [ FILTER ] WHERE (X_A > 1)\n"
        "    > [ JOIN ] LEFT stream-table ON X_K = Y_ID\n"
        "      > [ SOURCE ] stream S <- topic s, KAFKA / JSON\n"
        "      > [ SOURCE ] table T <- topic t, KAFKA / JSON"
    )
