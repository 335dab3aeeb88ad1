SELECT auction, price, bidder, date_time FROM bid
QUALIFY price = max(price) OVER (PARTITION BY date_time // 10000)
