"""The check that the plan gives what the program gives, for some keys of each output.

Of the keys that the tick touches a few are chosen, and of those of an earlier tick: by the tick,
so that a tick that is judged again has the same ones. The program as it is written runs over the
landed rows that can matter for them, on the reference interpreter. What that costs is bounded by
the sample: where its rows are too many, fewer keys are taken.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from assets.spec import FlowAsset
from hydro_core.analysis.slice_wording import path_name
from hydro_core.analysis.slices import Known, all_columns, slice_of
from hydro_core.compile import Compiled
from hydro_core.errors import HydroError
from hydro_core.plan.kinds import Kind
from hydro_core.sliced import SlicedRun
from hydro_core.ticks.wanted import Wanted, field_of
from hydro_core.types.item import FieldPath
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical
from hydro_core.validation import same_items
from orchestration.programs import naive_of
from orchestration.quality.validate import Verdict
from orchestration.slices import FlowSlices, Where, rows_where

if TYPE_CHECKING:
    import pyarrow as pa

    from hydro_core.spark.batches_landing import InputBatches
    from hydro_core.spark.pipeline import Pipeline
    from hydro_core.spark.pipeline_prepared import Prepared

EQUALS = "equals_program"
SAYS = "for some keys it is what the program gives, run over all that is landed"
_MOST_ROWS = 5_000
"""So many landed rows of an input are loaded for the keys of an output; of more, fewer keys are."""
_LOOKED_AT = 1_000
"""From so many rows of a tick its keys are chosen."""


class Driver(NamedTuple):
    """An input whose rows give keys: fields of the output by the input's that they come from."""

    input: str
    fields: Mapping[FieldPath, FieldPath]


class Asked(NamedTuple):
    """An output at some ticks, and what a plan has given there: a table with a row for each."""

    output: str
    ticks: tuple[int, int]
    rows: pa.Table


class Chosen(NamedTuple):
    """Rows whose keys are judged, and of which input they are."""

    driver: Driver
    rows: list[Any]


@dataclass
class Sample:
    """Judges a flow's outputs by `keys` keys."""

    flow: FlowAsset
    program: Compiled
    inputs: Callable[[FlowAsset], InputBatches]
    keys: int
    drivers: Mapping[str, Sequence[Driver]] = field(init=False)
    """Of each output the inputs that give keys; an output that has none cannot be judged."""
    _broken: dict[str, tuple[range, Chosen]] = field(default_factory=dict)
    """The ticks that an output failed at, and the keys: parts of a range are judged by the same."""

    def __post_init__(self) -> None:
        outputs = self.program.typed.outputs
        found = {name: tuple(_drivers(self.program, name)) for name in outputs}
        self.drivers = {name: drivers for name, drivers in found.items() if drivers}

    def judge(self, pipeline: Pipeline, prepared: Prepared) -> Iterator[tuple[str, Verdict]]:
        """The verdicts on ticks that are written, by the outputs' names."""
        versions = {read.name: read.version for read in prepared.inputs}
        ticks = prepared.run.first, prepared.run.last
        for output in self.drivers:
            asked = Asked(output, ticks, prepared.shown(output))
            yield output, self._judge(pipeline, asked, versions)

    def judge_again(self, pipeline: Pipeline, output: str, tick: int) -> Iterator[Verdict]:
        """The verdict on an output of a committed tick, from the stored table."""
        if output in self.drivers:
            table = pipeline.output_tables[output].name
            asked = Asked(output, (tick, tick), pipeline.store.rows(table, tick, tick))
            yield self._judge(pipeline, asked, {})

    def _judge(
        self, pipeline: Pipeline, asked: Asked, versions: Mapping[str, int | None]
    ) -> Verdict:
        slices = FlowSlices(
            self.flow, self.program, self.inputs(self.flow), pipeline.ledger, _MOST_ROWS, versions
        )
        chosen = self._chosen(slices, asked)
        if chosen is None:
            return _verdict({"keys": 0, "note": "no row gives a key at this tick"})
        driver, rows = chosen
        adds_up = pipeline.output_tables[asked.output].kind is Kind.H
        while True:
            where = self._where(asked.output, driver, rows)
            run = slices.run(asked.output, where, _from(asked.ticks, adds_up=adds_up))
            if not run.too_many:
                break
            if len(rows) == 1 or any(run.wanted[name].is_all for name in run.too_many):
                return _verdict({"keys": 0, "note": _too_many(run)})
            rows = rows[: len(rows) // 2]
        compared = _Compared(slices, asked, where, adds_up=adds_up)
        verdict = compared.verdict(run, len(rows))
        if not verdict.passed:
            first, last = asked.ticks
            self._broken[asked.output] = range(first, last + 1), Chosen(driver, rows)
        return verdict

    def _chosen(self, slices: FlowSlices, asked: Asked) -> Chosen | None:
        """Rows of an input whose keys are judged, some of the last tick and some of one before."""
        first, tick = asked.ticks
        ticks, chosen = self._broken.get(asked.output, (range(0), None))
        if first in ticks and tick in ticks:
            return chosen
        random = Random(f"{self.flow.name} {asked.output} {tick}")  # noqa: S311 - no secret
        drivers = self.drivers[asked.output]
        turn = tick % len(drivers)
        for driver in (*drivers[turn:], *drivers[:turn]):
            new = _some(random, slices, driver.input, tick, (self.keys + 1) // 2)
            before = random.randrange(tick) if tick else None
            left = self.keys - len(new)
            old = [] if before is None else _some(random, slices, driver.input, before, left)
            if new or old:
                return Chosen(driver, new + old)
        return None

    def _where(self, output: str, driver: Driver, rows: Sequence[Any]) -> Where:
        item = self.program.typed.outputs[output].item
        return {
            path: Known.of(path_name(path, item), [field_of(row, source) for row in rows])
            for path, source in driver.fields.items()
        }


def sample_of(flow: FlowAsset, inputs: Callable[[FlowAsset], InputBatches], keys: int) -> Sample:
    """What judges a flow by `keys` keys of each output.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    return Sample(flow, naive_of(flow), inputs, keys)


def _drivers(program: Compiled, output: str) -> Iterator[Driver]:
    """Inputs of which a value that an output's row has tells what can matter, on all ways."""
    columns = all_columns(program.typed, output)
    known = {of: path for path, of in columns.items()}
    for name, needs in slice_of(program.typed, output, columns).inputs.items():
        ways = [
            {known[of]: path for path, of in sorted(need.conditions, key=repr) if of in known}
            for need in sorted(needs, key=repr)
        ]
        if ways and all(ways):
            yield from (Driver(name, fields) for fields in ways)


def _some(random: Random, slices: FlowSlices, name: str, tick: int, count: int) -> list[Any]:
    rows = slices.some(Wanted(name, ({},), tick, _LOOKED_AT), tick)
    return random.sample(rows, min(len(rows), count))


def _from(ticks: tuple[int, int], *, adds_up: bool) -> tuple[int, int]:
    """The ticks to run: the one before as well, if the table holds what each adds to it."""
    first, last = ticks
    return (max(0, first - 1) if adds_up else first), last


@dataclass(frozen=True)
class _Compared:
    """What a plan and the program give for some keys."""

    slices: FlowSlices
    asked: Asked
    where: Where
    adds_up: bool

    def verdict(self, run: SlicedRun, keys: int) -> Verdict:
        loaded = sum(len(rows) for of in run.rows.values() for rows in of.values())
        seen: dict[str, Any] = {"keys": keys, "landed_rows": loaded}
        try:
            broken = self._differing(run)
            if broken:
                # Rows that landed after their ticks were committed are none of the plan's.
                broken = self._differing(self._as_read(run))
        except HydroError as error:
            # A plan computes less than the program, so it need not fail where that does.
            return _verdict({**seen, "note": f"the program fails there: {error}"})
        if not broken:
            return _verdict(seen)
        verdict = replace(_verdict(broken, passed=False), says=_in_words(broken))
        changed = sorted(self.slices.not_as_read & run.rows.keys())
        if changed:
            listed = ", ".join(f"`{name}`" for name in changed)
            note = f"what is landed of {listed} may not be what its ticks have read"
            return replace(verdict, says=f"{verdict.says}; {note}", severity="warn")
        return verdict

    def _as_read(self, run: SlicedRun) -> SlicedRun:
        ticks = run.first, run.last
        return self.slices.run(self.asked.output, self.where, ticks, as_read=True)

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
                expected = _without(expected, given[place - 1])
            there = self.asked.rows.filter(_equal(self.asked.rows["tick"], tick))
            found = rows_where(there, item, self.where)
            if not same_items(found, expected, ordered=False):
                return self._told(tick, found, expected)
        return {}

    def _told(self, tick: int, found: list[Any], expected: list[Any]) -> dict[str, Any]:
        item = self.slices.program.typed.outputs[self.asked.output].item
        row = (_without(found, expected) or _without(expected, found))[0]
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


def _equal(column: Any, value: int) -> Any:
    import pyarrow.compute as pc

    return pc.equal(column, value)


def _without(rows: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The rows that are left when the others are taken away, each as often as it is there."""
    owed = Counter(map(canonical, others))
    left = []
    for row in rows:
        form = canonical(row)
        if owed[form]:
            owed[form] -= 1
        else:
            left.append(row)
    return left


def _quoted(name: str, value: Any) -> str:
    text = (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
    if value in ("null", ""):
        text = f'"{value}"'
    return shlex.quote(f"{name}={text}")


def _too_many(run: SlicedRun) -> str:
    listed = (f"{rows:,} rows of `{name}`" for name, rows in run.too_many.items())
    return f"not compared: {', '.join(listed)} can matter for one key, more than {_MOST_ROWS:,}"


def _verdict(seen: dict[str, Any], *, passed: bool = True) -> Verdict:
    return Verdict(EQUALS, passed, SAYS, seen)
