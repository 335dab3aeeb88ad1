"""What is asked of flows, and what they tell: with the keys of their ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hydro_core.project.flow_asset import Ticks
from hydrotick.deploy.planning import DeployOptions
from tests.operating.model import TICKS, ByTick
from tests.operating.programs import START

DAILY = Ticks(START, "1d", START + timedelta(days=TICKS))
AXIS = DAILY.calendar


@dataclass(frozen=True)
class Declared:
    """What a flow declares of an input: the flow that feeds it, if one does; what becomes of
    late rows; whether the flow waits while rows are gone, and whether a tick waits for a row of a
    later one; the column that says of which tick a row is.
    """

    late: str
    fed_by: str = ""
    holds: bool = False
    waits: bool = False
    column: str = "tick"

    @property
    def words(self) -> dict[str, Any]:
        """What is said of a landing, beside where it lies."""
        said = {"column": self.column, "late": self.late}
        said |= {"removed": "hold"} if self.holds else {}
        return said | ({"wait": "landed"} if self.waits else {})


@dataclass(frozen=True)
class Done:
    """What came of an operation."""

    code: int = 0
    said: str = ""
    is_killed: bool = False


@dataclass(frozen=True)
class How:
    """How a program is deployed: `from` a tick, `forward` only, from `now`; nothing: as a whole."""

    says: str = ""
    first: int = 0

    @property
    def words(self) -> list[str]:
        """The options of the command."""
        words = {"from": ["--from", key_of(self.first)], "forward": ["--forward-only"]}
        return words.get(self.says, ["--from-now"] if self.says == "now" else [])

    @property
    def options(self) -> DeployOptions:
        """The same below the command."""
        first = AXIS.window(self.first) if self.says == "from" else None
        return DeployOptions(first, self.says == "forward", self.says == "now")


@dataclass(frozen=True)
class Committed:
    """A row of the ledger with ticks: the first and last, and late rows by input."""

    first: int
    last: int
    late: Mapping[str, ByTick]


@dataclass(frozen=True)
class Told:
    """What `status` says of a flow."""

    code: int
    flow: Mapping[str, Any]

    def late(self, name: str) -> ByTick:
        """The late rows of an input, by ticks."""
        found = self.flow["late"].get(name, {})
        return {tick_of(key): rows for key, rows in found.get("ticks", {}).items()}

    def arrived(self, name: str) -> ByTick:
        """What arrived late with the last commit."""
        found = self.flow["late"].get(name, {})
        return {tick_of(key): rows for key, rows in found.get("arrived", {}).items()}

    def changed(self, name: str) -> list[tuple[int, int, int | None]]:
        """The ticks that are told as changed, and how many rows they lost."""
        found = self.flow["late"].get(name, {}).get("changed", ())
        return [(tick_of(c["first"]), tick_of(c["last"]), c["removed"]) for c in found]


def tick_of(key: str) -> int:
    """The tick of a key."""
    return AXIS.window_of(key).tick


def key_of(tick: int) -> str:
    """The key of a tick; also of the one after the last."""
    return f"{START + timedelta(days=tick):%Y-%m-%d}"
