-- Statements beside queries: inserts, settings, types, drops, and the assertions of such files themselves.

----------------------------------------------------------------------------------------------------
--@test: INSERT VALUES converts, fills with NULL and takes expressions
----------------------------------------------------------------------------------------------------
CREATE STREAM things (id BIGINT KEY, price DECIMAL(5, 2), tags ARRAY<STRING>, at_ TIMESTAMP, extent STRUCT<w INT, h INT>) WITH (kafka_topic='things', value_format='JSON');
CREATE STREAM copied AS SELECT id, price, tags[1] AS tag, at_, extent->h AS h FROM things;
INSERT INTO things (rowtime, id, price, tags, at_, extent) VALUES (1234, 1, 10, ARRAY['x', 'y'], '2013-01-01T00:00:01', STRUCT(w := 1, h := 2));
INSERT INTO things (id) VALUES (LEN('abc'));
ASSERT VALUES copied (rowtime, id, price, tag, at_, h) VALUES (1234, 1, 10.00, 'x', '2013-01-01T00:00:01', 2);
ASSERT VALUES copied (id) VALUES (3);

----------------------------------------------------------------------------------------------------
--@test: custom types are resolved where they are written
----------------------------------------------------------------------------------------------------
CREATE TYPE point AS STRUCT<x DOUBLE, y DOUBLE>;
CREATE STREAM marks (id INT KEY, p point) WITH (kafka_topic='marks', value_format='JSON');
DROP TYPE point;
CREATE STREAM xs AS SELECT id, p->x AS x FROM marks;
INSERT INTO marks (id, p) VALUES (1, STRUCT(x := 1.5, y := 2.5));
ASSERT VALUES xs (id, x) VALUES (1, 1.5);

----------------------------------------------------------------------------------------------------
--@test: the value format of a session is taken where none is given
----------------------------------------------------------------------------------------------------
SET 'ksql.persistence.default.format.value' = 'DELIMITED';
CREATE STREAM bare (id INT KEY, a INT) WITH (kafka_topic='bare');
UNSET 'ksql.persistence.default.format.value';
ASSERT STREAM bare (id INT KEY, a INT) WITH (kafka_topic='bare', value_format='DELIMITED');

----------------------------------------------------------------------------------------------------
--@test: DROP ends the query that writes the source
----------------------------------------------------------------------------------------------------
CREATE STREAM src (id INT KEY, v INT) WITH (kafka_topic='src', value_format='JSON');
CREATE STREAM first_sink WITH (kafka_topic='first') AS SELECT id, v FROM src;
DROP STREAM first_sink;
CREATE STREAM first_sink WITH (kafka_topic='second') AS SELECT id, v * 2 AS v FROM src;
INSERT INTO src (id, v) VALUES (1, 21);
ASSERT VALUES first_sink (id, v) VALUES (1, 42);

----------------------------------------------------------------------------------------------------
--@test: a windowed table
----------------------------------------------------------------------------------------------------
CREATE STREAM pulses (id STRING KEY, v INT) WITH (kafka_topic='pulses', value_format='JSON');
CREATE TABLE per_second AS SELECT id, COUNT(*) AS n, WINDOWSTART AS ws FROM pulses WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY id;
INSERT INTO pulses (rowtime, id, v) VALUES (1100, 'p', 1);
INSERT INTO pulses (rowtime, id, v) VALUES (1900, 'p', 1);
INSERT INTO pulses (rowtime, id, v) VALUES (2000, 'p', 1);
ASSERT VALUES per_second (rowtime, id, n, ws) VALUES (1100, 'p', 1, 1000);
ASSERT VALUES per_second (rowtime, id, n, ws) VALUES (1900, 'p', 2, 1000);
ASSERT VALUES per_second (rowtime, id, n, ws) VALUES (2000, 'p', 1, 2000);

----------------------------------------------------------------------------------------------------
--@test: a source that is read cannot be dropped
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: Cannot drop SRC
----------------------------------------------------------------------------------------------------
CREATE STREAM src (id INT KEY, v INT) WITH (kafka_topic='src', value_format='JSON');
CREATE STREAM reader AS SELECT id, v FROM src;
DROP STREAM src;

----------------------------------------------------------------------------------------------------
--@test: an unknown column
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: cannot be resolved
----------------------------------------------------------------------------------------------------
CREATE STREAM src (id INT KEY, v INT) WITH (kafka_topic='src', value_format='JSON');
CREATE STREAM bad AS SELECT id, w FROM src;

----------------------------------------------------------------------------------------------------
--@test: an assertion that does not hold fails
--@expected.error: java.lang.AssertionError
--@expected.message: Expected record does not match actual
----------------------------------------------------------------------------------------------------
CREATE STREAM src (id INT KEY, v INT) WITH (kafka_topic='src', value_format='JSON');
INSERT INTO src (id, v) VALUES (1, 2);
ASSERT VALUES src (id, v) VALUES (1, 3);

----------------------------------------------------------------------------------------------------
--@test: an assertion past the last record fails
--@expected.error: java.lang.AssertionError
--@expected.message: all records have been read
----------------------------------------------------------------------------------------------------
CREATE STREAM src (id INT KEY, v INT) WITH (kafka_topic='src', value_format='JSON');
ASSERT VALUES src (id, v) VALUES (1, 3);

----------------------------------------------------------------------------------------------------
--@test: a row that is deleted leaves its table and what is made of it
----------------------------------------------------------------------------------------------------
CREATE TABLE docks (id INT PRIMARY KEY, street STRING) WITH (kafka_topic='docks', value_format='JSON');
CREATE TABLE streets AS SELECT street, COUNT(*) AS n FROM docks GROUP BY street;
INSERT INTO docks (id, street) VALUES (1, 'Quay');
INSERT INTO docks (id, street) VALUES (2, 'Quay');
DELETE FROM docks WHERE id = 1;
ASSERT VALUES streets (street, n) VALUES ('Quay', 1);
ASSERT VALUES streets (street, n) VALUES ('Quay', 2);
ASSERT VALUES streets (street, n) VALUES ('Quay', 1);
ASSERT VALUES docks (id, street) VALUES (1, 'Quay');
ASSERT VALUES docks (id, street) VALUES (2, 'Quay');
ASSERT NULL VALUES docks (id) KEY (1);
