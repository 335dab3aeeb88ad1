"""What was looked at, how it is, and what to do where it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hydro_core.errors import HydroError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "warning", "wrong"]
    says: str
    cure: str = ""

    @property
    def line(self) -> str:
        sign = {"ok": "ok", "warning": "warning", "wrong": "WRONG"}[self.state]
        said = f"{sign:8} {self.what}: {self.says}"
        return f"{said}\n         {self.cure}" if self.cure else said

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def wrong(what: str, error: HydroError) -> Iterator[Finding]:
    """What an error says, as findings."""
    for told in error.diagnostics:
        yield Finding(what, "wrong", told.says(), told.help)


def looked(what: str, look: Callable[[], str]) -> Iterator[Finding]:
    """What a look says; what it raises for people is wrong."""
    try:
        yield Finding(what, "ok", look())
    except HydroError as error:
        yield from wrong(what, error)
