-- Calculation: bids of some prices, with the time of day and a count of letters.
-- The hour is arithmetic over milliseconds in UTC here. The standard's count of letters is a user's
-- function; here it is the difference of two lengths.
CREATE STREAM q14 AS
  SELECT auction, bidder, 0.908 * price AS price,
    CASE
      WHEN date_time / 3600000 % 24 BETWEEN 8 AND 18 THEN 'dayTime'
      WHEN date_time / 3600000 % 24 <= 6 OR date_time / 3600000 % 24 >= 20 THEN 'nightTime'
      ELSE 'otherTime'
    END AS bid_time_type,
    date_time, extra, LEN(extra) - LEN(REPLACE(extra, 'c', '')) AS c_counts
  FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
