-- Queries with each of their clauses.

select * from s;
--> SELECT *
--> FROM S S;

select s.*, a.b, c d, e as "f g", a->b->*, a->b->c from s a where a.b = 1;
--> SELECT
-->   S.*,
-->   A.B,
-->   C D,
-->   E `f g`,
-->   A->B->*,
-->   A->B->C
--> FROM S A
--> WHERE (A.B = 1);

select a emit from s emit emit changes limit 10;
--> SELECT A EMIT
--> FROM S EMIT
--> EMIT CHANGES
--> LIMIT 10;

select a from s partition partition by a emit changes;
--> SELECT A
--> FROM S PARTITION
--> PARTITION BY A
--> EMIT CHANGES;

select a from ids id where id.a = id.b;
--> SELECT A
--> FROM IDS ID
--> WHERE (ID.A = ID.B);

select * from a inner join b on a.x = b.x;
--> SELECT *
--> FROM A A
--> INNER JOIN B B ON ((A.X = B.X));

select * from a as l left outer join b r within 10 seconds on l.x = r.x right join c within (1 day, 2 hours) grace period 3 minutes on c.x = l.x full outer join d on d.x = c.x;
--> SELECT *
--> FROM A L
--> LEFT OUTER JOIN B R WITHIN 10 SECONDS ON ((L.X = R.X))
--> RIGHT OUTER JOIN C C WITHIN (1 DAYS, 2 HOURS) GRACE PERIOD 3 MINUTES ON ((C.X = L.X))
--> FULL OUTER JOIN D D ON ((D.X = C.X));

select count(*) from s window tumbling (size 1 hour) group by a;
--> SELECT COUNT(*)
--> FROM S S
--> WINDOW TUMBLING (SIZE 1 HOURS)
--> GROUP BY A;

select count(*) from s window w hopping (size 10 seconds, advance by 5 seconds, retention 1 day, grace period 1 minute) group by a, b emit changes;
--> SELECT COUNT(*)
--> FROM S S
--> WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS, RETENTION 1 DAYS, GRACE PERIOD 1 MINUTES)
--> GROUP BY A, B
--> EMIT CHANGES;

select count(*) from s window session (30 milliseconds, grace period 0 seconds) group by (a, b) having count(*) > 3;
--> SELECT COUNT(*)
--> FROM S S
--> WINDOW SESSION (30 MILLISECONDS, GRACE PERIOD 0 SECONDS)
--> GROUP BY A, B
--> HAVING (COUNT(*) > 3);

select count(*) from s group by ();
--> SELECT COUNT(*)
--> FROM S S
--> GROUP BY ();

select count(*) from s group by (a);
--> SELECT COUNT(*)
--> FROM S S
--> GROUP BY A;

select count(*) from s group by (a + b) * 2, c;
--> SELECT COUNT(*)
--> FROM S S
--> GROUP BY ((A + B) * 2), C;

select a from s partition by null;
--> SELECT A
--> FROM S S
--> PARTITION BY null;

select a, b from s partition by (a, b);
--> SELECT
-->   A,
-->   B
--> FROM S S
--> PARTITION BY A, B;

select 1 from s limit -1;
--> SELECT 1
--> FROM S S
--> LIMIT -1;

select a, b from s where a > 1 order by a desc nulls last, upper(b), 1 asc limit 5 offset 10;
--> SELECT
-->   A,
-->   B
--> FROM S S
--> WHERE (A > 1)
--> ORDER BY A DESC NULLS LAST, UPPER(B), 1
--> LIMIT 5
--> OFFSET 10;

select offset, last, desc from order order by desc desc offset 2;
--> SELECT
-->   OFFSET,
-->   LAST,
-->   DESC
--> FROM ORDER ORDER
--> ORDER BY DESC DESC
--> OFFSET 2;
