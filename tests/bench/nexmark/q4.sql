-- Average price for a category: of the highest bids of its auctions.
-- The standard joins without bounds. Here the join needs WITHIN: no auction lasts for a tenth of
-- these seconds at the generator's rate. A subquery is a query of its own here: a chain of three.
-- AVG gives a DOUBLE here; CAST cuts it as the standard's division of integers does.
CREATE STREAM q4_bids AS
  SELECT b.auction AS auction, a.category AS category, b.price AS price
  FROM bid b JOIN auction a WITHIN 10 SECONDS GRACE PERIOD 4 SECONDS ON b.auction = a.id
  WHERE b.date_time BETWEEN a.date_time AND a.expires;
CREATE TABLE q4_highest WITH (KEY_FORMAT='JSON') AS
  SELECT auction, category, MAX(price) AS highest FROM q4_bids GROUP BY auction, category;
CREATE TABLE q4 WITH (KEY_FORMAT='KAFKA') AS
  SELECT category, CAST(AVG(highest) AS BIGINT) AS average FROM q4_highest GROUP BY category;
