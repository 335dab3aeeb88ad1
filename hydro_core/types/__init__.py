"""Item types, stream types, and the values that they describe."""
