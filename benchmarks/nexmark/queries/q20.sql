SELECT auction, bidder, price, bid.date_time, item, seller, reserve
FROM bid JOIN auction ON id = auction
WHERE category = 10
