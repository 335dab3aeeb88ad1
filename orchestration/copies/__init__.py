"""Copies of whole projects: made, told, restored."""
