-- The events as streams, and persons and auctions as tables as well: each id comes once.
-- A record's timestamp is the time of its event, so nothing has to name the column.
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
    date_time BIGINT, extra STRING)
  WITH (KAFKA_TOPIC='nexmark_bid', VALUE_FORMAT='JSON', PARTITIONS=4);
CREATE STREAM auction (id BIGINT KEY, item_name STRING, description STRING, initial_bid BIGINT,
    reserve BIGINT, date_time BIGINT, expires BIGINT, seller BIGINT, category BIGINT, extra STRING)
  WITH (KAFKA_TOPIC='nexmark_auction', VALUE_FORMAT='JSON', PARTITIONS=4);
CREATE STREAM person (id BIGINT KEY, name STRING, email_address STRING, credit_card STRING,
    city STRING, state STRING, date_time BIGINT, extra STRING)
  WITH (KAFKA_TOPIC='nexmark_person', VALUE_FORMAT='JSON', PARTITIONS=4);
CREATE TABLE auctions (id BIGINT PRIMARY KEY, item_name STRING, description STRING,
    initial_bid BIGINT, reserve BIGINT, date_time BIGINT, expires BIGINT, seller BIGINT,
    category BIGINT, extra STRING)
  WITH (KAFKA_TOPIC='nexmark_auction', VALUE_FORMAT='JSON', PARTITIONS=4);
CREATE TABLE persons (id BIGINT PRIMARY KEY, name STRING, email_address STRING,
    credit_card STRING, city STRING, state STRING, date_time BIGINT, extra STRING)
  WITH (KAFKA_TOPIC='nexmark_person', VALUE_FORMAT='JSON', PARTITIONS=4);
