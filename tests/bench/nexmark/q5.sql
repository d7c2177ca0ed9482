-- Hot items: the auctions with the most bids in ten seconds, every two seconds.
-- A subquery is a query of its own here: a chain of four. An aggregate over a windowed table is
-- refused; so a stream over its topic leaves the windowed key out, and the windows are columns.
-- Its rows and the maximum of each window are tables that a foreign key joins.
-- EMIT FINAL gives the counts of a window when the next bid after it and four seconds comes.
-- So the last windows have no result, until later bids come.
CREATE TABLE q5_counts WITH (KAFKA_TOPIC='q5_counts') AS
  SELECT auction, AS_VALUE(auction) AS item, COUNT(*) AS num, WINDOWEND AS until
  FROM bid WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 2 SECONDS, GRACE PERIOD 4 SECONDS)
  GROUP BY auction EMIT FINAL;
CREATE STREAM q5_final (item BIGINT, num BIGINT, until BIGINT)
  WITH (KAFKA_TOPIC='q5_counts', VALUE_FORMAT='JSON');
CREATE TABLE q5_items WITH (KEY_FORMAT='JSON') AS
  SELECT item, until, LATEST_BY_OFFSET(num) AS num FROM q5_final GROUP BY item, until;
CREATE TABLE q5_most AS
  SELECT until, MAX(num) AS most FROM q5_final GROUP BY until;
CREATE TABLE q5 AS
  SELECT i.item AS item, i.until AS until, i.num AS num
  FROM q5_items i JOIN q5_most m ON i.until = m.until WHERE i.num >= m.most;
