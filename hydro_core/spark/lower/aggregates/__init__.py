"""What becomes of many items, as aggregate columns, and the partial results they merge from."""
