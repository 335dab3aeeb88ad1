WITH finals AS (
  SELECT seller, id, expires, max(price) AS final
  FROM auction JOIN bid ON auction = id AND bid.date_time BETWEEN auction.date_time AND expires
  GROUP BY ALL),
newest AS (
  SELECT * FROM finals
  QUALIFY row_number() OVER (PARTITION BY seller ORDER BY expires DESC, id DESC) <= 10)
SELECT seller, avg(final) AS average FROM newest GROUP BY seller
