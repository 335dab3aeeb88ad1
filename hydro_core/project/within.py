"""What a project names lies within it: its files are read and shown to whoever runs its commands,
and a path or a link that leads out would show them somebody else's.
"""

from __future__ import annotations

import os
from pathlib import Path


def is_within_project(file: Path, folder: Path) -> bool:
    """Whether a file that an asset's folder names, links followed, is of the project of the folder.

    A folder that is a link itself has what lies in it.
    """
    return any(_is_below(file, top) for top in (folder, folder.parent.parent))


def leads_out(file: Path) -> bool:
    """Whether a file is a link to one that is not below its folder."""
    return not _is_below(file, file.parent)


def _is_below(file: Path, folder: Path) -> bool:
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))
