-- Every kind of statement, as it may be written and as it is printed.

create stream s (a int, b varchar(30)) with (kafka_topic='t', value_format='json');
--> CREATE STREAM S (A INTEGER, B STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='json');

create or replace source table if not exists "My-Table" (id bigint primary key, v decimal(4,2)) with ("kafka_topic"='t', partitions=3, wrap_single_value=true);
--> CREATE OR REPLACE SOURCE TABLE IF NOT EXISTS `My-Table` (ID BIGINT PRIMARY KEY, V DECIMAL(4, 2)) WITH (KAFKA_TOPIC='t', PARTITIONS=3, WRAP_SINGLE_VALUE=true);

create stream s (h array<struct<key string, value bytes>> headers, one bytes header('it''s'), k int key) with (retention_ms=-1);
--> CREATE STREAM S (H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS, ONE BYTES HEADER('it''s'), K INTEGER KEY) WITH (RETENTION_MS=-1);

create stream s with (kafka_topic='t', value_format='avro');
--> CREATE STREAM S WITH (KAFKA_TOPIC='t', VALUE_FORMAT='avro');

create table t;
--> CREATE TABLE T;

create stream s (a map<string, array<int>>, b struct<x int, `y` string array, z struct<>>, c int array array);
--> CREATE STREAM S (A MAP<STRING, ARRAY<INTEGER>>, B STRUCT<X INTEGER, `y` ARRAY<STRING>, Z STRUCT<>>, C ARRAY<ARRAY<INTEGER>>);

create stream s (type string, key int, value string, date date, time time, map map<int, int>, emit int, "select" int, 2nd int, `1` int, headers int headers);
--> CREATE STREAM S (TYPE STRING, KEY INTEGER, VALUE STRING, DATE DATE, TIME TIME, MAP MAP<INTEGER, INTEGER>, EMIT INTEGER, `select` INTEGER, 2ND INTEGER, `1` INTEGER, HEADERS INTEGER HEADERS);

create or replace stream if not exists s with (partitions=1) as select * from t;
--> CREATE OR REPLACE STREAM IF NOT EXISTS S WITH (PARTITIONS=1) AS SELECT *
--> FROM T T;

create table counts as select a, count(*) as n, count() m from s group by a having count(*) > 1 emit final;
--> CREATE TABLE COUNTS AS SELECT
-->   A,
-->   COUNT(*) N,
-->   COUNT() M
--> FROM S S
--> GROUP BY A
--> HAVING (COUNT(*) > 1)
--> EMIT FINAL;

alter stream s add c int;
--> ALTER STREAM S ADD COLUMN C INTEGER;

alter table t add column c int, add column "d" struct<a int>, add column decimal(3,1);
--> ALTER TABLE T ADD COLUMN C INTEGER, ADD COLUMN `d` STRUCT<A INTEGER>, ADD COLUMN COLUMN DECIMAL(3, 1);

alter table t add c decimal(3,1), add column string;
--> ALTER TABLE T ADD COLUMN C DECIMAL(3, 1), ADD COLUMN COLUMN STRING;

drop stream s;
--> DROP STREAM S;

drop table if exists "t" delete topic;
--> DROP TABLE IF EXISTS `t` DELETE TOPIC;

insert into s select a, b from t;
--> INSERT INTO S SELECT
-->   A,
-->   B
--> FROM T T;

insert into s with (query_id = 'mine') select * from t emit changes;
--> INSERT INTO S WITH (QUERY_ID='mine') SELECT *
--> FROM T T
--> EMIT CHANGES;

insert into s values (1, 'x', null, -2.50, 1e3, true, ARRAY[1], MAP('a' := 1), STRUCT(x := 1), cast('1' as int));
--> INSERT INTO S VALUES (1, 'x', null, -2.50, 1E3, true, ARRAY[1], MAP('a':=1), STRUCT(X:=1), CAST('1' AS INTEGER));

insert into s (a, `b`, `@c!`) values ();
--> INSERT INTO S (A, `b`, `@c!`) VALUES ();

delete from t where `id` = 'a' and 3 = k;
--> DELETE FROM T WHERE ((`id` = 'a') AND (3 = K));

terminate csas_s_1;
--> TERMINATE CSAS_S_1;

terminate `csas_s_1`;
--> TERMINATE `csas_s_1`;

pause all;
--> PAUSE ALL;

resume x;
--> RESUME X;

abort upgrade of x;
--> ABORT UPGRADE OF X;

abort upgrade of query insertquery_3;
--> ABORT UPGRADE OF QUERY INSERTQUERY_3;

rollback upgrade of query `q` to 'default_/q/17';
--> ROLLBACK UPGRADE OF QUERY `q` TO 'default_/q/17';

create or replace query insertquery_3 with (replace_mode='auto') as insert into x select * from y;
--> CREATE OR REPLACE QUERY INSERTQUERY_3 WITH (REPLACE_MODE='auto') AS INSERT INTO X SELECT *
--> FROM Y Y;

rollback upgrade of `x`;
--> ROLLBACK UPGRADE OF `x`;

rollback upgrade of x to 'default_/CTAS_X_3/17';
--> ROLLBACK UPGRADE OF X TO 'default_/CTAS_X_3/17';

explain csas_s_1;
--> EXPLAIN CSAS_S_1;

explain select * from s emit changes;
--> EXPLAIN SELECT *
--> FROM S S
--> EMIT CHANGES;

explain explain create stream s as select 1 from t;
--> EXPLAIN EXPLAIN CREATE STREAM S AS SELECT 1
--> FROM T T;

explain show;
--> EXPLAIN SHOW;

show streams extended;
--> SHOW STREAMS EXTENDED;

list tables;
--> SHOW TABLES;

show queries;
--> SHOW QUERIES;

list all topics extended;
--> SHOW ALL TOPICS EXTENDED;

show topics;
--> SHOW TOPICS;

show functions;
--> SHOW FUNCTIONS;

list properties;
--> SHOW PROPERTIES;

show types;
--> SHOW TYPES;

show variables;
--> SHOW VARIABLES;

show source connectors;
--> SHOW SOURCE CONNECTORS;

list sink connectors;
--> SHOW SINK CONNECTORS;

show connectors;
--> SHOW CONNECTORS;

show connector plugins;
--> SHOW CONNECTOR PLUGINS;

show upgrades;
--> SHOW UPGRADES;

list upgrades for x;
--> SHOW UPGRADES FOR X;

describe s;
--> DESCRIBE S;

describe "s" extended;
--> DESCRIBE `s` EXTENDED;

describe streams extended;
--> DESCRIBE STREAMS EXTENDED;

describe tables;
--> DESCRIBE TABLES;

describe `TABLES`;
--> DESCRIBE `TABLES`;

describe function count;
--> DESCRIBE FUNCTION COUNT;

describe function;
--> DESCRIBE `FUNCTION`;

describe connector c;
--> DESCRIBE CONNECTOR C;

describe upgrade 'default_/CTAS_X_3/17';
--> DESCRIBE UPGRADE 'default_/CTAS_X_3/17';

describe upgrade;
--> DESCRIBE UPGRADE;

describe upgrade extended;
--> DESCRIBE UPGRADE EXTENDED;

print MyTopic;
--> PRINT 'MyTopic';

print 'a-topic' from beginning interval 2 limit 3;
--> PRINT 'a-topic' FROM BEGINNING INTERVAL 2 LIMIT 3;

print "Topic" sample 5;
--> PRINT 'Topic' INTERVAL 5;

create type if not exists address as struct<street string, zip int>;
--> CREATE TYPE IF NOT EXISTS ADDRESS AS STRUCT<STREET STRING, ZIP INTEGER>;

drop type if exists address;
--> DROP TYPE IF EXISTS ADDRESS;

create source connector if not exists c with ("connector.class"='x', "tasks.max"=1);
--> CREATE SOURCE CONNECTOR IF NOT EXISTS C WITH (`connector.class`='x', `tasks.max`=1);

create sink connector c with (name='x');
--> CREATE SINK CONNECTOR C WITH (`name`='x');

drop connector if exists c;
--> DROP CONNECTOR IF EXISTS C;

set 'auto.offset.reset' = 'earliest';
--> SET 'auto.offset.reset'='earliest';

unset 'auto.offset.reset';
--> UNSET 'auto.offset.reset';

alter system 'ksql.a' = 'it''s';
--> ALTER SYSTEM 'ksql.a'='it''s';

define Format = '''JSON''';
--> DEFINE Format='''JSON''';

undefine Format;
--> UNDEFINE Format;

run script '/x.sql';
--> RUN SCRIPT '/x.sql';

assert topic MyTopic;
--> ASSERT TOPIC 'MyTopic';

assert not exists topic 'a-b' with (partitions=1) timeout 10 seconds;
--> ASSERT NOT EXISTS TOPIC 'a-b' WITH (PARTITIONS=1) TIMEOUT 10 SECONDS;

assert schema subject Orders-- case counts
id 3 timeout 1 minute;
--> ASSERT SCHEMA SUBJECT 'Orders' ID 3 TIMEOUT 1 MINUTES;

assert not exists schema;
--> ASSERT NOT EXISTS SCHEMA;

assert values s (a, b) values (1, 'x');
--> ASSERT VALUES S (A, B) VALUES (1, 'x');

assert values s values (1);
--> ASSERT VALUES S VALUES (1);

assert null values s (a) key (1);
--> ASSERT NULL VALUES S (A) KEY (1);

assert stream s (a int key) with (kafka_topic='t');
--> ASSERT STREAM S (A INTEGER KEY) WITH (KAFKA_TOPIC='t');

assert table t;
--> ASSERT TABLE T;
