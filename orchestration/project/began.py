"""What a deployment began without a past: it is among its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hydro_core.artifact.deployment import Deployment

STARTED_EMPTY = " started empty with tick "


def started_empty(deployment: Deployment) -> tuple[str, ...]:
    """What a deployment began without a past, in words."""
    return tuple(note for note in deployment.notes if STARTED_EMPTY in note)
