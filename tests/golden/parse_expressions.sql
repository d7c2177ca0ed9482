-- Expressions: literals, operators and their order, access, constructors, calls.

-1
--> -1

- 1
--> -1

-(1)
--> -(1)

- -1
--> - -1

+1
--> +(1)

a -1
--> (A - 1)

a - -1
--> (A - -1)

2147483648
--> 2147483648

-9223372036854775808
--> -9223372036854775808

00012
--> 12

1.50
--> 1.50

.5
--> 0.5

5.
--> 5.

-0.005
--> -0.005

1e0
--> 1E0

1.5E10
--> 1.5E10

.5e-3
--> 5E-4

DECIMAL '12.30'
--> 12.30

'it''s'
--> 'it''s'

null
--> null

True
--> true

1 + 2 * 3 - 4 / 5 % 6
--> ((1 + (2 * 3)) - ((4 / 5) % 6))

(1 + 2) * 3
--> ((1 + 2) * 3)

-a * +b
--> (-A * +B)

a || b || 'c'
--> CONCAT(CONCAT(A, B), 'c')

a + b || c
--> CONCAT((A + B), C)

not a and b or c and not d or e
--> ((((NOT A) AND B) OR (C AND (NOT D))) OR E)

not a = b
--> (NOT (A = B))

a = b and c <> d or e != f
--> (((A = B) AND (C <> D)) OR (E <> F))

a < 1 and b <= 2 or c > 3 and d >= 4
--> (((A < 1) AND (B <= 2)) OR ((C > 3) AND (D >= 4)))

a is null or b is not null
--> ((A IS NULL) OR (B IS NOT NULL))

a is distinct from b and c is not distinct from null
--> ((A IS DISTINCT FROM B) AND (C IS NOT DISTINCT FROM null))

a between 1 and 2 and b not between 'x' and 'y'
--> ((A BETWEEN 1 AND 2) AND (NOT (B BETWEEN 'x' AND 'y')))

a in (1) and b not in (1, 2, a + 1)
--> ((A IN (1)) AND (NOT (B IN (1, 2, (A + 1)))))

a like 'x%' or b not like '!_' escape '!'
--> ((A LIKE 'x%') OR (NOT (B LIKE '!_' ESCAPE '!')))

case when a then 1 when b then 2 else 3 end
--> (CASE WHEN A THEN 1 WHEN B THEN 2 ELSE 3 END)

case a + 1 when 1 then 'x' end
--> (CASE (A + 1) WHEN 1 THEN 'x' END)

cast(a as decimal(4, 2))
--> CAST(A AS DECIMAL(4, 2))

cast(cast(a as varchar(3)) as int array)
--> CAST(CAST(A AS STRING) AS ARRAY<INTEGER>)

a.b
--> A.B

`a`."b"->c->`d e`[1]['x']
--> `a`.`b`->C->`d e`[1]['x']

(a + b)->c
--> (A + B)->C

(-a)[1]
--> (-A)[1]

(x.y)[-1]
--> X.Y[-1]

-5[1]
--> -5[1]

array[]
--> ARRAY[]

array[1, a, array[2]]
--> ARRAY[1, A, ARRAY[2]]

map()
--> MAP()

map('a' := 1, b := map(c := d))
--> MAP('a':=1, B:=MAP(C:=D))

struct()
--> STRUCT()

struct(a := 1, "b" := struct(c := 2))
--> STRUCT(A:=1, `b`:=STRUCT(C:=2))

array
--> ARRAY

map < 1 and struct > 2
--> ((MAP < 1) AND (STRUCT > 2))

map + array
--> (MAP + ARRAY)

count(*)
--> COUNT(*)

count()
--> COUNT()

`map`(1)
--> `MAP`(1)

`mixed Case`(1)
--> `MIXED CASE`(1)

f(x => x + 1)
--> F((X) => (X + 1))

f(a, (x, y) => x + y, z => f(z))
--> F(A, (X, Y) => (X + Y), (Z) => F(Z))

f((x) => (x))
--> F((X) => X)

f((x), (y))
--> F(X, Y)

dateadd(day, 1, day)
--> DATEADD(DAYS, 1, DAY)

timestampsub(MILLISECOND, 5, t)
--> TIMESTAMPSUB(MILLISECONDS, 5, T)

coalesce(day, hour)
--> COALESCE(DAY, HOUR)

f(seconds, minutes)
--> F(SECONDS, MINUTES)

1 -- a comment
 /* another
    one */ + 2 --
--> (1 + 2)
