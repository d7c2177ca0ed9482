-- Currency conversion: every bid in euros.
-- As the standard has it; 0.908 is a DECIMAL, so prices have three places.
CREATE STREAM q1 AS
  SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid;
