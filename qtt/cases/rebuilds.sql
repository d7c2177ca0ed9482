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
