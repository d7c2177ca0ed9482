-- Highest bid: the bids with the highest price of each ten seconds.
-- A subquery is a query of its own here; the stream over its topic leaves its windowed key out.
-- EMIT FINAL gives the maximum of a window when the next bid after it and four seconds comes.
-- So the last windows have no result, until later bids come.
CREATE TABLE q7_highest WITH (KAFKA_TOPIC='q7_highest') AS
  SELECT 1 AS everything, MAX(price) AS price, WINDOWEND AS until
  FROM bid WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 4 SECONDS)
  GROUP BY 1 EMIT FINAL;
CREATE STREAM q7_maximum (price BIGINT, until BIGINT)
  WITH (KAFKA_TOPIC='q7_highest', VALUE_FORMAT='JSON');
CREATE STREAM q7 AS
  SELECT b.auction AS auction, b.price AS price, b.bidder AS bidder, b.date_time AS date_time,
    b.extra AS extra
  FROM bid b JOIN q7_maximum m WITHIN 10 SECONDS GRACE PERIOD 10 SECONDS ON b.price = m.price
  WHERE b.date_time BETWEEN m.until - 10000 AND m.until;
