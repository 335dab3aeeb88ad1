"""Which deployment made a partition, in Dagster's terms: code versions and data versions.

Dagster calls a partition out of date whose code version is not that of its asset, or one of whose
parents is newer. Ticks are recorded by events of our own, which carry what Dagster's own would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
    NULL_EVENT_POINTER,
)

from hydro_core.artifact.files import WrittenDeployment
from hydro_core.project.flow_asset import FlowAsset

from ..project.shape import FlowShape
from .about import SHOWN, code_versions
from .asset_specs import asset_key


class Versions:
    """The versions that the partitions of a flow's assets get from a deployment."""

    def __init__(self, flow: FlowAsset, written: WrittenDeployment, shape: FlowShape) -> None:
        self._flow, self._written, self._code = flow, written, code_versions(written)
        tables = ((f"state/{s.name}", s.parents) for s in shape.states)
        outputs = ((o.name, o.parents) for o in shape.outputs)
        self._parents: Mapping[str, Iterable[str]] = {**dict(tables), **dict(outputs)}

    def tags(self, asset: str, commit: int | None) -> dict[str, str]:
        """The tags of a tick on an asset of the flow, by the number of the commit that made it."""
        version = f"{self._written.name[:SHOWN]}.{commit}"
        found = {
            CODE_VERSION_TAG: self._code.get(asset, ""),
            DATA_VERSION_TAG: version,
        }
        for parent in self._parents.get(asset, ()):
            if parent.removeprefix("landing/") in self._flow.reads and "/" in parent:
                # Another flow says which version its outputs have.
                continue
            key = asset_key(self._flow, parent).to_user_string()
            # What has landed is nothing that Dagster has made, and has no versions there.
            landed = parent.startswith("landing/")
            of = DEFAULT_DATA_VERSION.value if landed else version
            found[f"{INPUT_DATA_VERSION_TAG_PREFIX}/{key}"] = of
            found[f"{INPUT_EVENT_POINTER_TAG_PREFIX}/{key}"] = NULL_EVENT_POINTER
        return found

    @property
    def metadata(self) -> Mapping[str, dg.MetadataValue]:
        """What every partition shows."""
        return {"deployment": dg.MetadataValue.int(self._written.number)}
