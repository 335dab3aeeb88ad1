"""The chat channel of the paper."""
