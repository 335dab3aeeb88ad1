"""Pipelines that run as they stand: a folder each.

`ALL_ASSETS` is what the code location shows. Add a folder with an `asset.py`, and what it declares
is scheduled, checked and backfillable.
"""

from __future__ import annotations

from pathlib import Path

from assets.discover import found_in
from assets.spec import FlowAsset

ALL_ASSETS: tuple[FlowAsset, ...] = found_in(Path(__file__).parent, __name__)
