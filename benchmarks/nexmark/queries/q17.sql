SELECT auction, date_time // 3600000 AS hour, count(*), count(*) FILTER (price < 10000),
       min(price), max(price), avg(price), sum(price)
FROM bid GROUP BY auction, hour
