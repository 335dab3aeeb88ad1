"""Stories: what an operator does to flows, one operation after the other.

Each operation says all that it needs, so that a story without some of them is a story, too: what
does not apply is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.operating.model import Row

MAIN, FEED = "main", "feed"


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

    def __str__(self) -> str:
        said = [repr(self.what)]
        if self.what not in {"land", "accept", "rollback", "copy", "put back"}:
            said.append(repr(self.number))
        said += [f"flow={self.flow!r}"] if self.flow != MAIN else []
        said += [f"input={self.input!r}"] if self.input != "a" else []
        said += [f"rows={self.rows!r}"] if self.rows else []
        said += [f"kill={self.kill}"] if self.kill else []
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

    def is_maybe_same(self, one: str, other: str) -> bool:
        """Whether two versions may be one program."""
        at = [self.versions.index(text) if text in self.versions else -1 for text in (one, other)]
        return one == other or tuple(sorted(at)) in self.refactored


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
