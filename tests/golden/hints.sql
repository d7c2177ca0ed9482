-- Statements that are refused: the words of ksqlDB first, then what to write instead.

-- Types that do not go together.

CREATE STREAM X AS SELECT ID, AMOUNT + CUSTOMER AS N FROM ORDERS;
--> Unsupported arithmetic types. DECIMAL STRING
--> Error processing expression: (AMOUNT + CUSTOMER). Arithmetic on types DECIMAL(9, 2) and STRING are not supported.
--> CAST(CUSTOMER AS DECIMAL(9, 2)) makes it a number. || joins texts: CAST(AMOUNT AS STRING).

CREATE STREAM X AS SELECT ID, AMOUNT * '5' AS N FROM ORDERS;
--> Unsupported arithmetic types. DECIMAL STRING
--> Error processing expression: (AMOUNT * '5'). Arithmetic on types DECIMAL(9, 2) and STRING are not supported.
--> Write 5 without quotes.

CREATE STREAM X AS SELECT ID, CUSTOMER - ID AS N FROM ORDERS;
--> Unsupported arithmetic types. STRING STRING
--> Error processing expression: (CUSTOMER - ID). Arithmetic on types STRING and STRING are not supported.
--> CAST(.. AS DOUBLE) makes numbers of texts; || joins them.

CREATE STREAM X AS SELECT ID, TAGS + 1 AS N FROM ORDERS;
--> Unsupported arithmetic types. ARRAY INTEGER
--> Error processing expression: (TAGS + 1). Arithmetic on types ARRAY<STRING> and INTEGER are not supported.
--> An element of the array: TAGS[1].

CREATE STREAM X AS SELECT ID, PARSE_DATE(ID, 'yyyy') + 1 AS N FROM ORDERS;
--> Unsupported arithmetic types. DATE INTEGER
--> Error processing expression: (PARSE_DATE(ID, 'yyyy') + 1). Arithmetic on types DATE and INTEGER are not supported.
--> DATEADD and DATESUB compute with a DATE.

CREATE STREAM X AS SELECT ID FROM ORDERS WHERE AMOUNT > '5';
--> Error in WHERE expression: Cannot compare AMOUNT (DECIMAL(9, 2)) to '5' (STRING) with GREATER_THAN.
--> Statement: (AMOUNT > '5')
--> Write 5 without quotes.

CREATE STREAM X AS SELECT ID FROM ORDERS WHERE AMOUNT > 'five';
--> Error in WHERE expression: Cannot compare AMOUNT (DECIMAL(9, 2)) to 'five' (STRING) with GREATER_THAN.
--> Statement: (AMOUNT > 'five')
--> CAST('five' AS DECIMAL(9, 2)) makes it a number.

CREATE STREAM X AS SELECT ID FROM ORDERS WHERE TS = CUSTOMER;
--> Error in WHERE expression: Cannot compare TS (BIGINT) to CUSTOMER (STRING) with EQUAL.
--> Statement: (TS = CUSTOMER)
--> CAST(CUSTOMER AS BIGINT) makes it a number.

CREATE STREAM X AS SELECT ID FROM ORDERS WHERE (TS > 5) = 'true';
--> Error in WHERE expression: Cannot compare (TS > 5) (BOOLEAN) to 'true' (STRING) with EQUAL.
--> Statement: ((TS > 5) = 'true')
--> Write TRUE or FALSE without quotes, or CAST((TS > 5) AS STRING).

CREATE STREAM X AS SELECT ID FROM ORDERS WHERE TAGS = 'x';
--> Error in WHERE expression: Cannot compare TAGS (ARRAY<STRING>) to 'x' (STRING) with EQUAL.
--> Statement: (TAGS = 'x')
--> An element of the array: TAGS[1].

CREATE STREAM X AS SELECT ID FROM ORDERS WHERE FROM_UNIXTIME(TS) > TS;
--> Error in WHERE expression: Cannot compare FROM_UNIXTIME(TS) (TIMESTAMP) to TS (BIGINT) with GREATER_THAN.
--> Statement: (FROM_UNIXTIME(TS) > TS)
--> FROM_UNIXTIME(TS) makes a TIMESTAMP of milliseconds since 1970.

CREATE TABLE X AS SELECT * FROM CUSTOMERS WHERE CITY > 5;
--> Error in WHERE expression: Cannot compare CITY (STRUCT<`ZIP` INTEGER, `NAME` STRING>) to 5 (INTEGER) with GREATER_THAN.
--> Statement: (CITY > 5)
--> A field of the struct: CITY->ZIP.

-- Other kinds and names.

DROP TABLE ORDERS;
--> Incompatible data source type is STREAM, but statement was DROP TABLE
--> ORDERS is a stream: write DROP STREAM.

DROP STREAM IF EXISTS CUSTOMERS;
--> Incompatible data source type is TABLE, but statement was DROP STREAM
--> CUSTOMERS is a table: write DROP TABLE.

ALTER TABLE ORDERS ADD COLUMN X INT;
--> Incompatible data source type is STREAM, but statement was ALTER TABLE
--> ORDERS is a stream: write ALTER STREAM.

CREATE STREAM ORDERS (A INT) WITH (KAFKA_TOPIC='orders');
--> Cannot add stream 'ORDERS': A stream with the same name already exists
--> CREATE OR REPLACE STREAM changes it, CREATE STREAM IF NOT EXISTS leaves it as it is.

CREATE TABLE ORDERS (A INT PRIMARY KEY) WITH (KAFKA_TOPIC='orders');
--> Cannot add table 'ORDERS': A stream with the same name already exists
--> Choose another name: streams and tables share theirs.

CREATE STREAM RETURNS AS SELECT * FROM ORDERS;
--> Cannot add stream 'RETURNS': A stream with the same name already exists
--> CREATE OR REPLACE STREAM changes it, CREATE STREAM IF NOT EXISTS leaves it as it is.

-- Nothing else is proposed to be ended or dropped.

DROP STREAM ORDER;
--> Stream ORDER does not exist.
--> Did you mean ORDERS?

DROP STREAM ORDERZ;
--> Stream ORDERZ does not exist.

DROP STREAM ORDERS_OF_YESTERDAY;
--> Stream ORDERS_OF_YESTERDAY does not exist.

DROP TYPE NOPE;
--> Type NOPE does not exist.

TERMINATE CSAS_NOPE_1;
--> Unknown queryId: CSAS_NOPE_1

TERMINATE CSAS_OPEN_ORDERS_8;
--> Unknown queryId: CSAS_OPEN_ORDERS_8
--> Did you mean CSAS_OPEN_ORDERS_3?

PAUSE CSAS_NOPE_1;
--> Unknown queryId: CSAS_NOPE_1

-- Joins of streams.

CREATE STREAM X AS SELECT * FROM ORDERS O JOIN RETURNS R ON O.ID = R.ID;
--> Stream-Stream joins must have a WITHIN clause specified. None was provided.
--> It says how far apart the records may be, as in JOIN RETURNS R WITHIN 1 HOUR GRACE PERIOD 10 MINUTES ON ..

CREATE STREAM X AS SELECT * FROM ORDERS JOIN RETURNS ON ORDERS.ID = RETURNS.ID;
--> Stream-Stream joins must have a WITHIN clause specified. None was provided.
--> It says how far apart the records may be, as in JOIN RETURNS WITHIN 1 HOUR GRACE PERIOD 10 MINUTES ON ..

-- Functions of other databases.

CREATE STREAM X AS SELECT ID, UPER(CUSTOMER) AS N FROM ORDERS;
--> line 1:31: Can't find any functions with the name 'UPER'
--> Did you mean UCASE?

CREATE STREAM X AS SELECT ID, UPPER(CUSTOMER) AS N FROM ORDERS;
--> line 1:31: Can't find any functions with the name 'UPPER'
--> Did you mean UCASE?

CREATE STREAM X AS SELECT ID, LENGHT(CUSTOMER) AS N FROM ORDERS;
--> line 1:31: Can't find any functions with the name 'LENGHT'
--> Did you mean LEN?

CREATE STREAM X AS SELECT ID, SUBSTRNG(CUSTOMER, 1) AS N FROM ORDERS;
--> line 1:31: Can't find any functions with the name 'SUBSTRNG'
--> Did you mean SUBSTRING?

CREATE STREAM X AS SELECT ID, DATE_FORMAT(CUSTOMER) AS N FROM ORDERS;
--> line 1:31: Can't find any functions with the name 'DATE_FORMAT'
--> Did you mean FORMAT_DATE or FORMAT_TIMESTAMP?

CREATE STREAM X AS SELECT ID, QWERTZ(CUSTOMER) AS N FROM ORDERS;
--> line 1:31: Can't find any functions with the name 'QWERTZ'

-- Variables.

CREATE STREAM X AS SELECT * FROM ORDERS O JOIN RETURNS R WITHIN 1 HOUR GRACE PERIOD ${grace} ON O.ID = R.ID;
--> line 1:85: Syntax Error
--> Expecting INTEGER_VALUE
--> A variable stands for one name or one literal, and neither can stand here: write out what ${grace} holds.

CREATE STREAM X AS SELECT * FROM ORDERS O JOIN RETURNS R WITHIN ${within} ON O.ID = R.ID;
--> line 1:65: Syntax Error
--> Expecting {'(', INTEGER_VALUE}
--> A variable stands for one name or one literal, and neither can stand here: write out what ${within} holds.

CREATE TABLE X AS SELECT ID, COUNT(*) AS N FROM ORDERS WINDOW TUMBLING (SIZE ${size}) GROUP BY ID;
--> line 1:78: Syntax Error
--> Expecting INTEGER_VALUE
--> A variable stands for one name or one literal, and neither can stand here: write out what ${size} holds.

ROLLBACK UPGRADE OF ORDERS TO CTAS_ORDERS_3;
--> line 1:31: Syntax Error
--> Expecting STRING
--> The id of an upgrade is a text in single quotes, as SHOW UPGRADES shows it.

ABORT UPGRADE OF ORDERS TO 'CTAS_ORDERS_3';
--> line 1:25: Syntax Error
--> Expecting ';'
--> ABORT ends the one rebuild that is under way: ABORT UPGRADE OF name;

-- Texts, aliases and fields, as other databases write them.

CREATE STREAM X AS SELECT * FROM ORDERS WHERE CUSTOMER = "Ada";
--> Line: 1, Col: 58: WHERE column '`Ada`' cannot be resolved.
--> Texts have single quotes: 'Ada'.

CREATE STREAM X AS SELECT * FROM ORDERS WHERE CUSTOMER = Zuse;
--> Line: 1, Col: 58: WHERE column 'ZUSE' cannot be resolved.
--> The columns are ID, CUSTOMER, AMOUNT, TAGS and TS.

CREATE STREAM X AS SELECT * FROM ORDERS WHERE CUSTOMER = 'it's';
--> line 1:63: Syntax Error
--> The quote ' is not closed
--> Write a quote inside twice: ''.

CREATE STREAM X AS SELECT ID, AMOUNT * 2 AS DBL FROM ORDERS WHERE DBL > 3;
--> Line: 1, Col: 67: WHERE column 'DBL' cannot be resolved.
--> DBL is an alias of SELECT: write (AMOUNT * 2).

CREATE TABLE X AS SELECT ID, COUNT(*) AS QTY FROM ORDERS GROUP BY ID HAVING QTY > 3;
--> Line: 1, Col: 77: HAVING column 'QTY' cannot be resolved.
--> QTY is an alias of SELECT: write COUNT(*).

CREATE TABLE X AS SELECT UCASE(CUSTOMER) AS UPPERS, COUNT(*) AS N FROM ORDERS GROUP BY UPPERS;
--> Line: 1, Col: 88: GROUP BY column 'UPPERS' cannot be resolved.
--> UPPERS is an alias of SELECT: write UCASE(CUSTOMER).

CREATE STREAM X AS SELECT ID, CURRENT_TIMESTAMP AS NOW FROM ORDERS;
--> Line: 1, Col: 31: SELECT column 'CURRENT_TIMESTAMP' cannot be resolved.
--> FROM_UNIXTIME(UNIX_TIMESTAMP()) is the present time.

CREATE TABLE X AS SELECT ID, CITY.NAME FROM CUSTOMERS;
--> line 1:30: Failed to prepare statement: 'CITY' is not a valid stream/table name or alias.
--> A field of a struct: CITY->NAME.

CREATE TABLE X AS SELECT ID, CITY->NAM FROM CUSTOMERS;
--> Could not find field 'NAM' in 'CITY'.
--> Did you mean NAME?

CREATE STREAM X AS SELECT ID FROM ORDERS O WHERE ORDERS.CUSTOMER = 'Ada';
--> line 1:50: Failed to prepare statement: 'ORDERS' is not a valid stream/table name or alias.
--> The sources of this query are called O.

-- Arguments of other types.

CREATE STREAM X AS SELECT ID, COALESCE(TS, 0) AS T FROM ORDERS;
--> line 1:31: Function 'COALESCE' does not accept parameters (BIGINT, INTEGER).
--> Valid alternatives are:
--> COALESCE(T first, T... others)
--> CAST(.. AS BIGINT) converts INTEGER.

CREATE STREAM X AS SELECT ID, IFNULL(AMOUNT, 0.0) AS A FROM ORDERS;
--> line 1:31: Function 'IFNULL' does not accept parameters (DECIMAL(9, 2), DECIMAL(2, 1)).
--> Valid alternatives are:
--> IFNULL(T expression, T altValue)
--> CAST(.. AS DECIMAL(9, 2)) converts DECIMAL(2, 1).

CREATE STREAM X AS SELECT ID, CUSTOMER || ': ' || AMOUNT AS T FROM ORDERS;
--> line 1:31: Function 'concat' does not accept parameters (STRING, DECIMAL(9, 2)).
--> Valid alternatives are:
--> concat(VARCHAR... inputs)
--> concat(BYTES... inputs)
--> CAST(.. AS STRING) converts DECIMAL(9, 2).

CREATE STREAM X AS SELECT ID, SUBSTRING(AMOUNT, 1, 2) AS T FROM ORDERS;
--> line 1:31: Function 'substring' does not accept parameters (DECIMAL(9, 2), INTEGER, INTEGER).
--> Valid alternatives are:
--> substring(VARCHAR str, INT pos)
--> substring(BYTES str, INT pos)
--> substring(VARCHAR str, INT pos, INT length)
--> substring(BYTES str, INT pos, INT length)
--> CAST(.. AS STRING) converts DECIMAL(9, 2).

CREATE STREAM X AS SELECT ID, FORMAT_TIMESTAMP(ROWTIME, 'yyyy') AS T FROM ORDERS;
--> line 1:31: Function 'format_timestamp' does not accept parameters (BIGINT, STRING).
--> Valid alternatives are:
--> format_timestamp(TIMESTAMP timestamp, VARCHAR formatPattern)
--> format_timestamp(TIMESTAMP timestamp, VARCHAR formatPattern, VARCHAR timeZone)
--> FROM_UNIXTIME(..) converts BIGINT.

CREATE STREAM X AS SELECT ID, FORMAT_DATE(FROM_UNIXTIME(TS), 'yyyy') AS T FROM ORDERS;
--> line 1:31: Function 'format_date' does not accept parameters (TIMESTAMP, STRING).
--> Valid alternatives are:
--> format_date(DATE date, VARCHAR formatPattern)
--> CAST(.. AS DATE) converts TIMESTAMP.

CREATE TABLE X AS SELECT ID, SUM(CUSTOMER) AS T FROM ORDERS GROUP BY ID;
--> line 1:30: Function 'SUM' does not accept parameters (STRING).
--> Valid alternatives are:
--> SUM(INT val)
--> SUM(BIGINT val)
--> SUM(DOUBLE val)
--> SUM(DECIMAL val)
--> CAST(.. AS DOUBLE) converts STRING.

CREATE STREAM X AS SELECT ID, LEN(TAGS) AS T FROM ORDERS;
--> line 1:31: Function 'len' does not accept parameters (ARRAY<STRING>).
--> Valid alternatives are:
--> len(VARCHAR input)
--> len(BYTES input)

CREATE STREAM X AS SELECT ID, CASE WHEN TS > 5 THEN TS ELSE CAST(AMOUNT AS INT) END AS T FROM ORDERS;
--> Invalid Case expression. Type for the default clause should be the same as for 'THEN' clauses.
--> THEN type: BIGINT.
--> DEFAULT type: INTEGER.
--> CAST(.. AS BIGINT) gives them one type.

-- Types of other databases.

CREATE STREAM X (A FLOAT) WITH (KAFKA_TOPIC='orders');
--> line 1:20: Cannot resolve unknown type: FLOAT
--> Write DOUBLE.

CREATE STREAM X (A STRIN) WITH (KAFKA_TOPIC='orders');
--> line 1:20: Cannot resolve unknown type: STRIN
--> Did you mean STRING?

CREATE TABLE X (A INT, PRIMARY KEY (A)) WITH (KAFKA_TOPIC='orders');
--> line 1:32: Cannot resolve unknown type: KEY
--> KEY, or PRIMARY KEY of a table, follows the type of its column: (id INT KEY).

CREATE STREAM X AS SELECT * FROM ORDERS WHERE FROM_UNIXTIME(TS) > TIMESTAMP '2026-01-01';
--> line 1:67: Cannot resolve unknown type: TIMESTAMP
--> CAST('2026-01-01' AS TIMESTAMP) makes one of a text.

CREATE STREAM X AS SELECT ID, FROM_UNIXTIME(TS) + INTERVAL '1' DAY AS T FROM ORDERS;
--> line 1:51: Cannot resolve unknown type: INTERVAL
--> TIMESTAMPADD(DAYS, 1, x), DATEADD and TIMEADD add to times.

-- Conditions of joins.

CREATE STREAM X AS SELECT * FROM ORDERS O JOIN CUSTOMERS C ON O.TS = C.ID;
--> Invalid join condition: types don't match. Got O.TS{BIGINT} = C.ID{STRING}.
--> Write CAST(O.TS AS STRING) instead.

CREATE STREAM X AS SELECT * FROM ORDERS O JOIN CUSTOMERS C ON O.CUSTOMER = C.ID AND C.ID = 'Ada';
--> Invalid join condition: joins on multiple conditions are not yet supported. Got ((O.CUSTOMER = C.ID) AND (C.ID = 'Ada')).
--> Conditions on one source go into WHERE. Streams can be joined on an expression over several columns: ON a.x || a.y = b.x || b.y.

CREATE STREAM X AS SELECT * FROM CUSTOMERS C JOIN ORDERS O ON O.CUSTOMER = C.ID;
--> Invalid join order: table-stream joins are not supported; only stream-table joins. Got CUSTOMERS [INNER] JOIN ORDERS.
--> Write the stream first: FROM ORDERS .. JOIN CUSTOMERS ..
