"""Paths as Spark takes them: it reads each as a pattern."""

from __future__ import annotations

import re
from pathlib import Path

_SIGNS = re.compile(r"[\[\]{}*?\\]")


def literal(path: Path | str) -> str:
    r"""The absolute path, with nothing in it that Spark would take for a pattern.

    >>> literal("/data/a[1]/x.parquet")
    '/data/a\\[1\\]/x.parquet'
    """
    return _SIGNS.sub(r"\\\g<0>", str(Path(path).absolute()))
