"""How far a backfill is: a line that follows it on a terminal, else a line for every range."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ..project.logs import are_json, log

_SECONDS = 0.5
_BAR = 24
_CLEAR = "\r\033[K"


class Progress:
    """The ticks, rows and time of a backfill."""

    def __init__(self, total: int, to: TextIO) -> None:
        self.ticks, self.rows = 0, 0
        self._total, self._to = total, to
        self._began = time.monotonic()
        self._first = 0.0
        """When the first range was done, which waited for Spark to start."""
        self._waited = 0
        self._live = to.isatty() and not are_json()
        self._lock = threading.Lock()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within it the line on a terminal follows the clock, too."""
        if not self._live:
            yield
            return
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(_SECONDS):
                self._draw()

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join()
            self._write(_CLEAR)

    def done(self, what: str, ticks: int, rows: int, seconds: float) -> None:
        """Notes that ticks are committed, which have read so many rows."""
        self.ticks += ticks
        self.rows += rows
        if not self._first:
            self._first, self._waited = time.monotonic(), self.ticks
        if self._live:
            self._draw()
        else:
            took = f"{ticks} tick(s) committed in {seconds:.1f} s"
            self.say(f"{what}: {took}; {self._state(' done')}")

    def say(self, text: str) -> None:
        """Says something else, in a line of its own."""
        if are_json():
            log("progress", text)
            return
        self._write(f"{_CLEAR if self._live else ''}{text}\n")

    def _draw(self) -> None:
        filled = _BAR * self.ticks // self._total
        bar = "█" * filled + "·" * (_BAR - filled)
        spent = _clock(time.monotonic() - self._began)
        self._write(f"{_CLEAR}{bar} {self._state(' ticks')}, {spent} so far")

    def _state(self, unit: str) -> str:
        parts = [f"{self.ticks:,} of {self._total:,}{unit}", f"{self.rows:,} rows read"]
        rate = self._rate()
        if rate is not None:
            parts.append(f"{rate:,.1f} ticks/s")
            if self.ticks < self._total:
                parts.append(f"{_clock((self._total - self.ticks) / rate)} left")
        return ", ".join(parts)

    def _rate(self) -> float | None:
        """Ticks in a second; None before anything is known."""
        if not self.ticks:
            return None
        ticks, since = self.ticks - self._waited, self._first
        if not ticks:
            # The first range waited for Spark: of the time that is left it says too much.
            ticks, since = self.ticks, self._began
        return ticks / max(time.monotonic() - since, 0.001)

    def _write(self, text: str) -> None:
        with self._lock:
            self._to.write(text)
            self._to.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
