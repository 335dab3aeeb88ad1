"""Paths and names of columns as Spark takes them: as a pattern, and as an expression."""

from __future__ import annotations

import re
from pathlib import Path

_SIGNS = re.compile(r"[\[\]{}*?\\]")


def literal(path: Path | str) -> str:
    r"""The absolute path, with nothing in it that Spark would take for a pattern.

    >>> literal("/data/a[1]/x.parquet")
    '/data/a\\[1\\]/x.parquet'
    """
    return escaped(str(Path(path).absolute()))


def escaped(name: str) -> str:
    """A name with nothing in it that Spark would take for a pattern."""
    return _SIGNS.sub(r"\\\g<0>", name)


def quoted(name: str) -> str:
    """The name of a column as Spark reads it, whatever characters it has."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
