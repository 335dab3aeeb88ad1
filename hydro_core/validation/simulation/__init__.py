"""A program run in many ways that must not matter, on random ticks: what `simulate` does."""
