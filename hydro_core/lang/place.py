"""Where a Python program calls the API, and where its functions stand, for errors to point at."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable
from itertools import islice
from types import FrameType
from typing import Any

from hydro_core.errors import Span

_OWN = "hydro_core."


def caller() -> Span | None:
    """The call outside this package that led here."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - Python has no other way to the caller's place
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_OWN):
        frame = frame.f_back
    if frame is None:
        return None
    positions = islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    line, end_line, column, end_column = next(positions, (frame.f_lineno, None, None, None))
    file = frame.f_code.co_filename
    first, last = line or frame.f_lineno, end_line or line or frame.f_lineno
    text = [
        linecache.getline(file, n, frame.f_globals).rstrip("\n") for n in range(first, last + 1)
    ]
    begin = _characters(text[0], column or 0) + 1
    end = _characters(text[-1], end_column) + 1 if end_column is not None else len(text[-1]) + 1
    return Span(file, first, begin, last, end, "\n".join(text) if any(text) else "")


def _characters(text: str, count: int) -> int:
    """Python counts bytes of UTF-8, we count characters."""
    return len(text.encode()[:count].decode(errors="ignore"))


def of_function(f: Callable[..., Any]) -> Span | None:
    """The lines in which a Python function is written; None where that is not known."""
    try:
        lines, first = inspect.getsourcelines(f)
        file = inspect.getsourcefile(f) or "<unknown>"
    except (OSError, TypeError):
        return None
    text = [line.rstrip("\n") for line in lines]
    column = len(text[0]) - len(text[0].lstrip()) + 1
    return Span(file, first, column, first + len(text) - 1, len(text[-1]) + 1, "\n".join(text))
