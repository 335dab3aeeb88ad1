"""Declarations of a project: its flows, found in asset folders, read and judged."""
