"""What a pipeline keeps: its Delta tables and the ledger that says which commits they have."""
