"""The ledger: which ticks are committed, by which program, what they read, and who may write."""
