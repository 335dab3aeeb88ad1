"""What a plan and the program give for some keys of an output, compared."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hydro_core.analysis.slices import path_name
from hydro_core.errors import DataError, ProgramError
from hydro_core.ticks.wanted import field_of
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical
from hydro_core.validation.same_items import same_items
from hydro_core.validation.sliced import SlicedRun

from ..flows.slices import FlowSlices, Where, rows_where, without
from .declared import EQUALS, SAYS
from .suites import Verdict

if TYPE_CHECKING:
    from hydro_core.spark.store.delta.write import WrittenRows


class ComputedOutput(NamedTuple):
    """An output at some ticks, and the rows that a plan has given there."""

    output: str
    ticks: tuple[int, int]
    rows: WrittenRows


@dataclass(frozen=True)
class ComparedKeys:
    """What a plan and the program give for some keys."""

    slices: FlowSlices
    asked: ComputedOutput
    where: Where
    adds_up: bool

    def verdict(self, run: SlicedRun, keys: int) -> Verdict:
        """What comes of a slice by so many keys, its rows loaded."""
        loaded = sum(len(rows) for of in run.rows.values() for rows in of.values())
        # In words: of a tick of a range there are no numbers of its own.
        seen = {"compared": f"{keys:,} key(s), by {loaded:,} landed row(s)"}
        try:
            broken = self._differing(run)
            if broken:
                # Rows that landed after their ticks were committed are none of the plan's.
                output, ticks = self.asked.output, (run.first, run.last)
                as_read = self.slices.run(output, self.where, ticks, as_read=True)
                broken = self._differing(as_read)
        except (DataError, ProgramError) as error:
            # A plan computes less than the program, so it need not fail where that does.
            return verdict_of({**seen, "note": f"the program fails there: {error}"})
        if not broken:
            return verdict_of(seen)
        verdict = replace(verdict_of(broken, passed=False), says=_in_words(broken))
        changed = sorted(self.slices.not_as_read & run.rows.keys())
        if not changed:
            return verdict
        listed = ", ".join(f"`{name}`" for name in changed)
        if any(map(self.slices.has_lost, changed)):
            note = f"not compared: rows of {listed} that ticks have read are not landed any more"
            return verdict_of({"note": note})
        if any(map(self.slices.came_late, changed)):
            note = f"not compared: which rows of {listed} came late is not known of files"
            return verdict_of({"note": note})
        note = f"what is landed of {listed} may not be what its ticks have read"
        return replace(verdict, says=f"{verdict.says}; {note}", severity="warn")

    def _differing(self, run: SlicedRun) -> dict[str, Any]:
        """The first key of which the two give different rows; nothing if there is none."""
        if run.too_many:
            return {}
        first, last = self.asked.ticks
        given = run.run()
        item = self.slices.program.typed.outputs[self.asked.output].item
        for tick in range(first, last + 1):
            place = tick - run.first
            expected = given[place]
            if self.adds_up and place:
                expected = without(expected, given[place - 1])
            pieces = self.asked.rows.at(tick)
            found = [row for piece in pieces for row in rows_where(piece, item, self.where)]
            if not same_items(found, expected, ordered=False):
                return self._differs(tick, found, expected)
        return {}

    def _differs(self, tick: int, found: list[Any], expected: list[Any]) -> dict[str, Any]:
        item = self.slices.program.typed.outputs[self.asked.output].item
        row = (without(found, expected) or without(expected, found))[0]
        key = {path: field_of(row, path) for path in self.where}

        def of_key(rows: list[Any]) -> list[Any]:
            forms = {path: canonical(value) for path, value in key.items()}
            there = (r for r in rows if all(canonical(field_of(r, p)) == forms[p] for p in forms))
            return [to_json(r, item) for r in there]

        window, named = self.slices.window(tick), {}
        for path, value in key.items():
            named[path_name(path, item)] = to_json(value)
        conditions = " ".join(f"--where {_quoted(name, value)}" for name, value in named.items())
        return {
            "at": window.key,
            "key": named,
            "the plan gives": of_key(found),
            "the program gives": of_key(expected),
            "look": f"hydrotick why {self.slices.flow.name} {self.asked.output} {conditions} "
            f"--tick {window.key}",
        }


def _in_words(broken: Mapping[str, Any]) -> str:
    key = " and ".join(f"{name} = {value}" for name, value in broken["key"].items())
    return (
        f"for {key} at {broken['at']} the plan gives {json.dumps(broken['the plan gives'])}, the "
        f"program {json.dumps(broken['the program gives'])}: see `{broken['look']}`"
    )


def _quoted(name: str, value: Any) -> str:
    text = (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
    if value in ("null", ""):
        text = f'"{value}"'
    return shlex.quote(f"{name}={text}")


def verdict_of(seen: Mapping[str, Any], *, passed: bool = True) -> Verdict:
    """A verdict of this check."""
    return Verdict(EQUALS, passed, SAYS, dict(seen))
