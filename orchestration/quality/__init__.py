"""Checks of a tick before it commits, as Great Expectations suites."""
