CREATE TABLE q5 (ITEM BIGINT, NUM BIGINT, UNTIL BIGINT) WITH (${append});
INSERT INTO q5
  SELECT AB.AUCTION, AB.NUM,
    1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', AB.window_end) AS BIGINT)
  FROM (
    SELECT AUCTION, COUNT(*) AS NUM, window_start, window_end
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(TS), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY AUCTION, window_start, window_end
  ) AS AB JOIN (
    SELECT MAX(CB.NUM) AS MAX_NUM, CB.window_start, CB.window_end FROM (
      SELECT COUNT(*) AS NUM, window_start, window_end
      FROM TABLE(HOP(TABLE bid, DESCRIPTOR(TS), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
      GROUP BY AUCTION, window_start, window_end
    ) AS CB GROUP BY CB.window_start, CB.window_end
  ) AS MB
  ON AB.window_start = MB.window_start AND AB.window_end = MB.window_end AND AB.NUM >= MB.MAX_NUM;
