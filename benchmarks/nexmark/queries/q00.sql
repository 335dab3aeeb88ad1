SELECT auction, bidder, price, channel, url, date_time FROM new_bid
