"""Ticks: what comes in at one, and how numbers and times tell them."""
