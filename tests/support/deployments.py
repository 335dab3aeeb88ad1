"""What the ledger has of a deployment, without a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydro_core.artifact.deployment import Deployment

_KINDS = {"event": "E", "history": "H", "general": "G"}


def records(deployment: Deployment) -> Mapping[str, Mapping[str, Any]]:
    """What the ledger says of its tables."""
    return {
        f"{t.role}/{t.name}": {
            "role": t.role,
            "of": t.name,
            "kind": _KINDS.get(t.kind, "E"),
            "ordered": t.ordered,
        }
        for t in deployment.tables
    }
