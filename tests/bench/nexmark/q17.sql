-- Auction statistics: of the bids of each auction and day, in UTC.
-- FILTER is a COUNT over CASE here. AVG gives a DOUBLE; CAST cuts it as the standard's division of
-- integers does.
CREATE TABLE q17 WITH (KEY_FORMAT='JSON') AS
  SELECT auction, FORMAT_TIMESTAMP(FROM_UNIXTIME(date_time), 'yyyy-MM-dd') AS bid_day,
    COUNT(*) AS total_bids,
    COUNT(CASE WHEN price < 10000 THEN 1 END) AS rank1_bids,
    COUNT(CASE WHEN price >= 10000 AND price < 1000000 THEN 1 END) AS rank2_bids,
    COUNT(CASE WHEN price >= 1000000 THEN 1 END) AS rank3_bids,
    MIN(price) AS min_price, MAX(price) AS max_price,
    CAST(AVG(price) AS BIGINT) AS avg_price, SUM(price) AS sum_price
  FROM bid GROUP BY auction, FORMAT_TIMESTAMP(FROM_UNIXTIME(date_time), 'yyyy-MM-dd');
