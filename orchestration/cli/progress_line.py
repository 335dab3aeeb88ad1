"""A line of a terminal that says how far something is, and is gone when that is done."""

from __future__ import annotations

import sys


class ProgressLine:
    """Says nothing where standard error is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Shows a text in the place of what is there."""
        self._write(f"\r  {text} ")

    def end(self) -> None:
        """Takes the line away."""
        self._write("\r\033[K")

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(text)
            sys.stderr.flush()
