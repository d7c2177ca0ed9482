-- CREATE OR REPLACE of running queries: + what is accepted, - what is refused.

CREATE STREAM A AS SELECT ID, AMOUNT FROM ORDERS;
CREATE OR REPLACE STREAM A AS SELECT O.ID, O.AMOUNT FROM ORDERS O EMIT CHANGES;
--> accepted: transparent
--> the query is simple; kept: backfill, cascading, ordered

CREATE STREAM A AS SELECT ID, AMOUNT FROM ORDERS;
CREATE OR REPLACE STREAM A AS SELECT ID, AMOUNT, CUSTOMER FROM ORDERS WHERE AMOUNT > 10;
--> accepted: data selection, schema evolution
--> the query is simple; kept: cascading, ordered
--> + SELECT: added `CUSTOMER` STRING (schema evolution)
--> + WHERE: none became (AMOUNT > 10) (data selection)

CREATE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A AS
  SELECT CUSTOMER, COUNT(*) AS N, SUM(AMOUNT) AS TOTAL FROM ORDERS GROUP BY CUSTOMER;
--> accepted: schema evolution
--> the query is stateful; kept: cascading, ordered
--> + SELECT: added `TOTAL` DECIMAL(9, 2) (schema evolution)

CREATE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS
  WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS
  WINDOW TUMBLING (SIZE 1 HOUR) WHERE AMOUNT > 5 GROUP BY CUSTOMER HAVING COUNT(*) > 3;
--> accepted: data selection
--> the query is stateful, windowed; kept: cascading, ordered
--> + HAVING: none became (`COUNT()` > 3) (data selection)
--> + WHERE: none became (AMOUNT > 5) (data selection)

CREATE STREAM A AS SELECT O.ID AS ORDER_ID, C.ID AS CID, C.NAME FROM ORDERS O
  JOIN CUSTOMERS C ON O.CUSTOMER = C.ID;
CREATE OR REPLACE STREAM A AS SELECT X.ID AS ORDER_ID, Y.ID AS CID, Y.NAME,
  X.AMOUNT + RANDOM() AS Z FROM ORDERS X JOIN CUSTOMERS Y ON X.CUSTOMER = Y.ID;
--> accepted: schema evolution
--> the query is stateful, joined, nondeterministic; kept: cascading, ordered
--> + SELECT: added `Z` DOUBLE (schema evolution)

CREATE STREAM A AS SELECT * FROM ORDERS;
ALTER STREAM ORDERS ADD COLUMN NOTE STRING;
CREATE OR REPLACE STREAM A AS SELECT * FROM ORDERS;
--> accepted: schema evolution
--> the query is simple; kept: cascading, ordered
--> + SELECT: added `NOTE` STRING (schema evolution)

CREATE STREAM A AS SELECT ID, AMOUNT FROM ORDERS;
CREATE OR REPLACE STREAM A AS SELECT ID, AMOUNT FROM RETURNS;
--> refused: source modifying
--> the query is simple; kept: cascading, ordered
--> - FROM: ORDERS is no longer read, RETURNS is instead (source modifying)

CREATE STREAM A AS SELECT ID, AMOUNT, CUSTOMER FROM ORDERS;
CREATE OR REPLACE STREAM A WITH (VALUE_FORMAT='DELIMITED') AS
  SELECT ID AS KEY_ID, CAST(AMOUNT AS DOUBLE) AS AMOUNT FROM ORDERS WHERE AMOUNT > 1;
--> refused: data selection, unsupported
--> the query is simple; kept: cascading, ordered
--> - the key columns: `ID` STRING KEY became `KEY_ID` STRING KEY (unsupported)
--> - SELECT: column AMOUNT was DECIMAL(9, 2), is DOUBLE (unsupported)
--> - SELECT: column `CUSTOMER` STRING was removed (unsupported)
--> - VALUE_FORMAT: JSON became DELIMITED, delimiter ',' (unsupported)
--> + WHERE: none became (AMOUNT > 1) (data selection)
--> + SELECT: AMOUNT was AMOUNT, is CAST(AMOUNT AS DOUBLE) (data selection)

CREATE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS
  WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS
  WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES) GROUP BY CUSTOMER HAVING MAX(AMOUNT) > 3;
--> refused: data selection, topology
--> the query is stateful, windowed; kept: cascading, ordered
--> + HAVING: none became (`MAX(AMOUNT)` > 3) (data selection)
--> - WINDOW: TUMBLING (SIZE 3600000 MILLISECONDS, RETENTION 86400000 MILLISECONDS, GRACE PERIOD 82800000 MILLISECONDS) became HOPPING (SIZE 3600000 MILLISECONDS, ADVANCE BY 300000 MILLISECONDS, RETENTION 86400000 MILLISECONDS, GRACE PERIOD 82800000 MILLISECONDS) (topology)
--> + HAVING: needs MAX(AMOUNT), whose state starts empty (data selection)

CREATE STREAM A AS SELECT ID, AMOUNT FROM ORDERS;
INSERT INTO A SELECT ID, AMOUNT FROM RETURNS;
CREATE OR REPLACE STREAM A AS SELECT ID, AMOUNT FROM ORDERS WHERE AMOUNT > 1;
--> REPLACE for sink A is not supported because there are multiple queries writing into it: [CSAS_A_3, INSERTQUERY_4]
--> Terminate the INSERT queries first, or replace one of them: CREATE OR REPLACE QUERY CSAS_A_3 AS INSERT INTO A SELECT ..

CREATE STREAM A AS SELECT ID, TAGS[1] AS TAG FROM ORDERS;
CREATE OR REPLACE STREAM A AS SELECT ID, EXPLODE(TAGS) AS TAG, AMOUNT FROM ORDERS;
--> accepted: data selection, schema evolution
--> the query is simple; kept: cascading, ordered
--> + SELECT: added `AMOUNT` DECIMAL(9, 2) (schema evolution)
--> + SELECT: table functions: none became EXPLODE(TAGS) (data selection)
--> + SELECT: TAG was TAGS[1], is `EXPLODE(TAGS)` (data selection)

CREATE STREAM A AS SELECT ID, EXPLODE(TAGS) AS TAG FROM ORDERS O;
CREATE OR REPLACE STREAM A AS SELECT ID, EXPLODE(X.TAGS) AS TAG FROM ORDERS X;
--> accepted: transparent
--> the query is simple; kept: backfill, cascading, ordered

CREATE STREAM A AS SELECT O.CUSTOMER, EXPLODE(O.TAGS) AS TAG FROM ORDERS O
  JOIN CUSTOMERS C ON O.CUSTOMER = C.ID;
CREATE OR REPLACE STREAM A AS SELECT X.CUSTOMER, EXPLODE(X.TAGS) AS TAG FROM ORDERS X
  JOIN CUSTOMERS Y ON X.CUSTOMER = Y.ID;
--> accepted: transparent
--> the query is stateful, joined; kept: backfill, cascading, ordered

CREATE STREAM A AS SELECT CUSTOMER, EXPLODE(TAGS) AS TAG FROM ORDERS PARTITION BY CUSTOMER;
CREATE OR REPLACE STREAM A AS SELECT CUSTOMER, TAGS[1] AS TAG FROM ORDERS PARTITION BY CUSTOMER;
--> accepted: data selection
--> the query is simple; kept: cascading, ordered
--> + SELECT: table functions: EXPLODE(TAGS) became none (data selection)
--> + SELECT: TAG was `EXPLODE(TAGS)`, is TAGS[1] (data selection)

CREATE TABLE A WITH (RETENTION_MS=60000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A WITH (RETENTION_MS=5000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
--> accepted: data selection
--> the query is stateful; kept: cascading, ordered
--> + RETENTION_MS: 60000 became 5000; rows that are past it leave with the next record of their partition (data selection)

CREATE TABLE A WITH (RETENTION_MS=5000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A WITH (RETENTION_MS=60000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
--> accepted: data selection
--> the query is stateful; kept: cascading, ordered
--> + RETENTION_MS: 5000 became 60000; rows that have left do not come back (data selection)

CREATE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A WITH (RETENTION_MS=5000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
--> accepted: data selection
--> the query is stateful; kept: cascading, ordered
--> + RETENTION_MS: none became 5000; rows that are past it leave with the next record of their partition (data selection)

CREATE TABLE A WITH (RETENTION_MS=5000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
--> accepted: data selection
--> the query is stateful; kept: cascading, ordered
--> + RETENTION_MS: 5000 became none; rows that have left do not come back (data selection)

CREATE TABLE A WITH (RETENTION_MS=5000) AS SELECT CUSTOMER, COUNT(*) AS N FROM ORDERS GROUP BY CUSTOMER;
CREATE OR REPLACE TABLE A WITH (RETENTION_MS=6000, REPLACE_MODE='backfill') AS
  SELECT CUSTOMER, COUNT(*) AS N, SUM(AMOUNT) AS TOTAL FROM ORDERS GROUP BY CUSTOMER;
--> refused: data selection, schema evolution
--> the query is stateful; kept: cascading, ordered
--> + SELECT: added `TOTAL` DECIMAL(9, 2) (schema evolution)
--> - RETENTION_MS: 5000 became 6000; rows that have left do not come back; added aggregates would fold other records than those that keep their state (data selection)
