"""Pipelines that run as they stand: a folder each."""
