-- What a user reads whose text does not fit.

SELEC * FROM s;
--> line 1:1: Syntax Error
--> Unknown statement 'SELEC'
--> Did you mean 'SELECT'?

frobnicate the stream;
--> line 1:1: Syntax Error
--> Unknown statement 'frobnicate'

RUN SCRIPT 'x';
--> line 1:1: Syntax Error
--> Unknown statement 'RUN'

'text';
--> line 1:1: Syntax Error
--> mismatched input ''text''

;
--> line 1:1: Syntax Error
--> mismatched input ';'

select * from s
--> line 1:16: Syntax Error
--> missing ';' at '<EOF>'

select * from s where;
--> line 1:22: Syntax Error
--> Syntax error at or near ';' at line 1:22

select a from from s;
--> line 1:15: Syntax Error
--> Syntax error at or near 'from' at line 1:15
--> "from" is a reserved keyword and it can't be used as an identifier. You can use it as an identifier by escaping it as '`from`'.

create stream table (a int);
--> line 1:15: Syntax Error
--> Syntax error at or near 'table' at line 1:15
--> "table" is a reserved keyword and it can't be used as an identifier. You can use it as an identifier by escaping it as '`table`'.

create stream s (a int b);
--> line 1:24: Syntax Error
--> Expecting {',', ')'}

create stream s (a varchar(x));
--> line 1:28: Syntax Error
--> Expecting {'STRING', INTEGER_VALUE}

create stream s (a varchar(1) (2));
--> line 1:31: Syntax Error
--> Expecting {',', ')'}

create stream s (a array<int);
--> line 1:29: Syntax Error
--> missing '>' at ')'

create stream s (a foo);
--> line 1:20: Cannot resolve unknown type: FOO

create stream s (a decimal(0, 0));
--> line 1:20: DECIMAL precision must be >= 1: DECIMAL(0,0)

create stream s (a decimal(2147483648, 0));
--> Failed to prepare statement: line 1:29: Invalid numeric literal: 2147483648

create stream s (a decimal(2, 3));
--> line 1:20: DECIMAL precision must be >= scale: DECIMAL(2,3)

create stream s (a decimal(-1, 3));
--> line 1:20: DECIMAL precision must be >= 1: DECIMAL(-1,3)

create stream s (a struct<x int, y int, x string>);
--> line 1:20: Duplicate field names found in STRUCT: '`X` INTEGER' and '`X` STRING'

create stream s (a int primary key);
--> Line: 1, Col: 18: Column `A` is a 'PRIMARY KEY' column: please use 'KEY' for streams.
--> Tables have PRIMARY KEYs, which are unique and NON NULL.
--> Streams have KEYs, which have no uniqueness or NON NULL constraints.

create table t (a int key);
--> Line: 1, Col: 17: Column `A` is a 'KEY' column: please use 'PRIMARY KEY' for tables.
--> Tables have PRIMARY KEYs, which are unique and NON NULL.
--> Streams have KEYs, which have no uniqueness or NON NULL constraints.

create stream `a b` (a int);
--> line 1:15: Illegal argument at Line: 1, Col: 15. Source names may only contain alphanumeric values, '_' or '-'. Got: 'a b'

create source stream s as select * from t;
--> line 1:27: Syntax Error
--> A SOURCE STREAM is declared over a topic, not by AS SELECT

select count(*) from s group by a, (b, c);
--> line 1:38: Syntax Error
--> missing ')' at ','

select a from s limit 1.5;
--> Failed to prepare statement: Value must be integer for command: LIMIT

select a from s limit 2147483648;
--> Failed to prepare statement: Value must be integer for command: LIMIT

select a from s limit x;
--> line 1:23: Syntax Error
--> Expecting {INTEGER_VALUE, DECIMAL_VALUE, FLOATING_POINT_VALUE}

select cast(a as null) from s;
--> line 1:18: Syntax Error
--> Syntax error at or near 'null' at line 1:18
--> "null" is a reserved keyword and it can't be used as an identifier. You can use it as an identifier by escaping it as '`null`'.

select f(a from s;
--> line 1:12: Syntax Error
--> missing ')' at 'from'

select a[1 from s;
--> line 1:12: Syntax Error
--> missing ']' at 'from'

select cast(a int) from s;
--> line 1:15: Syntax Error
--> Expecting 'AS'

select a like 'x' escape 'xy' from s;
--> line 1:26: Expected single character escape but got: xy

select a at time zone 'UTC' from s;
--> line 1:8: AT TIME ZONE is not supported yet

select TIMESTAMP '2020' from s;
--> line 1:8: Cannot resolve unknown type: TIMESTAMP
--> CAST('2020' AS TIMESTAMP) makes one of a text.

select DECIMAL 'x' from s;
--> Failed to prepare statement: line 1:9: Invalid numeric literal: x

select 9223372036854775808 from s;
--> Failed to prepare statement: line 1:9: Invalid numeric literal: 9223372036854775808

select -9223372036854775809 from s;
--> Failed to prepare statement: line 1:9: Invalid numeric literal: -9223372036854775809

select 1.7976931348623159E308 from s;
--> Failed to prepare statement: line 1:9: Number overflows DOUBLE: 1.7976931348623159E308

select 'abc from s;
--> line 1:8: Syntax Error
--> The quote ' is not closed
--> Write a quote inside twice: ''.

select "abc from s;
--> line 1:8: Syntax Error
--> The quote " is not closed
--> Write a quote inside twice: "".

select a /* from s;
--> line 1:10: Syntax Error
--> The comment is not closed

select 1.2.3 from s;
--> line 1:11: Syntax Error
--> Syntax error at or near '.3' at line 1:11

select a ? b from s;
--> line 1:10: Syntax Error
--> extraneous input '?'

select (a, b) => 1 from s;
--> line 1:10: Syntax Error
--> missing ')' at ','

print t interval 0;
--> line 1:1: INTERVAL must be at least 1

print t limit -1;
--> line 1:15: Invalid numeric literal: -1

assert values s values (1);
--> line 1:8: Syntax Error
--> Unknown statement 'assert values'
--> ASSERT of values and sources is for tests.

ASSERT NULL VALUES s (id) KEY (1);
--> line 1:8: Syntax Error
--> Unknown statement 'ASSERT NULL'
--> ASSERT of values and sources is for tests.

set a = b;
--> line 1:5: Syntax Error
--> Expecting STRING
--> Names and values of properties and variables stand in single quotes: SET 'auto.offset.reset' = 'earliest';

select ${x} + 1 as ${y} from s;
--> line 1:20: Variable substitution is disabled, ${y} has no value
--> Set 'ksql.variable.substitution.enable' to 'true'.

select a from s emit changes order by a;
--> line 1:30: Syntax Error
--> Expecting {';', 'LIMIT', 'OFFSET'}
--> ORDER BY is for pull queries: it stands behind HAVING, before LIMIT and OFFSET, and there is no EMIT.

select a from s limit 1 order by a;
--> line 1:25: Syntax Error
--> Expecting {';', 'OFFSET'}
--> ORDER BY is for pull queries: it stands behind HAVING, before LIMIT and OFFSET, and there is no EMIT.

select a from s offset 1 limit 1;
--> line 1:26: Syntax Error
--> Expecting ';'
--> LIMIT comes before OFFSET: LIMIT 10 OFFSET 20.

select a from s offset 1.5;
--> Failed to prepare statement: Value must be integer for command: OFFSET

select a from s order by;
--> line 1:25: Syntax Error
--> Syntax error at or near ';' at line 1:25

select distinct a from s;
--> line 1:8: Syntax Error
--> Syntax error at or near 'distinct' at line 1:8
--> There is no SELECT DISTINCT: use GROUP BY on the columns.

select * from a, b;
--> line 1:16: Syntax Error
--> Syntax error at or near ',' at line 1:16
--> To read from several sources, join them: FROM a JOIN b ON a.id = b.id.

select a == 1 from s;
--> line 1:11: Syntax Error
--> Syntax error at or near '=' at line 1:11
--> A single = compares.

create stream s with (kafka_topic = "t");
--> line 1:37: Syntax Error
--> Syntax error at or near '"t"' at line 1:37
--> The value of a property is a literal: a text in single quotes, a number or a boolean.
