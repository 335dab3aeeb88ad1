"""Flights out of New York City in 2013, a day a tick."""
