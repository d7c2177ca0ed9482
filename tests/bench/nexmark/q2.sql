-- Selection: the bids for some auctions.
-- As the standard has it; MOD is written %.
CREATE STREAM q2 AS
  SELECT auction, price FROM bid WHERE auction % 123 = 0;
