SELECT auction, bidder, price, channel, url, date_time FROM bid
QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) = 1
