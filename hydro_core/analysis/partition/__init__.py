"""How programs can be cut into shards that do not talk to each other."""
