WITH finals AS (
  SELECT id, category, max(price) AS final
  FROM auction JOIN bid ON auction = id AND bid.date_time BETWEEN auction.date_time AND expires
  GROUP BY id, category)
SELECT category, avg(final) AS average FROM finals GROUP BY category
