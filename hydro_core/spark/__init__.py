"""The Spark engine: plans become DataFrames, streams become Delta tables."""
