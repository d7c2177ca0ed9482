CREATE TABLE q21 (AUCTION BIGINT, BIDDER BIGINT, PRICE BIGINT, CHANNEL STRING, CHANNEL_ID STRING)
  WITH (${append});
INSERT INTO q21
  SELECT AUCTION, BIDDER, PRICE, CHANNEL,
    CASE
      WHEN LOWER(CHANNEL) = 'apple' THEN '0'
      WHEN LOWER(CHANNEL) = 'google' THEN '1'
      WHEN LOWER(CHANNEL) = 'facebook' THEN '2'
      WHEN LOWER(CHANNEL) = 'baidu' THEN '3'
      ELSE REGEXP_EXTRACT(URL, '(&|^)channel_id=([^&]*)', 2)
    END
  FROM bid
  WHERE REGEXP_EXTRACT(URL, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
    OR LOWER(CHANNEL) IN ('apple', 'google', 'facebook', 'baidu');
