-- Replacing queries while INSERT VALUES and CREATE OR REPLACE take turns: every insert passes through all queries
-- before the next statement is run.

----------------------------------------------------------------------------------------------------
--@test: counts go on over three versions of a table
----------------------------------------------------------------------------------------------------
CREATE STREAM purchases (buyer STRING KEY, item STRING, cents INT) WITH (kafka_topic='purchases', value_format='JSON');
CREATE TABLE ledger AS SELECT buyer, COUNT(*) AS n FROM purchases GROUP BY buyer;
INSERT INTO purchases (rowtime, buyer, item, cents) VALUES (10, 'eva', 'tea', 250);
ASSERT VALUES ledger (rowtime, buyer, n) VALUES (10, 'eva', 1);

CREATE OR REPLACE TABLE ledger AS SELECT buyer, COUNT(*) AS n, SUM(cents) AS cents FROM purchases GROUP BY buyer;
INSERT INTO purchases (rowtime, buyer, item, cents) VALUES (20, 'eva', 'jam', 410);
ASSERT VALUES ledger (rowtime, buyer, n, cents) VALUES (20, 'eva', 2, 410);

CREATE OR REPLACE TABLE ledger AS SELECT buyer, COUNT(*) AS n, SUM(cents) AS cents, LATEST_BY_OFFSET(item) AS item FROM purchases WHERE cents > 100 GROUP BY buyer;
INSERT INTO purchases (rowtime, buyer, item, cents) VALUES (30, 'eva', 'pin', 90);
INSERT INTO purchases (rowtime, buyer, item, cents) VALUES (25, 'eva', 'oil', 700);
ASSERT VALUES ledger (rowtime, buyer, n, cents, item) VALUES (25, 'eva', 3, 1110, 'oil');

----------------------------------------------------------------------------------------------------
--@test: a replaced query does not read again what it has read
----------------------------------------------------------------------------------------------------
CREATE STREAM belt (id INT KEY, kg DOUBLE) WITH (kafka_topic='belt', value_format='JSON');
CREATE STREAM heavy AS SELECT id, kg FROM belt WHERE kg > 50;
INSERT INTO belt (id, kg) VALUES (1, 40);
CREATE OR REPLACE STREAM heavy AS SELECT id, kg FROM belt WHERE kg > 30;
INSERT INTO belt (id, kg) VALUES (2, 35.5);
ASSERT VALUES heavy (id, kg) VALUES (2, 35.5);

----------------------------------------------------------------------------------------------------
--@test: a tombstone after the filter of a table became stricter
----------------------------------------------------------------------------------------------------
CREATE TABLE price (sku STRING PRIMARY KEY, euros INT) WITH (kafka_topic='price', value_format='JSON');
CREATE TABLE cheap AS SELECT sku, euros FROM price WHERE euros < 100;
INSERT INTO price (sku, euros) VALUES ('cup', 8);
ASSERT VALUES cheap (sku, euros) VALUES ('cup', 8);
CREATE OR REPLACE TABLE cheap AS SELECT sku, euros FROM price WHERE euros < 10;
INSERT INTO price (sku, euros) VALUES ('cup', 12);
ASSERT NULL VALUES cheap (sku) KEY ('cup');

----------------------------------------------------------------------------------------------------
--@test: ALTER, then the query over it
----------------------------------------------------------------------------------------------------
CREATE STREAM guests (id INT KEY, name STRING) WITH (kafka_topic='guests', value_format='JSON');
CREATE STREAM welcome AS SELECT * FROM guests;
INSERT INTO guests (id, name) VALUES (1, 'Ola');
ALTER STREAM guests ADD COLUMN seats INT;
INSERT INTO guests (id, name, seats) VALUES (2, 'Per', 4);
CREATE OR REPLACE STREAM welcome AS SELECT * FROM guests;
INSERT INTO guests (id, name, seats) VALUES (3, 'Siv', 2);
ASSERT STREAM guests (id INT KEY, name STRING, seats INT) WITH (kafka_topic='guests', value_format='JSON');
ASSERT STREAM welcome (id INT KEY, name STRING, seats INT) WITH (kafka_topic='WELCOME', value_format='JSON');
ASSERT VALUES welcome (id, name) VALUES (1, 'Ola');
ASSERT VALUES welcome (id, name) VALUES (2, 'Per');
ASSERT VALUES welcome (id, name, seats) VALUES (3, 'Siv', 2);

----------------------------------------------------------------------------------------------------
--@test: a chain is replaced from its source to its end
----------------------------------------------------------------------------------------------------
CREATE STREAM one (id INT KEY, a INT, b INT) WITH (kafka_topic='one', value_format='JSON');
CREATE STREAM two AS SELECT id, a FROM one;
CREATE TABLE three AS SELECT id, SUM(a) AS a FROM two GROUP BY id;
INSERT INTO one (id, a, b) VALUES (7, 1, 10);
ASSERT VALUES three (id, a) VALUES (7, 1);
CREATE OR REPLACE STREAM two AS SELECT id, a, b FROM one;
CREATE OR REPLACE TABLE three AS SELECT id, SUM(a) AS a, SUM(b) AS b FROM two GROUP BY id;
INSERT INTO one (id, a, b) VALUES (7, 2, 20);
ASSERT VALUES three (id, a, b) VALUES (7, 3, 20);

----------------------------------------------------------------------------------------------------
--@test: GROUP BY of a running query cannot change
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: GROUP BY
----------------------------------------------------------------------------------------------------
CREATE STREAM s (id INT KEY, a INT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE t AS SELECT id AS k, COUNT(*) AS n FROM s GROUP BY id;
CREATE OR REPLACE TABLE t AS SELECT a AS k, COUNT(*) AS n FROM s GROUP BY a;

----------------------------------------------------------------------------------------------------
--@test: a query cannot become one over a table
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: Cannot upgrade data source
----------------------------------------------------------------------------------------------------
CREATE STREAM s (id INT KEY, a INT) WITH (kafka_topic='s', value_format='JSON');
CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH (kafka_topic='t', value_format='JSON');
CREATE STREAM x AS SELECT id, a FROM s;
CREATE OR REPLACE TABLE x AS SELECT id, a FROM t;

----------------------------------------------------------------------------------------------------
--@test: CREATE OR REPLACE of a read-only source is refused
--@expected.error: io.confluent.ksql.util.KsqlException
--@expected.message: CREATE OR REPLACE is not supported on source
----------------------------------------------------------------------------------------------------
CREATE SOURCE STREAM fixed (id INT KEY, a INT) WITH (kafka_topic='fixed', value_format='JSON');
CREATE OR REPLACE STREAM fixed (id INT KEY, a INT, b INT) WITH (kafka_topic='fixed', value_format='JSON');
