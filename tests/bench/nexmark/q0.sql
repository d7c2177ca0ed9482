-- Pass through: every bid as it is.
-- As the standard has it.
CREATE STREAM q0 AS
  SELECT auction, bidder, price, date_time, extra FROM bid;
