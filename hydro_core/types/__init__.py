"""Item types, stream types, and their values."""
