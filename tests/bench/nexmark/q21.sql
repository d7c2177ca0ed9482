-- Add channel id: of hot channels by their name, of others by the URL.
-- As the standard has it; the pattern comes first in REGEXP_EXTRACT.
CREATE STREAM q21 AS
  SELECT auction, bidder, price, channel,
    CASE
      WHEN LCASE(channel) = 'apple' THEN '0'
      WHEN LCASE(channel) = 'google' THEN '1'
      WHEN LCASE(channel) = 'facebook' THEN '2'
      WHEN LCASE(channel) = 'baidu' THEN '3'
      ELSE REGEXP_EXTRACT('(&|^)channel_id=([^&]*)', url, 2)
    END AS channel_id
  FROM bid
  WHERE REGEXP_EXTRACT('(&|^)channel_id=([^&]*)', url, 2) IS NOT NULL
    OR LCASE(channel) IN ('apple', 'google', 'facebook', 'baidu');
