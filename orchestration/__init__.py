"""Flows as partitioned Dagster assets. The folder `orchestration/` is this package.

`load_definitions` gives the flows of a project to somebody's own Dagster project;
`HydrotickProject` is the same as a Dagster component.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if __name__ != "hydrotick":
    # Under the folder's name every module would be there a second time.
    raise ImportError(f"this package is `hydrotick`, not `{__name__}`", name=__name__)

if TYPE_CHECKING:
    from .in_dagster import HydrotickProject, load_definitions

__all__ = ["HydrotickProject", "load_definitions"]


def __getattr__(name: str) -> Any:
    # Dagster takes a second to import, and most commands do without it.
    if name in __all__:
        return getattr(import_module(".in_dagster", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
