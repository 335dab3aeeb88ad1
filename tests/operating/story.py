"""Stories: what an operator does to flows, one operation after the other.

Each operation says all that it needs, so that a story without some of them is a story, too: what
does not apply is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.operating.model import Row
from tests.operating.programs import FEED_VERSIONS

MAIN, FEED = "main", "feed"
COPIES = frozenset({"copy", "put back", "copy all", "put back all"})
KEYS = "xyz"
"""The values of the first column of all rows; `forget` is of the one with its number."""


@dataclass(frozen=True)
class Op:
    """One operation: on a flow, and maybe on an input of it."""

    what: str
    number: int = 0
    """Of a file, a tick, ticks, a version of the program, hours."""
    flow: str = MAIN
    input: str = "a"
    rows: tuple[Row, ...] = ()
    kill: int = 0
    """At which step its process is killed; 0: it is not."""
    how: str = ""
    """How a program is deployed: `from` the tick `first`, `forward` only, from `now`."""
    first: int = 0

    def __str__(self) -> str:
        said = [repr(self.what)]
        if self.what not in {"land", "accept", "rollback", *COPIES}:
            said.append(repr(self.number))
        said += [f"flow={self.flow!r}"] if self.flow != MAIN else []
        said += [f"input={self.input!r}"] if self.input != "a" else []
        said += [f"rows={self.rows!r}"] if self.rows else []
        said += [f"kill={self.kill}"] if self.kill else []
        said += [f"how={self.how!r}"] if self.how else []
        said += [f"first={self.first}"] if self.first else []
        return f"Op({', '.join(said)})"


@dataclass(frozen=True)
class Setting:
    """What a story is about: the versions of a program, its inputs, where and how they land."""

    versions: tuple[str, ...]
    late: Mapping[str, str]
    """Of each input what becomes of late rows."""
    kinds: Mapping[str, str]
    """Of each input the kind of its landing; `flow`: another flow gives it."""
    feed: str = "o"
    """The program of that flow."""
    feed_late: str = "next"
    sample_keys: int = 0
    holds: frozenset[str] = frozenset()
    """The inputs for which the flow waits while rows are gone."""
    refactored: frozenset[tuple[int, int]] = frozenset()
    """Versions that say the same in other words; whether that is noticed is left open."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Of each input the column that says of which tick a row is, one of `COLUMNS`: `tick`, where
    nothing is said.
    """
    waits: frozenset[str] = frozenset()
    """The inputs for which a tick waits until a row of a later one has landed."""
    shards: tuple[int, ...] = ()
    """Into how many shards each version is cut; nothing: none is."""

    held: int = 0
    """So many stored rows a process holds at once, and executors do what is larger; 0: as ever."""
    has_tables: bool = False
    """Whether the outputs of the flow are kept as tables, too, and have something expected of
    them.
    """

    def versions_of(self, flow: str) -> tuple[str, ...]:
        """The versions of a flow's program."""
        return self.versions if flow == MAIN else FEED_VERSIONS[self.feed]

    def is_maybe_same(self, one: str, other: str) -> bool:
        """Whether two versions may be one program, in as many shards."""
        at = [self.versions.index(text) if text in self.versions else -1 for text in (one, other)]
        is_as_cut = self.shards_of(one) == self.shards_of(other)
        return one == other or (is_as_cut and tuple(sorted(at)) in self.refactored)

    def shards_of(self, text: str) -> int:
        """Into how many shards a program is cut."""
        is_cut = self.shards and text in self.versions
        return self.shards[self.versions.index(text)] if is_cut else 1


@dataclass(frozen=True)
class Story:
    """A setting, and what is done."""

    setting: Setting
    ops: tuple[Op, ...]

    def __str__(self) -> str:
        made = ",\n    ".join(map(str, self.ops))
        return f"{self.setting}\n[\n    {made},\n]"


class WrongError(AssertionError):
    """Something is not as it must be after an operation."""

    def __init__(self, at: int, op: Op, problems: Sequence[str]) -> None:
        super().__init__(f"after {at}: {op}\n  " + "\n  ".join(problems))
        self.at = at
