"""Deployments as artifacts: a program and its plan, written once and loaded as they stand."""
