-- User sessions: how many bids a person made in each session of activity.
-- A session ends with its last bid here, ten seconds later in the standard: the statement adds them.
-- Every change is a result here, in the standard only the last one.
CREATE TABLE q11 AS
  SELECT bidder, COUNT(*) AS bid_count, WINDOWSTART AS start_time, WINDOWEND + 10000 AS end_time
  FROM bid WINDOW SESSION (10 SECONDS, GRACE PERIOD 4 SECONDS) GROUP BY bidder;
