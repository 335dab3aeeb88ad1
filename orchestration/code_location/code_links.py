"""Links from assets to lines of programs, which say what they are: in an editor, or on the web."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from hydro_core.errors import Span

from ..project.settings import ProjectSettings


def code_link(place: Span | None, project: ProjectSettings) -> Mapping[str, Any]:
    """What an asset shows of a place; nothing where its file is not there.

    Where the project is not on the web, the link opens the file in an editor, on the machine that
    has it.
    """
    if place is None or not Path(place.file).is_file():
        return {}
    file = Path(place.file).absolute()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        where = _reference(file, place.line, project.url_of(file))
        shown = dg.CodeReferencesMetadataValue(code_references=[where])
    return {"dagster/code_references": shown}


def _reference(
    file: Path, line: int, url: str | None
) -> dg.LocalFileCodeReference | dg.UrlCodeReference:
    label = f"{file.name}:{line}"
    if url is None:
        return dg.LocalFileCodeReference(file_path=str(file), line_number=line, label=label)
    # So GitHub and GitLab name a line.
    return dg.UrlCodeReference(url=f"{url}#L{line}", label=label)
