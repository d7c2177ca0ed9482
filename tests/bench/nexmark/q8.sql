-- Monitor new users: persons who opened an auction in the ten seconds in which they came.
-- The standard joins two windowed groupings. Queries over windowed tables are refused here; so the
-- events are joined, those of one window by arithmetic, and grouped afterwards.
CREATE STREAM q8_pairs AS
  SELECT p.id AS id, p.name AS name, p.date_time / 10000 * 10000 AS start_time
  FROM person p JOIN auction a WITHIN 10 SECONDS GRACE PERIOD 4 SECONDS ON p.id = a.seller
  WHERE p.date_time / 10000 = a.date_time / 10000;
CREATE TABLE q8 WITH (KEY_FORMAT='JSON') AS
  SELECT id, name, start_time, COUNT(*) AS auctions
  FROM q8_pairs GROUP BY id, name, start_time;
