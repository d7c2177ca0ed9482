CREATE TABLE q8 (ID BIGINT, NAME STRING, START_TIME BIGINT) WITH (${append});
INSERT INTO q8
  SELECT P.ID, P.NAME,
    1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', P.window_start) AS BIGINT)
  FROM (
    SELECT ID, NAME, window_start, window_end
    FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(TS), INTERVAL '10' SECOND))
    GROUP BY ID, NAME, window_start, window_end
  ) P JOIN (
    SELECT SELLER, window_start, window_end
    FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(TS), INTERVAL '10' SECOND))
    GROUP BY SELLER, window_start, window_end
  ) A ON P.ID = A.SELLER AND P.window_start = A.window_start AND P.window_end = A.window_end;
