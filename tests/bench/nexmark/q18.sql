-- Last bid: the last one of each person for each auction.
-- ROW_NUMBER by time is LATEST_BY_OFFSET here, as records are taken in the order of their times.
-- Of several bids in one millisecond any may be the last one, here as in the standard.
CREATE TABLE q18 WITH (KEY_FORMAT='JSON') AS
  SELECT bidder, auction, LATEST_BY_OFFSET(price) AS price, LATEST_BY_OFFSET(channel) AS channel,
    LATEST_BY_OFFSET(url) AS url, LATEST_BY_OFFSET(date_time) AS date_time,
    LATEST_BY_OFFSET(extra) AS extra
  FROM bid GROUP BY bidder, auction;
