"""Partitioning: how programs can be cut into shards that do not exchange rows."""
