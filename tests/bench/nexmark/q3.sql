-- Local item suggestion: auctions of category 10 whose sellers live in three states.
-- The standard joins two streams without bounds. As each id comes once, that is a join of tables
-- on a foreign key here; whichever side comes first waits for the other.
CREATE TABLE q3 AS
  SELECT a.id AS id, p.name AS name, p.city AS city, p.state AS state
  FROM auctions a JOIN persons p ON a.seller = p.id
  WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
