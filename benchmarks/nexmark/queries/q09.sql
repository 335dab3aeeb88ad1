SELECT id, item, seller, category, bidder, price, bid.date_time AS bid_at
FROM auction JOIN bid ON auction = id AND bid.date_time BETWEEN auction.date_time AND expires
QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid.date_time) = 1
