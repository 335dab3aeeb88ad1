SELECT auction, bidder, price, channel, url, date_time FROM bid
QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) <= 10
