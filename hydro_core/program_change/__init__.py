"""Differences between a changed program and the deployed one: outputs and states."""
