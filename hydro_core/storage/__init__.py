"""Data outside of local directories: object stores, by URLs."""
