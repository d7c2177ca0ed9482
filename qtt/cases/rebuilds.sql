-- Queries that are rebuilt beside themselves. Every statement waits for its cut-over before the next one.

----------------------------------------------------------------------------------------------------
--@test: a stricter filter below an aggregate: rows change and vanish
----------------------------------------------------------------------------------------------------
CREATE STREAM rides (bike STRING KEY, metres INT) WITH (kafka_topic='rides', value_format='JSON');
CREATE TABLE bikes AS SELECT bike, COUNT(*) AS n FROM rides GROUP BY bike;
INSERT INTO rides (rowtime, bike, metres) VALUES (1, 'a', 5);
INSERT INTO rides (rowtime, bike, metres) VALUES (2, 'a', 50);
INSERT INTO rides (rowtime, bike, metres) VALUES (3, 'b', 7);
ASSERT VALUES bikes (rowtime, bike, n) VALUES (1, 'a', 1);
ASSERT VALUES bikes (rowtime, bike, n) VALUES (2, 'a', 2);
ASSERT VALUES bikes (rowtime, bike, n) VALUES (3, 'b', 1);
CREATE OR REPLACE TABLE bikes WITH (replace_mode='rebuild') AS SELECT bike, COUNT(*) AS n FROM rides WHERE metres > 10 GROUP BY bike;
ASSERT VALUES bikes (rowtime, bike, n) VALUES (2, 'a', 1);
ASSERT NULL VALUES bikes (bike) KEY ('b');
INSERT INTO rides (rowtime, bike, metres) VALUES (4, 'a', 20);
ASSERT VALUES bikes (rowtime, bike, n) VALUES (4, 'a', 2);

----------------------------------------------------------------------------------------------------
--@test: a stream is muted before its cut-over
----------------------------------------------------------------------------------------------------
CREATE STREAM east (id INT KEY, v INT) WITH (kafka_topic='east', value_format='JSON');
CREATE STREAM west (id INT KEY, v INT) WITH (kafka_topic='west', value_format='JSON');
CREATE STREAM merged AS SELECT id, v FROM east;
INSERT INTO east (id, v) VALUES (1, 1);
INSERT INTO west (id, v) VALUES (1, 10);
ASSERT VALUES merged (id, v) VALUES (1, 1);
CREATE OR REPLACE STREAM merged WITH (replace_mode='auto') AS SELECT id, v FROM west;
INSERT INTO east (id, v) VALUES (1, 2);
INSERT INTO west (id, v) VALUES (1, 20);
ASSERT VALUES merged (id, v) VALUES (1, 20);

----------------------------------------------------------------------------------------------------
--@test: inserts and rebuilds take turns
----------------------------------------------------------------------------------------------------
CREATE STREAM sales (shop STRING KEY, item STRING, cents INT) WITH (kafka_topic='sales', value_format='JSON');
CREATE TABLE takings AS SELECT shop, SUM(cents) AS cents FROM sales GROUP BY shop;
INSERT INTO sales (rowtime, shop, item, cents) VALUES (1, 'bern', 'tea', 100);
CREATE OR REPLACE TABLE takings WITH (replace_mode='rebuild') AS SELECT item AS shop, SUM(cents) AS cents FROM sales GROUP BY item;
INSERT INTO sales (rowtime, shop, item, cents) VALUES (2, 'bern', 'tea', 50);
CREATE OR REPLACE TABLE takings WITH (replace_mode='rebuild') AS SELECT shop, SUM(cents) AS cents FROM sales WHERE cents < 100 GROUP BY shop;
INSERT INTO sales (rowtime, shop, item, cents) VALUES (3, 'bern', 'jam', 10);
CREATE OR REPLACE TABLE takings WITH (replace_mode='rebuild') AS SELECT item AS shop, MAX(cents) AS cents FROM sales GROUP BY item;
INSERT INTO sales (rowtime, shop, item, cents) VALUES (4, 'bern', 'jam', 30);
ASSERT VALUES takings (rowtime, shop, cents) VALUES (1, 'bern', 100);
ASSERT VALUES takings (rowtime, shop, cents) VALUES (1, 'tea', 100);
ASSERT NULL VALUES takings (shop) KEY ('bern');
ASSERT VALUES takings (rowtime, shop, cents) VALUES (2, 'tea', 150);
ASSERT VALUES takings (rowtime, shop, cents) VALUES (2, 'bern', 50);
ASSERT NULL VALUES takings (shop) KEY ('tea');
ASSERT VALUES takings (rowtime, shop, cents) VALUES (3, 'bern', 60);
ASSERT VALUES takings (rowtime, shop, cents) VALUES (2, 'tea', 100);
ASSERT VALUES takings (rowtime, shop, cents) VALUES (3, 'jam', 10);
ASSERT NULL VALUES takings (shop) KEY ('bern');
ASSERT VALUES takings (rowtime, shop, cents) VALUES (4, 'jam', 30);

----------------------------------------------------------------------------------------------------
--@test: a row that was inserted into the result goes with a rebuild
----------------------------------------------------------------------------------------------------
CREATE TABLE staff (id INT PRIMARY KEY, name STRING) WITH (kafka_topic='staff', value_format='JSON');
CREATE TABLE badges AS SELECT id, name FROM staff;
INSERT INTO staff (rowtime, id, name) VALUES (1, 1, 'Ola');
INSERT INTO staff (rowtime, id, name) VALUES (2, 2, 'Per');
INSERT INTO badges (rowtime, id, name) VALUES (3, 2, 'Pelle');
INSERT INTO badges (rowtime, id, name) VALUES (4, 3, 'Guest');
CREATE OR REPLACE TABLE badges WITH (replace_mode='rebuild') AS SELECT id, name FROM staff;
INSERT INTO staff (rowtime, id, name) VALUES (5, 3, 'Siv');
ASSERT VALUES badges (rowtime, id, name) VALUES (1, 1, 'Ola');
ASSERT VALUES badges (rowtime, id, name) VALUES (2, 2, 'Per');
ASSERT VALUES badges (rowtime, id, name) VALUES (3, 2, 'Pelle');
ASSERT VALUES badges (rowtime, id, name) VALUES (4, 3, 'Guest');
ASSERT VALUES badges (rowtime, id, name) VALUES (2, 2, 'Per');
ASSERT NULL VALUES badges (id) KEY (3);
ASSERT VALUES badges (rowtime, id, name) VALUES (5, 3, 'Siv');

----------------------------------------------------------------------------------------------------
--@test: a chain of streams and a table, each rebuilt in its turn
----------------------------------------------------------------------------------------------------
CREATE STREAM one (id INT KEY, a INT, b INT) WITH (kafka_topic='one', value_format='JSON');
CREATE STREAM two AS SELECT id, a FROM one;
CREATE TABLE three AS SELECT id, SUM(a) AS a FROM two GROUP BY id;
INSERT INTO one (rowtime, id, a, b) VALUES (1, 7, 1, 10);
CREATE OR REPLACE STREAM two WITH (replace_mode='rebuild') AS SELECT id, b AS a FROM one;
INSERT INTO one (rowtime, id, a, b) VALUES (2, 7, 2, 20);
CREATE OR REPLACE TABLE three WITH (replace_mode='rebuild') AS SELECT id, MAX(a) AS a FROM two GROUP BY id;
INSERT INTO one (rowtime, id, a, b) VALUES (3, 7, 3, 30);
ASSERT VALUES two (rowtime, id, a) VALUES (1, 7, 1);
ASSERT VALUES two (rowtime, id, a) VALUES (2, 7, 20);
ASSERT VALUES two (rowtime, id, a) VALUES (3, 7, 30);
ASSERT VALUES three (rowtime, id, a) VALUES (1, 7, 1);
ASSERT VALUES three (rowtime, id, a) VALUES (2, 7, 21);
ASSERT VALUES three (rowtime, id, a) VALUES (2, 7, 20);
ASSERT VALUES three (rowtime, id, a) VALUES (3, 7, 30);

----------------------------------------------------------------------------------------------------
--@test: INSERT INTO .. SELECT feeds a source; the rebuild reads what it wrote
----------------------------------------------------------------------------------------------------
CREATE STREAM raw (id STRING KEY, v INT) WITH (kafka_topic='raw', value_format='JSON');
CREATE STREAM clean (id STRING KEY, v INT) WITH (kafka_topic='clean', value_format='JSON');
INSERT INTO clean SELECT id, v FROM raw WHERE v > 0;
CREATE TABLE sums AS SELECT id, SUM(v) AS v FROM clean GROUP BY id;
INSERT INTO raw (rowtime, id, v) VALUES (1, 'a', -5);
INSERT INTO raw (rowtime, id, v) VALUES (2, 'a', 5);
INSERT INTO clean (rowtime, id, v) VALUES (3, 'a', 50);
CREATE OR REPLACE TABLE sums WITH (replace_mode='rebuild') AS SELECT id, MIN(v) AS v FROM clean GROUP BY id;
INSERT INTO raw (rowtime, id, v) VALUES (4, 'a', 3);
ASSERT VALUES sums (rowtime, id, v) VALUES (2, 'a', 5);
ASSERT VALUES sums (rowtime, id, v) VALUES (3, 'a', 55);
ASSERT VALUES sums (rowtime, id, v) VALUES (3, 'a', 5);
ASSERT VALUES sums (rowtime, id, v) VALUES (4, 'a', 3);

----------------------------------------------------------------------------------------------------
--@test: a rebuild cannot change the type of a key
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: Key columns must be identical
----------------------------------------------------------------------------------------------------
CREATE STREAM s (id INT KEY, a STRING) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE t AS SELECT id AS k, COUNT(*) AS n FROM s GROUP BY id;
CREATE OR REPLACE TABLE t WITH (replace_mode='rebuild') AS SELECT a AS k, COUNT(*) AS n FROM s GROUP BY a;

----------------------------------------------------------------------------------------------------
--@test: REPLACE_MODE needs OR REPLACE
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: REPLACE_MODE is for CREATE OR REPLACE
----------------------------------------------------------------------------------------------------
CREATE STREAM s (id INT KEY, a INT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE t WITH (replace_mode='rebuild') AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;
