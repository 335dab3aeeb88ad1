SELECT auction, bidder, date_time, price * 0.908 AS euros FROM new_bid
