"""Deployments: a plan as an artifact, written once and loaded as it stands."""
