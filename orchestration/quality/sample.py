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
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.slice_wording import path_name
from hydro_core.analysis.slices import Known, all_columns, slice_of
from hydro_core.compile import Compiled
from hydro_core.errors import HydroError
from hydro_core.plan.kinds import Kind
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.settings import MEBIBYTE
from hydro_core.sliced import SlicedRun
from hydro_core.ticks.wanted import Limits, TooLargeError, Wanted, field_of
from hydro_core.types.item import FieldPath
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical
from hydro_core.validation import same_items

from ..slices import FlowSlices, Inputs, Where, inputs_of, rows_where, without
from .validate import Verdict

if TYPE_CHECKING:
    import pyarrow as pa

    from hydro_core.spark.input_reads import InputRead
    from hydro_core.spark.pipeline import Pipeline
    from hydro_core.spark.pipeline_prepared import Prepared

EQUALS = "equals_program"
SAYS = "for some keys it is what the program gives, run over all that is landed"
_MOST_ROWS = 2_000
"""So many landed rows of an input are loaded for the keys of an output; of more, fewer keys are."""
_MOST_BYTES = 64 * MEBIBYTE
"""Files of so many bytes are looked through for them in a tick; larger ones in some ticks only."""
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
    """Keys: the values of a driver's fields, in their order."""

    driver: Driver
    keys: list[tuple[Any, ...]]


@dataclass
class Sample:
    """Judges a flow's outputs by `keys` keys."""

    flow: FlowAsset
    program: Compiled
    inputs: Inputs
    keys: int
    drivers: Mapping[str, Sequence[Driver]] = field(init=False)
    """Of each output the inputs that give keys; an output that has none cannot be judged."""
    _broken: dict[str, tuple[range, Chosen]] = field(default_factory=dict)
    """The ticks that an output failed at, and the keys: parts of a range are judged by the same."""

    def __post_init__(self) -> None:
        outputs = self.program.typed.outputs
        steps = steps_of(self.program.typed)
        found = {name: tuple(_drivers(self.program, name, steps)) for name in outputs}
        self.drivers = {name: drivers for name, drivers in found.items() if drivers}

    def judge(self, pipeline: Pipeline, prepared: Prepared) -> Iterator[tuple[str, Verdict]]:
        """The verdicts on ticks that are written, by the outputs' names."""
        ticks = prepared.run.first, prepared.run.last
        for output in self.drivers:
            asked = Asked(output, ticks, prepared.shown(output))
            yield output, self._judge(pipeline, asked, prepared.inputs)

    def judge_again(self, pipeline: Pipeline, output: str, tick: int) -> Iterator[Verdict]:
        """The verdict on an output of a committed tick, from the stored table."""
        if output in self.drivers:
            table = pipeline.output_tables[output].name
            asked = Asked(output, (tick, tick), pipeline.store.rows(table, tick, tick))
            yield self._judge(pipeline, asked)

    def _judge(self, pipeline: Pipeline, asked: Asked, reads: Sequence[InputRead] = ()) -> Verdict:
        inputs, ledger = inputs_of(self.flow, self.program, self.inputs), pipeline.ledger
        most = Limits(_MOST_ROWS, _MOST_BYTES)
        slices = FlowSlices(self.flow, self.program, inputs, ledger, most, reads, asked.ticks[0])
        try:
            return self._compare(pipeline, slices, asked)
        except TooLargeError as error:
            # All ticks together look through as much as if each looked through what it may.
            every = -(-error.size // _MOST_BYTES)
            if not any(tick % every == 0 for tick in range(asked.ticks[0], asked.ticks[1] + 1)):
                note = f"compared at each {every}th tick only: much is landed by now"
                return _verdict({"note": note})
            return self._compare(pipeline, replace(slices, most=Limits(_MOST_ROWS)), asked)

    def _compare(self, pipeline: Pipeline, slices: FlowSlices, asked: Asked) -> Verdict:
        chosen = self._chosen(slices, asked)
        if chosen is None:
            return _verdict({"note": "no row gives a key at this tick"})
        adds_up = pipeline.output_tables[asked.output].kind is Kind.H
        ticks = _from(asked.ticks, adds_up=adds_up)
        run = slices.run(asked.output, self._where(asked.output, chosen), ticks)
        if run.too_many:
            note, chosen = _too_many(run), _fewer(slices, chosen, run)
            if chosen.keys:
                run = slices.run(asked.output, self._where(asked.output, chosen), ticks)
            if run.too_many:
                return _verdict({"note": note})
        compared = _Compared(slices, asked, run.slice.where, adds_up=adds_up)
        verdict = compared.verdict(run, len(chosen.keys))
        if not verdict.passed:
            first, last = asked.ticks
            self._broken[asked.output] = range(first, last + 1), chosen
        return verdict

    def _chosen(self, slices: FlowSlices, asked: Asked) -> Chosen | None:
        """Keys that the plan gave rows for at the last tick; of rows that landed for it; and of
        such that landed for a tick before.
        """
        first, tick = asked.ticks
        ticks, chosen = self._broken.get(asked.output, (range(0), None))
        if first in ticks and tick in ticks:
            return chosen
        import pyarrow as pa

        random = Random(f"{self.flow.name} {asked.output} {tick}")  # noqa: S311 - no secret
        given = asked.rows.filter(_equal(asked.rows["tick"], tick))
        places = random.sample(range(len(given)), min(len(given), self.keys))
        given = given.take(pa.array(places, pa.int64()))
        rows = rows_where(given, self.program.typed.outputs[asked.output].item, {})
        drivers = self.drivers[asked.output]
        turn = tick % len(drivers)
        for driver in (*drivers[turn:], *drivers[:turn]):
            kept = _keys(rows, list(driver.fields), (self.keys + 1) // 2)
            fields = list(driver.fields.values())
            for at in (tick, random.randrange(tick) if tick else tick):
                wanted = Wanted(driver.input, ({},), at, _LOOKED_AT)
                landed = slices.some(wanted, at)
                random.shuffle(landed)
                more = self.keys - len(kept) if at < tick else (self.keys - len(kept) + 1) // 2
                kept |= _keys(landed, fields, more)
            if kept:
                return Chosen(driver, list(kept.values()))
        return None

    def _where(self, output: str, chosen: Chosen) -> Where:
        item = self.program.typed.outputs[output].item
        return {
            path: Known.of(path_name(path, item), [key[place] for key in chosen.keys])
            for place, path in enumerate(chosen.driver.fields)
        }


def _keys(
    rows: Sequence[Any], fields: Sequence[FieldPath], most: int
) -> dict[Hashable, tuple[Any, ...]]:
    """The first keys among rows, by their forms."""
    found: dict[Hashable, tuple[Any, ...]] = {}
    for row in rows:
        if len(found) >= most:
            break
        key = tuple(field_of(row, path) for path in fields)
        found.setdefault(canonical(key), key)
    return found


def _fewer(slices: FlowSlices, chosen: Chosen, run: SlicedRun) -> Chosen:
    """Those of the keys that have few landed rows, if it is theirs that are too many."""
    driver = chosen.driver
    if run.too_many != {driver.input} or run.wanted[driver.input].is_all:
        return Chosen(driver, [])
    counts = slices.counts(run.wanted[driver.input], list(driver.fields.values()), run.last)
    sizes = [(counts[tuple(map(canonical, key))], place) for place, key in enumerate(chosen.keys)]
    kept: list[tuple[Any, ...]] = []
    for _, place in sorted(sizes):
        more = [*kept, chosen.keys[place]]
        if _size(counts, more) <= _MOST_ROWS and (counts or not kept):
            kept = more
    return Chosen(driver, kept)


def _size(counts: Counter[tuple[Hashable, ...]], keys: Sequence[tuple[Any, ...]]) -> int:
    """How many rows have a value of each field, be they of one key or of several."""
    forms = [{canonical(value) for value in values} for values in zip(*keys, strict=True)]
    return sum(
        count
        for form, count in counts.items()
        if all(value in among for value, among in zip(form, forms, strict=True))
    )


def _drivers(program: Compiled, output: str, steps: Steps) -> Iterator[Driver]:
    """Inputs of which a value that an output's row has tells what can matter, on all ways."""
    columns = all_columns(program.typed, output)
    known = {of: path for path, of in columns.items()}
    for name, needs in slice_of(program.typed, output, columns, steps).inputs.items():
        ways = [
            {known[of]: path for path, of in sorted(need.conditions, key=repr) if of in known}
            for need in sorted(needs, key=repr)
        ]
        if ways and all(ways):
            yield from (Driver(name, fields) for fields in ways)


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
        # In words: of a tick of a range there are no numbers of its own.
        seen = {"compared": f"{keys:,} key(s), by {loaded:,} landed row(s)"}
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
        if not changed:
            return verdict
        listed = ", ".join(f"`{name}`" for name in changed)
        if any(map(self.slices.has_lost, changed)):
            note = f"not compared: rows of {listed} that ticks have read are not landed any more"
            return _verdict({"note": note})
        if any(map(self.slices.came_late, changed)):
            note = f"not compared: which rows of {listed} came late is not known of files"
            return _verdict({"note": note})
        note = f"what is landed of {listed} may not be what its ticks have read"
        return replace(verdict, says=f"{verdict.says}; {note}", severity="warn")

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
                expected = without(expected, given[place - 1])
            there = self.asked.rows.filter(_equal(self.asked.rows["tick"], tick))
            found = rows_where(there, item, self.where)
            if not same_items(found, expected, ordered=False):
                return self._told(tick, found, expected)
        return {}

    def _told(self, tick: int, found: list[Any], expected: list[Any]) -> dict[str, Any]:
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


def _equal(column: Any, value: int) -> Any:
    import pyarrow.compute as pc

    return pc.equal(column, value)


def _quoted(name: str, value: Any) -> str:
    text = (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
    if value in ("null", ""):
        text = f'"{value}"'
    return shlex.quote(f"{name}={text}")


def _too_many(run: SlicedRun) -> str:
    listed = " and of ".join(f"`{name}`" for name in sorted(run.too_many))
    return f"not compared: more than {_MOST_ROWS:,} rows of {listed} can matter for any of the keys"


def _verdict(seen: dict[str, Any], *, passed: bool = True) -> Verdict:
    return Verdict(EQUALS, passed, SAYS, seen)
