"""Joins of every kind: which are legal, and what makes their key."""

from __future__ import annotations

import pytest

from tests.unit.world import World

WORLD = World(
    """
CREATE STREAM S (K INT KEY, V INT, M MAP<STRING, INT>) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K INT KEY, V INT, M MAP<STRING, INT>) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE STREAM Q (K INT KEY, V INT) WITH (KAFKA_TOPIC='q', PARTITIONS=1);
CREATE TABLE T (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE U (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='u', PARTITIONS=1);
CREATE TABLE W (ID INT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='w', PARTITIONS=1);
CREATE TABLE L (ID BIGINT PRIMARY KEY, V INT) WITH (KAFKA_TOPIC='l', PARTITIONS=1);
CREATE STREAM OWN (ROWKEY INT KEY, V INT) WITH (KAFKA_TOPIC='own', PARTITIONS=1);
CREATE STREAM "ROWKEY" ("1" INT KEY) WITH (KAFKA_TOPIC='sly', PARTITIONS=1);
CREATE STREAM WS (K INT KEY, V INT)
  WITH (KAFKA_TOPIC='ws', PARTITIONS=1, WINDOW_TYPE='SESSION');
CREATE STREAM WT (K INT KEY, V INT)
  WITH (KAFKA_TOPIC='wt', PARTITIONS=1, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 SECOND');
CREATE STREAM A (K INT KEY, B_C INT) WITH (KAFKA_TOPIC='a', PARTITIONS=1);
CREATE STREAM A_B (K INT KEY, C STRING) WITH (KAFKA_TOPIC='ab', PARTITIONS=1);
CREATE STREAM WH (K INT KEY, V INT)
  WITH (KAFKA_TOPIC='wh', PARTITIONS=1, WINDOW_TYPE='HOPPING', WINDOW_SIZE='2 SECONDS');
CREATE STREAM WJ (K INT KEY, V INT)
  WITH (KAFKA_TOPIC='wj', KEY_FORMAT='JSON', PARTITIONS=1, WINDOW_TYPE='TUMBLING',
        WINDOW_SIZE='1 SECOND');
"""
)
IN = "WITHIN 1 HOUR"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("STREAM X AS SELECT * FROM S JOIN R ON S.K = R.K",
         "Stream-Stream joins must have a WITHIN clause specified. None was provided."),
        ("TABLE X AS SELECT * FROM T JOIN U WITHIN 1 HOUR ON T.ID = U.ID",
         "A window definition was provided for a Table-Table join."),
        (f"STREAM X AS SELECT * FROM S JOIN R {IN} ON S.K = 0",
         "Invalid comparison expression '0' in join '(S.K = 0)'. Each side of the join "
         "comparision must contain references from exactly one source."),
        (f"STREAM X AS SELECT * FROM S JOIN R {IN} ON S.K = NULL",
         "Invalid comparison expression 'null' in join '(S.K = null)'."),
        (f"STREAM X AS SELECT * FROM S JOIN R {IN} ON S.K = S.V",
         "Each side of the join must reference exactly one source and not the same source. "
         "Left side references `S` and right references `S`"),
        (f"STREAM X AS SELECT * FROM S JOIN R {IN} ON S.K = R.K AND S.V = R.V",
         "Invalid join condition: joins on multiple conditions are not yet supported."),
        (f"STREAM X AS SELECT * FROM S JOIN R {IN} ON S.K > R.K",
         "Only equality join criteria is supported."),
        (f"STREAM X AS SELECT * FROM S JOIN R {IN} ON Z.K = R.K",
         "Failed to prepare statement: 'Z' is not a valid stream/table name or alias."),
        (f"STREAM X AS SELECT S.M, S.V FROM S JOIN R {IN} ON S.M = R.M", "Key column name: `S_M`."),
        (f"STREAM X AS SELECT S.V AS A, R.V AS B FROM S JOIN R {IN} ON S.K = R.K",
         "must include the join expressions S.K or R.K in its projection"),
        (f"STREAM X AS SELECT S.V AS A, R.V AS B FROM S JOIN R {IN} ON ABS(S.K) = ABS(R.K)",
         "ROWKEY was added as a synthetic key column because the join criteria did not match"),
        (f"STREAM X AS SELECT S.K, R.V FROM S FULL OUTER JOIN R {IN} ON S.K = R.K",
         "must include the join expression ROWKEY in its projection (eg, SELECT ROWKEY...)."),
        (f"STREAM X AS SELECT S.V FROM S JOIN OWN {IN} ON ABS(S.K) = ABS(OWN.ROWKEY)",
         "must include the join expression ROWKEY_1 in its projection (eg, SELECT ROWKEY_1...).\n"
         "ROWKEY_1 was added as a synthetic key column"),
        (f"STREAM X AS SELECT S.V FROM S JOIN OWN {IN} ON S.K = OWN.ROWKEY "
         f"JOIN \"ROWKEY\" Z {IN} ON ABS(S.K) = ABS(Z.`1`)",
         "must include the join expression ROWKEY_1 in its projection"),
        (f"STREAM X AS SELECT S.V FROM S JOIN OWN {IN} ON S.K = OWN.ROWKEY "
         f"JOIN \"ROWKEY\" {IN} ON ABS(S.K) = ABS(\"ROWKEY\".`1`)",
         "must include the join expression ROWKEY_2 in its projection"),
        (f"STREAM X AS SELECT S.K, S.K AS A, R.V FROM S JOIN R {IN} ON S.K = R.K",
         "The projection contains a key column (`S_K`) more than once, aliased as: A and S_K."),
        (f"STREAM X AS SELECT * FROM S JOIN WS {IN} ON S.K = WS.K",
         "Can not join windowed source to non-windowed source.\n"
         "`S` is not windowed\n`WS` is SESSION windowed"),
        (f"STREAM X AS SELECT * FROM WT JOIN WS {IN} ON WT.K = WS.K",
         "Incompatible windowed sources.\nLeft source: TUMBLING\nRight source: SESSION\n"
         "Session windowed sources can only be joined to other session windowed sources, and may "
         "still not result in expected behaviour as session bounds must be an exact match for the "
         "join to work\n"
         "Hopping and tumbling windowed sources can only be joined to other hopping and tumbling "
         "windowed sources"),
        (f"STREAM X AS SELECT * FROM WT JOIN WH {IN} ON WT.K = WH.K",
         "Implicit repartitioning of windowed sources is not supported."),
        (f"STREAM X AS SELECT * FROM WT JOIN WJ {IN} ON WT.K = WJ.K",
         "Implicit repartitioning of windowed sources is not supported."),
        ("TABLE X AS SELECT * FROM T JOIN U ON T.ID = U.V",
         "table-table joins require to join on the primary key of the right input table. "
         "Got T.ID = U.V."),
        ("TABLE X AS SELECT * FROM T JOIN L ON T.ID = L.ID",
         "Invalid join condition: types don't match. Got T.ID{INTEGER} = L.ID{BIGINT}."),
        ("TABLE X AS SELECT U.V AS A, T.V AS B FROM T JOIN U ON T.V = U.ID",
         "Primary key column missing in projection. For foreign-key table-table joins, the "
         "projection must include all primary key columns from the left input table (`T`). "
         "Missing column: `ID`."),
        ("TABLE X AS SELECT * FROM T RIGHT JOIN U ON T.V = U.ID",
         "RIGHT OUTER JOIN on a foreign key is not supported"),
        ("TABLE X AS SELECT * FROM T FULL JOIN U ON T.V = U.ID",
         "Invalid join type: full-outer join not supported for foreign-key table-table join. "
         "Got T [FULL] OUTER JOIN U."),
        ("STREAM X AS SELECT * FROM S JOIN T ON S.K = T.ID JOIN T ON S.V = T.ID",
         "N-way joins do not support multiple occurrences of the same source. Source: 'T'"),
        ("STREAM X AS SELECT * FROM S JOIN T ON S.K = T.ID JOIN U ON S.K = T.ID",
         "A join criteria is expected to reference the source (`U`) in the FROM clause, instead "
         "the right source references `T` and the left source references `S`"),
        ("STREAM X AS SELECT * FROM T JOIN U ON T.ID = U.ID JOIN S ON T.ID = S.K",
         "Invalid join order: table-stream joins are not supported; only stream-table joins. "
         "Got T [INNER] JOIN S."),
        ("TABLE X AS SELECT * FROM T JOIN U ON T.ID = U.ID JOIN L ON T.V = CAST(L.ID AS INT)",
         "table-table joins require to join on the primary key"),
        ("STREAM X AS SELECT S.V AS A FROM S JOIN T ON S.K = T.ID JOIN U ON S.K = U.ID",
         "must include the join expressions S.K, T.ID or U.ID in its projection"),
        ("STREAM X AS SELECT S.V AS A FROM S JOIN T ON S.K + 1 = T.ID JOIN U ON S.K = U.ID",
         "must include the join expressions S.K or U.ID in its projection"),
        ("STREAM X AS SELECT S.V AS A FROM S JOIN T ON S.K = T.ID JOIN U ON S.V + 1 = U.ID",
         "must include the join expression U.ID in its projection"),
        (f"STREAM X AS SELECT A.K, A.B_C, A_B.C AS C FROM A JOIN A_B {IN} ON A.K = A_B.K",
         "Duplicate value columns found in schema: `A_B_C` STRING\n"
         "In the rows of a join A.B_C and A_B.C are both called A_B_C."),
        (f"STREAM X AS SELECT * FROM S JOIN A {IN} ON S.K = A.K JOIN A_B {IN} ON S.K = A_B.K",
         "Duplicate value columns found in schema: `A_B_C` STRING"),
        (f"STREAM X AS SELECT B_C, C FROM A Z JOIN A_B Z {IN} ON B_C = LEN(C)",
         "The alias `Z` stands for more than one source."),
        ("TABLE X AS SELECT * FROM T FULL JOIN U ON T.ID = U.ID LEFT JOIN W ON U.ID = W.ID",
         "make sure that the criteria uses the TABLE's key column ROWKEY instead of U_ID."),
        ("TABLE X AS SELECT * FROM T JOIN U ON T.V = U.ID JOIN W ON U.ID = W.ID",
         "make sure that the criteria uses the TABLE's key column T_ID instead of U_ID."),
        ("TABLE X AS SELECT * FROM T JOIN U ON T.ID = U.ID JOIN W ON U.V = W.ID",
         "foreign-key table-table joins are not supported as part of n-way joins. "
         "Got U.V = W.ID."),
    ],
)  # fmt: skip
def test_refused(statement, message):
    assert message in WORLD.refuse(f"CREATE {statement};").text()
