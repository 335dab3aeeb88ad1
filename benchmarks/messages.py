"""The messages that Python sends to the JVM, counted: by what they ask for and by who asks.

A message is a call of py4j: a line to the other process and a line back. Their number is the same
on every machine and in every run, so it may be compared with a bound where times may not.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from py4j.java_gateway import GatewayClient

_OWN = ("hydro_core", "orchestration", "benchmarks", "tests")
_GIVEN_BACK = "m\nd\n"
"""How a message begins that gives an object back: when it is sent, the collector decides."""


@dataclass(slots=True)
class Messages:
    """What was sent."""

    sent: int = 0
    given_back: int = 0
    """Objects that Python needs no more; they are not among those that were sent."""
    seconds: float = 0.0
    """How long their answers took."""
    by_place: Counter[str] = field(default_factory=Counter)
    """By the function of ours that is nearest to each."""
    by_call: Counter[str] = field(default_factory=Counter)
    """By what was called in the JVM."""

    def note(self, command: str, seconds: float, *, places: bool) -> None:
        """Counts a message."""
        if command.startswith(_GIVEN_BACK):
            self.given_back += 1
            return
        self.sent += 1
        self.seconds += seconds
        if places:
            self.by_place[_place()] += 1
            self.by_call[_called(command)] += 1


@contextmanager
def counted_messages(*, places: bool = False) -> Iterator[Messages]:
    """Counts the messages that are sent within; with `places`, who sends them."""
    found = Messages()
    send = GatewayClient.send_command

    def counting(client: Any, command: str, *more: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return send(client, command, *more, **named)
        finally:
            found.note(command, time.perf_counter() - began, places=places)

    with patch.object(GatewayClient, "send_command", counting):
        yield found


def _called(command: str) -> str:
    kind, *lines = command.split("\n")
    return f"{kind} {lines[1] if len(lines) > 1 else ''}"


def _place() -> str:
    """The innermost function of ours on the stack."""
    frame = sys._getframe(1)  # noqa: SLF001 - the frame is the documented answer
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        folder = next((name for name in _OWN if name in path.parts), None)
        if folder is not None and path.name != "messages.py":
            return f"{path.parent.name}/{path.stem}.{frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "elsewhere"
