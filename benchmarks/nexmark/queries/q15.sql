SELECT date_time // 3600000 AS hour, count(*), count(*) FILTER (price < 10000),
       count(*) FILTER (price >= 1000000), count(DISTINCT bidder), count(DISTINCT auction),
       count(DISTINCT bidder) FILTER (price >= 1000000)
FROM bid GROUP BY hour
