"""Deployments: a plan as an artifact, written once and loaded as it stands."""

from __future__ import annotations

from hydro_core.deploy.deployment import Costs, Deployment, Table, Validated, WrittenProgram
from hydro_core.deploy.files import WrittenDeployment, newest, numbers, read, write

__all__ = [
    "Costs",
    "Deployment",
    "Program",
    "Table",
    "Validated",
    "Written",
    "newest",
    "numbers",
    "read",
    "write",
]
