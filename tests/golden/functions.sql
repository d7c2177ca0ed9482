-- Functions and operators: what each example of the reference gives, errors included.

ARRAY_CONCAT(NA,NA)
--> None (ARRAY<INTEGER>)

ARRAY_CONCAT(NA,G)
--> [3, 1, None, 2] (ARRAY<INTEGER>)

ARRAY_CONCAT(ARRAY[1],ARRAY[2])
--> [1, 2] (ARRAY<INTEGER>)

ARRAY_CONTAINS(NA,1)
--> False (BOOLEAN)

ARRAY_CONTAINS(G,NI)
--> True (BOOLEAN)

ARRAY_CONTAINS(ARRAY[1],NI)
--> False (BOOLEAN)

ARRAY_CONTAINS(G,2)
--> True (BOOLEAN)

ARRAY_DISTINCT(ARRAY[1,NI,1,NI])
--> [1, None] (ARRAY<INTEGER>)

ARRAY_EXCEPT(ARRAY[1,2,2,3],ARRAY[2])
--> [1, 3] (ARRAY<INTEGER>)

ARRAY_EXCEPT(G,NA)
--> None (ARRAY<INTEGER>)

ARRAY_INTERSECT(ARRAY[1,2,2],ARRAY[2,1])
--> [1, 2] (ARRAY<INTEGER>)

ARRAY_UNION(ARRAY[1,2],ARRAY[2,3])
--> [1, 2, 3] (ARRAY<INTEGER>)

ARRAY_UNION(G,NA)
--> None (ARRAY<INTEGER>)

ARRAY_JOIN(G)
--> '3,1,null,2' (STRING)

ARRAY_JOIN(G,N)
--> '31null2' (STRING)

ARRAY_JOIN(NA)
--> None (STRING)

ARRAY_JOIN(ARRAY[ARRAY[1]])
--> None (STRING)
--> logged: Error computing expression ARRAY_JOIN(ARRAY[ARRAY[1]]): ARRAY_JOIN does not work on elements of the type ARRAY<INTEGER>

ARRAY_JOIN(ARRAY[1.5,2.0],'|')
--> '1.5|2.0' (STRING)

ARRAY_JOIN(ARRAY[1E0,2E10])
--> '1.0,2.0E10' (STRING)

ARRAY_JOIN(ARRAY[true,false])
--> 'true,false' (STRING)

ARRAY_LENGTH(G)
--> 4 (INTEGER)

ARRAY_LENGTH(NA)
--> None (INTEGER)

ARRAY_MAX(G)
--> 3 (INTEGER)

ARRAY_MIN(GS)
--> 'a' (STRING)

ARRAY_MAX(ARRAY[NI])
--> None (INTEGER)

ARRAY_REMOVE(G,NI)
--> [3, 1, 2] (ARRAY<INTEGER>)

ARRAY_REMOVE(NA,1)
--> None (ARRAY<INTEGER>)

ARRAY_REMOVE(G,1)
--> [3, None, 2] (ARRAY<INTEGER>)

ARRAY_SORT(G)
--> [1, 2, 3, None] (ARRAY<INTEGER>)

ARRAY_SORT(G,'desc')
--> [3, 2, 1, None] (ARRAY<INTEGER>)

ARRAY_SORT(G,'foo')
--> None (ARRAY<INTEGER>)

ARRAY_SORT(G,'DESCENDING')
--> [3, 2, 1, None] (ARRAY<INTEGER>)

ARRAY_SORT(NA)
--> None (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],2,3)
--> [2, 3] (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],NI,2)
--> [1, 2] (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],2,NI)
--> [2, 3] (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],0,3)
--> None (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],1,4)
--> None (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],2,1)
--> [] (ARRAY<INTEGER>)

SLICE(ARRAY[1,2,3],3,1)
--> None (ARRAY<INTEGER>)
--> logged: Error computing expression SLICE(ARRAY[1, 2, 3], 3, 1): SLICE cannot end at 1 when it starts at 3

SLICE(NA,1,1)
--> None (ARRAY<INTEGER>)

GENERATE_SERIES(1,3)
--> [1, 2, 3] (ARRAY<INTEGER>)

GENERATE_SERIES(3,1)
--> [3, 2, 1] (ARRAY<INTEGER>)

GENERATE_SERIES(1,6,2)
--> [1, 3, 5] (ARRAY<INTEGER>)

GENERATE_SERIES(1,3,0)
--> None (ARRAY<INTEGER>)
--> logged: Error computing expression GENERATE_SERIES(1, 3, 0): GENERATE_SERIES cannot reach the end with the step 0

GENERATE_SERIES(1,3,-1)
--> None (ARRAY<INTEGER>)
--> logged: Error computing expression GENERATE_SERIES(1, 3, -1): GENERATE_SERIES cannot reach the end with the step -1

GENERATE_SERIES(2,2)
--> [2] (ARRAY<INTEGER>)

GENERATE_SERIES(B,4,1)
--> [2, 3, 4] (ARRAY<BIGINT>)

GENERATE_SERIES(NI,4)
--> None (ARRAY<INTEGER>)

ENTRIES(MAP('b':=1,'a':=2),true)
--> [{'K': 'a', 'V': 2}, {'K': 'b', 'V': 1}] (ARRAY<STRUCT<`K` STRING, `V` INTEGER>>)

ENTRIES(NM,true)
--> None (ARRAY<STRUCT<`K` STRING, `V` INTEGER>>)

AS_MAP(ARRAY['a','b'],ARRAY[1])
--> {'a': 1, 'b': None} (MAP<STRING, INTEGER>)

AS_MAP(ARRAY['a','a'],ARRAY[1,2])
--> {'a': 2} (MAP<STRING, INTEGER>)

AS_MAP(ARRAY['a'],ARRAY[1,2])
--> {'a': 1} (MAP<STRING, INTEGER>)

AS_MAP(GS,NA)
--> None (MAP<STRING, INTEGER>)

MAP_KEYS(M)
--> ['a', 'b'] (ARRAY<STRING>)

MAP_VALUES(M)
--> [1, None] (ARRAY<INTEGER>)

MAP_UNION(M,MAP('a':=5))
--> {'a': 5, 'b': None} (MAP<STRING, INTEGER>)

MAP_UNION(NM,NM)
--> None (MAP<STRING, INTEGER>)

MAP_UNION(NM,M)
--> {'a': 1, 'b': None} (MAP<STRING, INTEGER>)

MAP_KEYS(NM)
--> None (ARRAY<STRING>)

TRANSFORM(NA,q=>q+1)
--> None (ARRAY<INTEGER>)

TRANSFORM(MAP('a':=1),(q,v)=>'z',(q,v)=>v+1)
--> {'z': 2} (MAP<STRING, INTEGER>)

TRANSFORM(MAP('a':=1,'b':=2),(q,v)=>'z',(q,v)=>v)
--> None (MAP<STRING, INTEGER>)
--> logged: Error computing expression TRANSFORM(MAP('a' := 1, 'b' := 2), (Q, V) => 'z', (Q, V) => V): Duplicate key z

FILTER(ARRAY[1,5],q=>q>2)
--> [5] (ARRAY<INTEGER>)

FILTER(MAP('a':=1,'b':=2),(q,v)=>v>1)
--> {'b': 2} (MAP<STRING, INTEGER>)

FILTER(M,(q,v)=>true)
--> None (MAP<STRING, INTEGER>)
--> logged: Error computing expression FILTER(M, (Q, V) => TRUE): FILTER cannot keep the key b: its value is NULL

FILTER(NA,q=>true)
--> None (ARRAY<INTEGER>)

REDUCE(ARRAY[1,2],0,(s,q)=>s+q)
--> 3 (INTEGER)

REDUCE(NA,7,(s,q)=>s+q)
--> 7 (INTEGER)

REDUCE(ARRAY[1],NI,(s,q)=>s+q)
--> None (INTEGER)

REDUCE(MAP('a':=1),10,(s,q,v)=>s+v)
--> 11 (INTEGER)

TRANSFORM(G,q=>q+1)
--> None (ARRAY<INTEGER>)
--> logged: Error computing expression TRANSFORM(G, (Q) => (Q + 1)): a NULL operand

COALESCE(NI,3)
--> 3 (INTEGER)

COALESCE(NI,NI)
--> None (INTEGER)

IFNULL(NI,5)
--> 5 (INTEGER)

NULLIF(A,1)
--> None (INTEGER)

NULLIF(A,2)
--> 1 (INTEGER)

NULLIF(D,1.250)
--> refused: line 1:1: Function 'NULLIF' does not accept parameters (DECIMAL(4, 2), DECIMAL(4, 3)).
--> Valid alternatives are:
--> NULLIF(T expression1, T expression2)
--> CAST(.. AS DECIMAL(4, 2)) converts DECIMAL(4, 3).

GREATEST(1,2,3)
--> 3 (INTEGER)

GREATEST(NI,2)
--> 2 (INTEGER)

GREATEST(NI,NI)
--> None (INTEGER)

LEAST('b','a')
--> 'a' (STRING)

GREATEST(1.5,2.25)
--> Decimal('2.25') (DECIMAL(3, 2))

GREATEST(A)
--> 1 (INTEGER)

GREATEST()
--> refused: line 1:1: Function 'greatest' does not accept parameters ().
--> Valid alternatives are:
--> greatest(INT val, INT... vals)
--> greatest(BIGINT val, BIGINT... vals)
--> greatest(DOUBLE val, DOUBLE... vals)
--> greatest(VARCHAR val, VARCHAR... vals)
--> greatest(BYTES val, BYTES... vals)
--> greatest(DATE val, DATE... vals)
--> greatest(TIME val, TIME... vals)
--> greatest(TIMESTAMP val, TIMESTAMP... vals)
--> greatest(DECIMAL val, DECIMAL... vals)

CHR(75)
--> 'K' (STRING)

CHR(99999999)
--> None (STRING)

CHR('\u004b')
--> 'K' (STRING)

CHR('x')
--> None (STRING)

CHR('\u00')
--> None (STRING)

CHR(-1)
--> None (STRING)

CHR(NI)
--> None (STRING)

CONCAT(E,N,'y')
--> 'xy' (STRING)

CONCAT(N,N)
--> '' (STRING)

CONCAT_WS('-',E,N,'y')
--> 'x-y' (STRING)

CONCAT_WS(N,E,'y')
--> None (STRING)

CONCAT_WS('-',N,N)
--> '' (STRING)

CONCAT_WS('-')
--> None (STRING)
--> logged: Error computing expression CONCAT_WS('-'): CONCAT_WS expects at least two arguments

CONCAT_WS('-','a')
--> 'a' (STRING)

ELT(1,'a','b')
--> 'a' (STRING)

ELT(3,'a','b')
--> None (STRING)

ELT(0,'a')
--> None (STRING)

FIELD('b','a','b')
--> 2 (INTEGER)

FIELD(N,'a')
--> 0 (INTEGER)

FIELD('z','a')
--> 0 (INTEGER)

ENCODE('abc','utf8','hex')
--> '616263' (STRING)

ENCODE('0x616','hex','utf8')
--> '\x06\x16' (STRING)

ENCODE('X''6162''','hex','utf8')
--> 'ab' (STRING)

ENCODE('a','utf8','utf8')
--> None (STRING)
--> logged: Error computing expression ENCODE('a', 'utf8', 'utf8'): unsupported encoding: utf8 to utf8; there are HEX, UTF8, ASCII and BASE64

ENCODE('a','foo','hex')
--> None (STRING)
--> logged: Error computing expression ENCODE('a', 'foo', 'hex'): unsupported encoding: foo; there are HEX, UTF8, ASCII and BASE64

ENCODE(N,'utf8','hex')
--> None (STRING)

ENCODE('abc','utf8','base64')
--> 'YWJj' (STRING)

ENCODE('616263','hex','base64')
--> 'YWJj' (STRING)

ENCODE('ÿ','utf8','ascii')
--> '��' (STRING)

FROM_BYTES(BYT,'hex')
--> '010203' (STRING)

FROM_BYTES(TO_BYTES('AB','hex'),'hex')
--> 'AB' (STRING)

FROM_BYTES(NB,'hex')
--> None (STRING)

FROM_BYTES(BYT,'foo')
--> None (STRING)
--> logged: Error computing expression FROM_BYTES(BYT, 'foo'): unsupported encoding: foo; there are HEX, UTF8, ASCII and BASE64

TO_BYTES('zz','hex')
--> None (BYTES)
--> logged: Error computing expression TO_BYTES('zz', 'hex'): 'zz' is not in the encoding HEX

TO_BYTES(N,'hex')
--> None (BYTES)

TO_BYTES('YWJj','base64')
--> b'abc' (BYTES)

INT_FROM_BYTES(TO_BYTES('00000001','hex'))
--> 1 (INTEGER)

INT_FROM_BYTES(TO_BYTES('01000000','hex'),'LITTLE_ENDIAN')
--> 1 (INTEGER)

INT_FROM_BYTES(BYT)
--> None (INTEGER)
--> logged: Error computing expression INT_FROM_BYTES(BYT): 4 bytes are needed, not 3

INT_FROM_BYTES(NB)
--> None (INTEGER)

BIGINT_FROM_BYTES(TO_BYTES('0000000000000001','hex'),'foo')
--> None (BIGINT)
--> logged: Error computing expression BIGINT_FROM_BYTES(TO_BYTES('0000000000000001', 'hex'), 'foo'): the byte order must be BIG_ENDIAN or LITTLE_ENDIAN, not foo

DOUBLE_FROM_BYTES(TO_BYTES('3ff8000000000000','hex'))
--> 1.5 (DOUBLE)

INITCAP('the QUICK  fox')
--> 'The Quick  Fox' (STRING)

INITCAP('  ab c')
--> 'Ab C' (STRING)

INITCAP(N)
--> None (STRING)

INITCAP('')
--> '' (STRING)

INSTR('CORPORATE FLOOR','OR')
--> 2 (INTEGER)

INSTR('CORPORATE FLOOR','OR',3,2)
--> 14 (INTEGER)

INSTR('CORPORATE FLOOR','OR',-3)
--> 5 (INTEGER)

INSTR('CORPORATE FLOOR','OR',-3,2)
--> 2 (INTEGER)

INSTR('ab','z')
--> 0 (INTEGER)

INSTR('ab','a',9)
--> 0 (INTEGER)

INSTR(N,'a')
--> 0 (INTEGER)

LCASE('AbC')
--> 'abc' (STRING)

UCASE('aß')
--> 'ASS' (STRING)

TRIM('  a b	')
--> 'a b' (STRING)

LEN('abc')
--> 3 (INTEGER)

LEN(BYT)
--> 3 (INTEGER)

LEN('😀')
--> 2 (INTEGER)

LEN(N)
--> None (INTEGER)

LPAD('foo',7,'Bar')
--> 'BarBfoo' (STRING)

LPAD('foo',2,'Bar')
--> 'fo' (STRING)

RPAD('foo',7,'Bar')
--> 'fooBarB' (STRING)

LPAD('foo',-1,'a')
--> None (STRING)

LPAD('foo',5,'')
--> None (STRING)

LPAD(N,5,'a')
--> None (STRING)

RPAD('foo',0,'a')
--> '' (STRING)

MASK('My Test $123')
--> 'Xx-Xxxx--nnn' (STRING)

MASK('My Test $123','*',CAST(NULL AS STRING),'1',CAST(NULL AS STRING))
--> '*y *est $111' (STRING)

MASK('a','xx')
--> refused: line 1:1: Function 'mask' does not accept parameters (STRING, STRING).
--> Valid alternatives are:
--> mask(VARCHAR input)
--> mask(VARCHAR input, VARCHAR upper, VARCHAR lower, VARCHAR digit, VARCHAR other)

MASK_LEFT('My Test',4)
--> 'Xx-Xest' (STRING)

MASK_LEFT('ab',9)
--> 'xx' (STRING)

MASK_LEFT('ab',-1)
--> None (STRING)
--> logged: Error computing expression MASK_LEFT('ab', -1): the number of characters to mask must not be negative: -1

MASK_RIGHT('My Test $123',4)
--> 'My Test -nnn' (STRING)

MASK_KEEP_LEFT('My Test',4)
--> 'My Txxx' (STRING)

MASK_KEEP_RIGHT('My Test $123',4)
--> 'Xx-Xxxx-$123' (STRING)

MASK(N)
--> None (STRING)

MD5('a')
--> '0cc175b9c0f1b6a831c399e269772661' (STRING)

REGEXP_EXTRACT('(\w+) b','a b',1)
--> 'a' (STRING)

REGEXP_EXTRACT('z','a')
--> None (STRING)

REGEXP_EXTRACT('(a)','a',3)
--> None (STRING)

REGEXP_EXTRACT('(','a')
--> None (STRING)
--> logged: Error computing expression REGEXP_EXTRACT('(', 'a'): Invalid regular expression pattern: '(': Unclosed group

REGEXP_EXTRACT_ALL('z','a')
--> [] (ARRAY<STRING>)

REGEXP_EXTRACT_ALL('.','ab')
--> ['a', 'b'] (ARRAY<STRING>)

REGEXP_REPLACE('abab','(a)b','$1x')
--> 'axax' (STRING)

REGEXP_REPLACE(N,'a','b')
--> None (STRING)

REGEXP_SPLIT_TO_ARRAY('aabcda','(ab|cd)')
--> ['a', '', 'a'] (ARRAY<STRING>)

REGEXP_SPLIT_TO_ARRAY('ab','')
--> ['a', 'b'] (ARRAY<STRING>)

REGEXP_SPLIT_TO_ARRAY(',a,',',')
--> ['', 'a', ''] (ARRAY<STRING>)

REPLACE('foobar','o','0')
--> 'f00bar' (STRING)

REPLACE('a',N,'b')
--> None (STRING)

SPLIT('a,b,',',')
--> ['a', 'b', ''] (ARRAY<STRING>)

SPLIT('ab','')
--> ['a', 'b'] (ARRAY<STRING>)

SPLIT(N,',')
--> None (ARRAY<STRING>)

SPLIT(BYT,TO_BYTES('02','hex'))
--> [b'\x01', b'\x03'] (ARRAY<BYTES>)

SPLIT_TO_MAP('a:1,b,:3,a:2:x,',',',':')
--> {'a': '2', '': '3'} (MAP<STRING, STRING>)

SPLIT_TO_MAP('a',',',',')
--> None (MAP<STRING, STRING>)

SPLIT_TO_MAP(N,',',':')
--> None (MAP<STRING, STRING>)

SPLIT_TO_MAP('a:1','',':')
--> None (MAP<STRING, STRING>)

SUBSTRING('stream',1,4)
--> 'stre' (STRING)

SUBSTRING('stream',0,3)
--> 'str' (STRING)

SUBSTRING('stream',-3)
--> 'eam' (STRING)

SUBSTRING('stream',-30)
--> 'stream' (STRING)

SUBSTRING('stream',30)
--> '' (STRING)

SUBSTRING('stream',2,-1)
--> '' (STRING)

SUBSTRING(N,1)
--> None (STRING)

SUBSTRING('stream',NI)
--> None (STRING)

SUBSTRING(BYT,2)
--> b'\x02\x03' (BYTES)

UUID(BYT)
--> None (STRING)

UUID(TO_BYTES('0123456789abcdef0123456789abcdef','hex'))
--> '01234567-89ab-cdef-0123-456789abcdef' (STRING)

TO_JSON_STRING(STRUCT(b:=1,a:='x'))
--> '{"A":"x","B":1}' (STRING)

TO_JSON_STRING(N)
--> 'null' (STRING)

TO_JSON_STRING(BYT)
--> '"AQID"' (STRING)

TO_JSON_STRING(DT)
--> '"1970-01-02"' (STRING)

TO_JSON_STRING(TI)
--> '"01:01:01"' (STRING)

TO_JSON_STRING(TS)
--> '"1970-01-02T01:01:01.001"' (STRING)

TO_JSON_STRING(D)
--> '1.25' (STRING)

TO_JSON_STRING(M)
--> '{"a":1,"b":null}' (STRING)

TO_JSON_STRING(1E10)
--> '1.0E10' (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$.a.b[1]')
--> '2.50' (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$.s')
--> 't' (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$.a')
--> '{"b":[1,2.50,"x",null]}' (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$.n')
--> 'null' (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$.z')
--> None (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$.a.b.x')
--> None (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','$["s"]')
--> 't' (STRING)

EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}','x')
--> None (STRING)
--> logged: Error computing expression EXTRACTJSONFIELD('{"a":{"b":[1,2.50,"x",null]},"s":"t","n":null}', 'x'): Invalid JSON path: 'x'

EXTRACTJSONFIELD('nojson','$.a')
--> None (STRING)
--> logged: Error computing expression EXTRACTJSONFIELD('nojson', '$.a'): 'nojson' is not a valid JSON string

EXTRACTJSONFIELD(N,'$.a')
--> None (STRING)

IS_JSON_STRING('[1]')
--> True (BOOLEAN)

IS_JSON_STRING('')
--> False (BOOLEAN)

IS_JSON_STRING(N)
--> False (BOOLEAN)

IS_JSON_STRING('{')
--> False (BOOLEAN)

IS_JSON_STRING('1 x')
--> True (BOOLEAN)

JSON_ARRAY_CONTAINS('[1,2]',1)
--> True (BOOLEAN)

JSON_ARRAY_CONTAINS('[1.5]',1.5E0)
--> True (BOOLEAN)

JSON_ARRAY_CONTAINS('["a"]','a')
--> True (BOOLEAN)

JSON_ARRAY_CONTAINS('[null]',NULL)
--> True (BOOLEAN)

JSON_ARRAY_CONTAINS('{}',1)
--> False (BOOLEAN)

JSON_ARRAY_CONTAINS('bad',1)
--> False (BOOLEAN)

JSON_ARRAY_CONTAINS('[true]',true)
--> True (BOOLEAN)

JSON_ARRAY_LENGTH('[1,2]')
--> 2 (INTEGER)

JSON_ARRAY_LENGTH('{}')
--> None (INTEGER)

JSON_ARRAY_LENGTH('bad')
--> None (INTEGER)
--> logged: Error computing expression JSON_ARRAY_LENGTH('bad'): 'bad' is not a valid JSON string

JSON_ARRAY_LENGTH(N)
--> None (INTEGER)

JSON_CONCAT('{"a":1}','{"b":2}')
--> '{"a":1,"b":2}' (STRING)

JSON_CONCAT('[1]','2')
--> '[1,2]' (STRING)

JSON_CONCAT('{"a":1}','[1]')
--> '[{"a":1},1]' (STRING)

JSON_CONCAT('1','2')
--> '[1,2]' (STRING)

JSON_CONCAT(N,'1')
--> None (STRING)

JSON_ITEMS('[1,"a",{"b":1}]')
--> ['1', '"a"', '{"b":1}'] (ARRAY<STRING>)

JSON_ITEMS('{}')
--> None (ARRAY<STRING>)
--> logged: Error computing expression JSON_ITEMS('{}'): '{}' is not a JSON array

JSON_KEYS('{"a":1,"b":2}')
--> ['a', 'b'] (ARRAY<STRING>)

JSON_KEYS('[]')
--> None (ARRAY<STRING>)

JSON_KEYS(N)
--> None (ARRAY<STRING>)

JSON_RECORDS('{"a":"x","b":[1]}')
--> {'a': 'x', 'b': '[1]'} (MAP<STRING, STRING>)

JSON_RECORDS('[]')
--> None (MAP<STRING, STRING>)

ABS(-1.5)
--> Decimal('1.5') (DECIMAL(2, 1))

ABS(-2147483648)
--> -2147483648 (INTEGER)

CEIL(1.5)
--> Decimal('2.0') (DECIMAL(2, 1))

CEIL(1.2E0)
--> 2.0 (DOUBLE)

FLOOR(-1.5)
--> Decimal('-2.0') (DECIMAL(2, 1))

CEIL(A)
--> 1 (INTEGER)

ROUND(1.5E0)
--> 2 (BIGINT)

ROUND(-1.5E0)
--> -1 (BIGINT)

ROUND(2.345E0,2)
--> 2.35 (DOUBLE)

ROUND(1.55,1)
--> Decimal('1.60') (DECIMAL(3, 2))

ROUND(D)
--> Decimal('1') (DECIMAL(2, 0))

ROUND(1234.5E0,-2)
--> 1200.0 (DOUBLE)

ROUND(0.5)
--> Decimal('1') (DECIMAL(1, 0))

TRUNC(1.9E0)
--> 1 (BIGINT)

TRUNC(-1.9E0)
--> -1 (BIGINT)

TRUNC(1.99,1)
--> Decimal('1.90') (DECIMAL(3, 2))

SIGN(-5)
--> -1 (INTEGER)

SIGN(0.0E0)
--> 0 (INTEGER)

SQRT(-1)
--> nan (DOUBLE)

LN(0)
--> -inf (DOUBLE)

LOG(2,8)
--> 3.0 (DOUBLE)

LOG(1,8)
--> nan (DOUBLE)

LOG(8)
--> 2.0794415416798357 (DOUBLE)

POWER(2,10)
--> 1024.0 (DOUBLE)

CBRT(27)
--> 3.0 (DOUBLE)

EXP(0)
--> 1.0 (DOUBLE)

SIN(0)
--> 0.0 (DOUBLE)

COT(0)
--> inf (DOUBLE)

ATAN2(1,1)
--> 0.7853981633974483 (DOUBLE)

DEGREES(PI())
--> 180.0 (DOUBLE)

RADIANS(180)
--> 3.141592653589793 (DOUBLE)

ASIN(2)
--> nan (DOUBLE)

ABS(NI)
--> None (INTEGER)

SQRT(NI)
--> None (DOUBLE)

TANH(0)
--> 0.0 (DOUBLE)

GEO_DISTANCE(37.4439,-122.1663,51.5257,-0.1122)
--> 8634.659796579546 (DOUBLE)

GEO_DISTANCE(37.4439,-122.1663,51.5257,-0.1122,'foo')
--> None (DOUBLE)
--> logged: Error computing expression GEO_DISTANCE(37.4439, -122.1663, 51.5257, -0.1122, 'foo'): the unit of a distance must be miles or kilometres, not 'foo'

GEO_DISTANCE(91E0,0E0,0E0,0E0)
--> None (DOUBLE)
--> logged: Error computing expression GEO_DISTANCE(91.0, 0.0, 0.0, 0.0): latitude must be between -90 and 90, not 91.0

UNIX_TIMESTAMP(TS)
--> 90061001 (BIGINT)

UNIX_DATE(DT)
--> 1 (INTEGER)

FROM_UNIXTIME(B)
--> 2 (TIMESTAMP)

FROM_DAYS(5)
--> 5 (DATE)

DATEADD(DAYS,2,DT)
--> 3 (DATE)

DATEADD(HOURS,23,DT)
--> 1 (DATE)

DATEADD(HOURS,25,DT)
--> 2 (DATE)

DATESUB(DAYS,1,DT)
--> 0 (DATE)

TIMEADD(HOURS,24,TI)
--> 3661001 (TIME)

TIMESUB(HOURS,2,TI)
--> 82861001 (TIME)

TIMESTAMPADD(DAYS,1,TS)
--> 176461001 (TIMESTAMP)

TIMESTAMPADD('DAYS',1,TS)
--> refused: line 1:1: Function 'timestampadd' does not accept parameters (STRING, INTEGER, TIMESTAMP).
--> Valid alternatives are:
--> timestampadd(INTERVALUNIT unit, INT interval, TIMESTAMP timestamp)

DATEADD(DAYS,NI,DT)
--> None (DATE)

CONVERT_TZ(TS,'UTC','America/New_York')
--> 72061001 (TIMESTAMP)

CONVERT_TZ(TS,'UTC','+0200')
--> 97261001 (TIMESTAMP)

CONVERT_TZ(TS,'foo','UTC')
--> None (TIMESTAMP)
--> logged: Error computing expression CONVERT_TZ(TS, 'foo', 'UTC'): Unknown time-zone ID: foo

FORMAT_DATE(DT,'yyyy-MM-dd')
--> '1970-01-02' (STRING)

FORMAT_TIME(TI,'HH:mm:ss.SSS')
--> '01:01:01.001' (STRING)

FORMAT_TIMESTAMP(TS,'yyyy-MM-dd HH:mm:ss')
--> '1970-01-02 01:01:01' (STRING)

FORMAT_TIMESTAMP(TS,'HH:mm z','Europe/Berlin')
--> '02:01 CET' (STRING)

FORMAT_DATE(DT,'HH')
--> None (STRING)
--> logged: Error computing expression FORMAT_DATE(DT, 'HH'): Unsupported field: the value has nothing for the pattern letter HOUR

FORMAT_DATE(DT,'''T''yyyy')
--> 'T1970' (STRING)

PARSE_DATE('2020-05-06','yyyy-MM-dd')
--> 18388 (DATE)

PARSE_DATE('2020-05-06 10','yyyy-MM-dd HH')
--> None (DATE)
--> logged: Error computing expression PARSE_DATE('2020-05-06 10', 'yyyy-MM-dd HH'): Failed to parse date '2020-05-06 10' with formatter 'yyyy-MM-dd HH': Date format contains time field

PARSE_DATE('x','yyyy')
--> None (DATE)
--> logged: Error computing expression PARSE_DATE('x', 'yyyy'): Failed to parse date 'x' with formatter 'yyyy'

PARSE_DATE(N,'yyyy')
--> None (DATE)

PARSE_TIME('10:11','HH:mm')
--> 36660000 (TIME)

PARSE_TIME('1PM','ha')
--> 46800000 (TIME)

PARSE_TIME('2020','yyyy')
--> None (TIME)
--> logged: Error computing expression PARSE_TIME('2020', 'yyyy'): Failed to parse time '2020' with formatter 'yyyy': Time format contains date field

PARSE_TIMESTAMP('2020-05-06','yyyy-MM-dd')
--> 1588723200000 (TIMESTAMP)

PARSE_TIMESTAMP('10','HH')
--> 36000000 (TIMESTAMP)

PARSE_TIMESTAMP('2020-05-06 10:00','yyyy-MM-dd HH:mm','America/New_York')
--> 1588773600000 (TIMESTAMP)

PARSE_TIMESTAMP('06 may 2020','dd MMM yyyy')
--> 1588723200000 (TIMESTAMP)

DATETOSTRING(1,'yyyy-MM-dd')
--> '1970-01-02' (STRING)

DATETOSTRING(1,N)
--> None (STRING)

STRINGTODATE('1970-01-02','yyyy-MM-dd')
--> 1 (INTEGER)

STRINGTODATE(N,'yyyy')
--> None (INTEGER)
--> logged: Error computing expression STRINGTODATE(N, 'yyyy'): STRINGTODATE cannot parse NULL

TIMESTAMPTOSTRING(0,'yyyy','UTC')
--> '1970' (STRING)

STRINGTOTIMESTAMP('1970-01-02','yyyy-MM-dd','UTC')
--> 86400000 (BIGINT)

STRINGTOTIMESTAMP(N,'yyyy')
--> None (BIGINT)
--> logged: Error computing expression STRINGTOTIMESTAMP(N, 'yyyy'): STRINGTOTIMESTAMP cannot parse NULL

URL_EXTRACT_PROTOCOL('http://a.b:8/p?q=1#f')
--> 'http' (STRING)

URL_EXTRACT_HOST('http://a.b:8/p')
--> 'a.b' (STRING)

URL_EXTRACT_PORT('http://a.b:8/p')
--> 8 (INTEGER)

URL_EXTRACT_PORT('http://a.b/p')
--> None (INTEGER)

URL_EXTRACT_PATH('http://a.b/p/q')
--> '/p/q' (STRING)

URL_EXTRACT_QUERY('http://a.b/p?a=%20b')
--> 'a= b' (STRING)

URL_EXTRACT_FRAGMENT('http://a/#x')
--> 'x' (STRING)

URL_EXTRACT_PARAMETER('http://a/?x=1&y','y')
--> '' (STRING)

URL_EXTRACT_PARAMETER('http://a/?x=1','z')
--> None (STRING)

URL_EXTRACT_PARAMETER('http://a/?x=1&x=2','x')
--> '1' (STRING)

URL_ENCODE_PARAM('a b&c')
--> 'a+b%26c' (STRING)

URL_DECODE_PARAM('a+b%26c')
--> 'a b&c' (STRING)

URL_EXTRACT_HOST(N)
--> None (STRING)

URL_EXTRACT_HOST('http://[')
--> None (STRING)
--> logged: Error computing expression URL_EXTRACT_HOST('http://['): URL input has invalid syntax: http://[: Malformed IPv6 address

A+B*2
--> 5 (BIGINT)

-2147483648 - 1
--> 2147483647 (INTEGER)

2147483647 + 1
--> -2147483648 (INTEGER)

A/2
--> 0 (INTEGER)

-7/2
--> -3 (INTEGER)

-7%3
--> -1 (INTEGER)

7%0
--> None (INTEGER)
--> logged: Error computing expression (7 % 0): / by zero

C%0
--> nan (DOUBLE)

D+1.005
--> Decimal('2.255') (DECIMAL(6, 3))

1.0/4
--> Decimal('0.250000000000') (DECIMAL(13, 12))

NI+1
--> None (INTEGER)
--> logged: Error computing expression (NI + 1): a NULL operand

-NI
--> None (INTEGER)
--> logged: Error computing expression -NI: a NULL operand

N||'a'
--> 'a' (STRING)

E+N
--> 'xnull' (STRING)

NI=1
--> False (BOOLEAN)

NI<>1
--> False (BOOLEAN)

NOT (NI=1)
--> True (BOOLEAN)

NI IS DISTINCT FROM 1
--> True (BOOLEAN)

NI IS NOT DISTINCT FROM NI
--> True (BOOLEAN)

NI IN (1,2)
--> False (BOOLEAN)

NI NOT IN (1,2)
--> True (BOOLEAN)

N LIKE 'a'
--> None (BOOLEAN)
--> logged: Error computing expression (N LIKE 'a'): a NULL operand

NI BETWEEN 1 AND 2
--> False (BOOLEAN)

E IN (N,'x')
--> True (BOOLEAN)

'a%c' LIKE 'a!%c' ESCAPE '!'
--> True (BOOLEAN)

'abc' LIKE 'a_c'
--> True (BOOLEAN)

'a' LIKE 'a!' ESCAPE '!'
--> None (BOOLEAN)
--> logged: Error computing expression ('a' LIKE 'a!' ESCAPE '!'): the LIKE pattern 'a!' ends in its escape character

CAST('NaN' AS DOUBLE)
--> None (DOUBLE)
--> logged: Error computing expression CAST('NaN' AS DOUBLE): For input string: "NaN"

CAST(1.9E0 AS INT)
--> 1 (INTEGER)

CAST(1E20 AS INT)
--> 2147483647 (INTEGER)

CAST(-1.9 AS INT)
--> -1 (INTEGER)

CAST(3000000000 AS INT)
--> -1294967296 (INTEGER)

CAST(' 5 ' AS INT)
--> 5 (INTEGER)

CAST(N AS STRING)
--> None (STRING)

CAST(true AS STRING)
--> 'true' (STRING)

CAST(TS AS DATE)
--> 1 (DATE)

CAST(DT AS TIMESTAMP)
--> 86400000 (TIMESTAMP)

CAST(TS AS TIME)
--> 3661001 (TIME)

CAST('2020' AS TIMESTAMP)
--> 1577836800000 (TIMESTAMP)

CAST('2020-05-06T10+0200' AS TIMESTAMP)
--> 1588752000000 (TIMESTAMP)

CAST('2020-05-06T10:11:12.5Z' AS TIMESTAMP)
--> 1588759872500 (TIMESTAMP)

CAST('2020-05' AS DATE)
--> 18383 (DATE)

CAST('10:11' AS TIME)
--> 36660000 (TIME)

CAST('AQID' AS BYTES)
--> b'\x01\x02\x03' (BYTES)

CAST(M AS STRING)
--> '{a=1, b=null}' (STRING)

CAST(D AS STRING)
--> '1.25' (STRING)

CAST(1.005 AS DECIMAL(3,2))
--> Decimal('1.01') (DECIMAL(3, 2))

CAST(100 AS DECIMAL(3,2))
--> None (DECIMAL(3, 2))
--> logged: Error computing expression CAST(100 AS DECIMAL(3, 2)): Numeric field overflow: A field with precision 3 and scale 2 must round to an absolute value less than 10^1. Got 100
