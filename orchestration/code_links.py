"""Links from assets to lines of programs, which say what they are: in an editor, or on the web."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from hydro_core.errors import Span


@dataclass(frozen=True, slots=True)
class CodeLinks:
    """Links to lines of programs.

    `url` is where the folder `root` is shown on the web, as GitHub and GitLab do with `#L7` for a
    line; without it a link opens the file in an editor, on the machine that has it.
    """

    root: Path | None = None
    url: str | None = None

    def metadata(self, place: Span | None) -> Mapping[str, Any]:
        """What an asset shows of a place; nothing where its file is not there."""
        if place is None or not Path(place.file).is_file():
            return {}
        file = Path(place.file).absolute()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.BetaWarning)
            where = self._reference(file, place.line)
            shown = dg.CodeReferencesMetadataValue(code_references=[where])
        return {"dagster/code_references": shown}

    def _reference(self, file: Path, line: int) -> dg.LocalFileCodeReference | dg.UrlCodeReference:
        label = f"{file.name}:{line}"
        if self.url is None or self.root is None or not file.is_relative_to(self.root):
            return dg.LocalFileCodeReference(file_path=str(file), line_number=line, label=label)
        inside = file.relative_to(self.root).as_posix()
        return dg.UrlCodeReference(url=f"{self.url.rstrip('/')}/{inside}#L{line}", label=label)
