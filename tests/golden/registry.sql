-- What statements say of the schema registry; the subjects are in test_registry.py.

CREATE STREAM X WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='AVRO');
--> `BIKE` STRING, `METRES` INTEGER

CREATE STREAM X WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1);
--> `bike` STRING, `metres` INTEGER

CREATE TABLE X WITH (KAFKA_TOPIC='rides', FORMAT='AVRO');
--> `ROWKEY` BIGINT KEY, `BIKE` STRING, `METRES` INTEGER

CREATE TABLE X WITH (KAFKA_TOPIC='rides', KEY_FORMAT='KAFKA', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1);
--> Tables require a PRIMARY KEY. Please define the PRIMARY KEY.
--> Use a partial schema to define the primary key and still load the value columns from the Schema Registry, for example: CREATE TABLE X (ID INT PRIMARY KEY) WITH (...);

CREATE STREAM X WITH (KAFKA_TOPIC='nothing', VALUE_FORMAT='AVRO');
--> Schema for message values on topic 'nothing' does not exist in the Schema Registry.
--> Subject: nothing-value
--> Possible causes include:
--> - The topic itself does not exist: SHOW TOPICS; tells
--> - Its messages have no registered schema: PRINT 'nothing' FROM BEGINNING; shows them
--> - The schema is registered under another subject, or with another registry
--> Declare the columns, or register the schema first.

CREATE STREAM X WITH (KAFKA_TOPIC='nothing', VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_ID=99);
--> Schema for message values on topic 'nothing' does not exist in the Schema Registry.
--> Subject: nothing-value
--> Schema Id: 99
--> Possible causes include:
--> - The topic itself does not exist: SHOW TOPICS; tells
--> - Its messages have no registered schema: PRINT 'nothing' FROM BEGINNING; shows them
--> - The schema is registered under another subject, or with another registry
--> Declare the columns, or register the schema first.

CREATE STREAM X WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='PROTOBUF');
--> Value schema is not in the expected format. You may want to set VALUE_FORMAT to 'AVRO'.
--> topic: rides
--> subject: rides-value
--> expected format: PROTOBUF
--> actual format from Schema Registry: AVRO

CREATE STREAM X WITH (KAFKA_TOPIC='loops', VALUE_FORMAT='AVRO');
--> Unable to verify if the value schema for topic: loops is compatible with ksqlDB.
--> Reason: Recursive schemas are not supported
--> Schema: {"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}
--> Declare the columns that are to be read.

CREATE STREAM X WITH (KAFKA_TOPIC='several', VALUE_FORMAT='PROTOBUF');
--> Unable to verify if the value schema for topic: several is compatible with ksqlDB.
--> Reason: Schema contains multiple message definitions: A, B
--> Name one of them with KEY_SCHEMA_FULL_NAME or VALUE_SCHEMA_FULL_NAME.
--> Schema: syntax = "proto3"; message A { int32 a = 1; } message B { string b = 1; }
--> Declare the columns that are to be read.

CREATE STREAM X WITH (KAFKA_TOPIC='several', VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_FULL_NAME='C');
--> Unable to verify if the value schema for topic: several is compatible with ksqlDB.
--> Reason: Schema for message C does not exist
--> Schema: syntax = "proto3"; message A { int32 a = 1; } message B { string b = 1; }
--> Declare the columns that are to be read.

CREATE STREAM X WITH (KAFKA_TOPIC='several', VALUE_FORMAT='PROTOBUF', VALUE_SCHEMA_FULL_NAME='B');
--> `B` STRING

CREATE STREAM X (V INT) WITH (KAFKA_TOPIC='wide', FORMAT='PROTOBUF');
--> The key schema for topic: wide contains multiple columns, which is not supported by ksqlDB at this time.
--> Schema: syntax = "proto3"; message K { int32 a = 1; int32 b = 2; }
--> Declare the key columns.

CREATE STREAM X (K INT KEY) WITH (KAFKA_TOPIC='bare', VALUE_FORMAT='JSON_SR');
--> Unable to verify if the value schema for topic: bare is compatible with ksqlDB.
--> Reason: Schema returned from schema registry is anonymous type. To use this schema with ksqlDB, set 'WRAP_SINGLE_VALUE=false' in the WITH clause properties.
--> Schema: {"type":"integer"}
--> Declare the columns that are to be read.

CREATE STREAM X (K INT KEY) WITH (KAFKA_TOPIC='bare', VALUE_FORMAT='JSON_SR', WRAP_SINGLE_VALUE=false);
--> `K` INTEGER KEY, `ROWVAL` BIGINT

CREATE STREAM X (V INT) WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1);
--> Table elements and VALUE_SCHEMA_ID cannot both exist for create statement.

CREATE STREAM X (V INT) WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='DELIMITED', VALUE_SCHEMA_ID=1);
--> VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided. Current format is DELIMITED.
--> DELIMITED does not support the following configs: [schemaId]

CREATE STREAM X (`a b` INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1, VALUE_FORMAT='AVRO');
--> Schema is not compatible with Avro: Illegal character in: a b

CREATE STREAM X (`a b` INT) WITH (KAFKA_TOPIC='x', PARTITIONS=1, VALUE_FORMAT='PROTOBUF');
--> Schema is not compatible with Protobuf: Illegal name: a b

CREATE STREAM S WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='AVRO');
CREATE STREAM X WITH (VALUE_SCHEMA_ID=1) AS SELECT BIKE, METRES FROM S;
--> The following value columns are changed, missing or reordered: [`BIKE` STRING, `METRES` INTEGER]. Schema from schema registry is [`bike` STRING, `metres` INTEGER]

CREATE STREAM S (`bike` STRING, `metres` INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE STREAM X WITH (VALUE_FORMAT='AVRO', VALUE_SCHEMA_ID=1) AS SELECT `bike`, `metres` + 1 AS `metres` FROM S;
--> `bike` STRING, `metres` INTEGER

CREATE STREAM S (V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE STREAM X WITH (VALUE_SCHEMA_ID=1) AS SELECT V FROM S;
--> VALUE_FORMAT should support schema inference when VALUE_SCHEMA_ID is provided. Current format is JSON.
--> JSON does not support the following configs: [schemaId]

CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='rides', FORMAT='AVRO');
INSERT INTO S VALUES (1, 2);
--> line 1:13: Failed to insert values into 'S'. Cannot INSERT VALUES into data source `S`. ksqlDB generated schema would overwrite existing key schema.
--> 	Existing Schema: "long"
--> 	ksqlDB Generated: "int"
