-- Expand bid with auction: the bids for auctions of category 10, with all of the auction.
-- The standard joins without bounds. Here the join needs WITHIN: at the generator's rate no bid is
-- a second before or after its auction.
CREATE STREAM q20 AS
  SELECT b.auction AS auction, b.bidder AS bidder, b.price AS price, b.channel AS channel,
    b.url AS url, b.date_time AS bid_time, b.extra AS bid_extra, a.item_name AS item_name,
    a.description AS description, a.initial_bid AS initial_bid, a.reserve AS reserve,
    a.date_time AS auction_time, a.expires AS expires, a.seller AS seller,
    a.category AS category, a.extra AS auction_extra
  FROM bid b JOIN auction a WITHIN 10 SECONDS GRACE PERIOD 4 SECONDS ON b.auction = a.id
  WHERE a.category = 10;
