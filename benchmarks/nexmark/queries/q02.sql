SELECT auction, price FROM new_bid WHERE auction % 123 = 0
