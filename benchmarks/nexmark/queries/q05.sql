WITH counted AS (
  SELECT date_time // 2000 - i AS span, auction, count(*) AS bids
  FROM bid CROSS JOIN (VALUES (0), (1), (2), (3), (4)) AS back(i)
  GROUP BY ALL)
SELECT span, bids, auction
FROM counted
QUALIFY bids = max(bids) OVER (PARTITION BY span)
