SELECT auction, bidder, price, split_part(url, '/', 3), split_part(url, '/', 4), split_part(url, '/', 5)
FROM new_bid
