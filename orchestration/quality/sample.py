"""The check that the plan gives what the program gives, for some keys of each output.

Of the keys that the tick touches a few are chosen, and of those of an earlier tick: by the tick,
so that a tick that is judged again has the same ones. The program as it is written runs over the
landed rows that can matter for them, on the reference interpreter. What that costs is bounded by
the sample: where its rows are too many, fewer keys are taken. The outputs of a tick are judged
together: what several need of an input is looked for once.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.slices import KnownValues, all_columns, path_name, slice_of
from hydro_core.compile import CompiledProgram, planned
from hydro_core.errors import DataError, ProgramError
from hydro_core.plan.tick_plan import Kind, TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.settings import MEBIBYTE
from hydro_core.ticks.wanted import ReadLimits, TooLargeError, WantedRows, field_of
from hydro_core.types.item import FieldPath
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical
from hydro_core.validation.random_ticks import same_items
from hydro_core.validation.sliced import SlicedRun

from ..flows.slices import FlowSlices, SlicedInputs, Where, rows_where, without
from .suites import EQUALS, SAYS, Verdict

if TYPE_CHECKING:
    from hydro_core.spark.inputs.looks import LandingView
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import PreparedRange
    from hydro_core.spark.store.delta.write import WrittenRows
    from hydro_core.spark.store.ledger.records import InputRead


_MOST_ROWS = 2_000
"""So many landed rows of an input are loaded for the keys of an output; of more, fewer keys are."""
_MOST_BYTES = 64 * MEBIBYTE
"""Files of so many bytes are looked through for them in a tick; larger ones in some ticks only."""
_LOOKED_AT = 1_000
"""From so many rows of a tick its keys are chosen."""

ValueCounts = Counter[tuple[Hashable, ...]]
"""How many rows have which values in the driver's fields."""


class ChosenKeys(NamedTuple):
    """Keys: the values of a driver's fields, in their order."""

    driver: Driver
    keys: list[tuple[Any, ...]]


class SampledOutput(NamedTuple):
    """An output that is judged by some keys, and the slice that tells what they ought to give."""

    asked: ComputedOutput
    chosen: ChosenKeys
    run: SlicedRun


@dataclass
class Sample:
    """Judges a flow's outputs by `keys` keys."""

    flow: FlowAsset
    program: CompiledProgram
    inputs: SlicedInputs
    keys: int
    _broken: dict[str, tuple[range, ChosenKeys]] = field(default_factory=dict)
    """The ticks that an output failed at, and the keys: parts of a range are judged by the same."""

    @cached_property
    def drivers(self) -> Drivers:
        """Inputs that give keys, by output; an output without one cannot be sampled."""
        typed = self.program.typed
        found = {name: tuple(_drivers(typed, name, self._steps)) for name in typed.outputs}
        return {name: drivers for name, drivers in found.items() if drivers}

    def judge(
        self, pipeline: Pipeline, prepared: PreparedRange, seen: Mapping[str, LandingView]
    ) -> Iterator[tuple[str, Verdict]]:
        """The verdicts on ticks that are written, by the outputs' names; `seen` is what the ticks
        have seen of the landings.
        """
        ticks = prepared.run.first, prepared.run.last
        asked = [
            ComputedOutput(output, ticks, prepared.shown(output, lambda: pipeline.spark))
            for output in self.drivers
        ]
        yield from self._judge(pipeline, asked, prepared.inputs, seen)

    def judge_again(self, pipeline: Pipeline, output: str, tick: int) -> Iterator[Verdict]:
        """The verdict on an output of a committed tick, from the stored table."""
        from hydro_core.spark.store.outputs.changes import shown_within

        if output in self.drivers:
            spec, ticks = pipeline.output_tables[output], (tick, tick)
            with shown_within(pipeline.store, spec, ticks, lambda: pipeline.spark) as rows:
                asked = ComputedOutput(output, ticks, rows)
                yield from (verdict for _, verdict in self._judge(pipeline, [asked]))

    @cached_property
    def _steps(self) -> Steps:
        return steps_of(self.program.typed)

    @cached_property
    def _plan(self) -> TickPlan:
        return planned(self.program)

    def _judge(
        self,
        pipeline: Pipeline,
        asked: Sequence[ComputedOutput],
        reads: Sequence[InputRead] = (),
        seen: Mapping[str, LandingView] = MappingProxyType({}),
    ) -> Iterator[tuple[str, Verdict]]:
        """The verdicts on outputs, all at the same ticks."""
        if not asked:
            return
        from hydro_core.spark.store.cached_rows import ROW_CACHE

        inputs, most = self.inputs(self.flow, self._plan), ReadLimits(_MOST_ROWS, _MOST_BYTES)
        inputs.held, inputs.seen = ROW_CACHE, seen
        first, last = asked[0].ticks
        slices = FlowSlices(
            self.flow, self.program, inputs, pipeline.ledger, most, reads, first, self._steps
        )
        adding = {o for o, table in pipeline.output_tables.items() if table.kind is Kind.H}
        trials = dict[str, SampledOutput | None]()
        for one in asked:
            chosen = self._chosen(slices, one)
            # The tick before, too, if the table holds what each adds to it.
            begin = max(0, first - 1) if one.output in adding else first
            trials[one.output] = chosen and self._trial(slices, one, chosen, (begin, last))
        trials |= self._with_few_rows(slices, [trial for trial in trials.values() if trial], last)
        slices.gather([t.run for t in trials.values() if t and not t.run.too_many])
        for output, trial in trials.items():
            if trial is None:
                yield output, verdict_of({"note": "no row gives a key at this tick"})
            else:
                yield output, self._verdict(slices, trial, adds_up=output in adding)

    def _trial(
        self, slices: FlowSlices, asked: ComputedOutput, chosen: ChosenKeys, ticks: tuple[int, int]
    ) -> SampledOutput:
        run = slices.slice(asked.output, self._where(asked.output, chosen), ticks)
        return SampledOutput(asked, chosen, run)

    def _with_few_rows(
        self, slices: FlowSlices, trials: Sequence[SampledOutput], last: int
    ) -> Mapping[str, SampledOutput]:
        """Those whose keys have too many landed rows, where that can be counted, with fewer keys.

        What is asked of a tick or two is not counted: there are not many.
        """
        by_input: dict[str, list[tuple[SampledOutput, WantedRows]]] = {}
        for trial in trials:
            wanted = trial.run.first_wanted().get(trial.chosen.driver.input)
            if wanted is not None and not wanted.first and not wanted.is_all:
                by_input.setdefault(wanted.name, []).append((trial, wanted))
        found = {}
        for several in by_input.values():
            asked = [(w, list(trial.chosen.driver.fields.values())) for trial, w in several]
            for (trial, wanted), counts in zip(several, slices.counts(asked, last), strict=True):
                fewer = _fewer(trial.chosen, counts) if counts else trial.chosen
                if not fewer.keys:
                    trial.run.too_many.add(wanted.name)
                elif len(fewer.keys) < len(trial.chosen.keys):
                    ticks = trial.run.first, trial.run.last
                    found[trial.asked.output] = self._trial(slices, trial.asked, fewer, ticks)
        return found

    def _verdict(self, slices: FlowSlices, trial: SampledOutput, *, adds_up: bool) -> Verdict:
        first, last = trial.asked.ticks
        try:
            return self._compare(slices, trial, adds_up=adds_up)
        except TooLargeError as error:
            # All ticks together look through as much as if each looked through what it may.
            every = -(-error.size // _MOST_BYTES)
            if not any(tick % every == 0 for tick in range(first, last + 1)):
                return verdict_of(
                    {"note": f"compared at each {every}th tick only: much is landed by now"}
                )
            whole = replace(slices, most=ReadLimits(_MOST_ROWS))
            return self._compare(whole, trial, adds_up=adds_up)

    def _compare(self, slices: FlowSlices, trial: SampledOutput, *, adds_up: bool) -> Verdict:
        asked, chosen, run = trial
        if run.too_many:
            return verdict_of({"note": _too_many(run)})
        slices.loaded(run)
        if run.too_many:
            note = _too_many(run)
            chosen = self._tried_again(slices, chosen, run)
            if chosen.keys:
                where = self._where(asked.output, chosen)
                run = slices.run(asked.output, where, (run.first, run.last))
            if run.too_many:
                return verdict_of({"note": note})
        compared = ComparedKeys(slices, asked, run.slice.where, adds_up=adds_up)
        verdict = compared.verdict(run, len(chosen.keys))
        if not verdict.passed:
            first, last = asked.ticks
            self._broken[asked.output] = range(first, last + 1), chosen
        return verdict

    def _tried_again(self, slices: FlowSlices, chosen: ChosenKeys, run: SlicedRun) -> ChosenKeys:
        """Fewer keys, if it is their rows that were too many; else none."""
        driver = chosen.driver
        if run.too_many != {driver.input} or run.wanted[driver.input].is_all:
            return ChosenKeys(driver, [])
        asked = run.wanted[driver.input], list(driver.fields.values())
        return _fewer(chosen, slices.counts([asked], run.last)[0])

    def _chosen(self, slices: FlowSlices, asked: ComputedOutput) -> ChosenKeys | None:
        """Keys that the plan gave rows for at the last tick; of rows that landed for it; and of
        such that landed for a tick before.
        """
        first, tick = asked.ticks
        ticks, chosen = self._broken.get(asked.output, (range(0), None))
        if first in ticks and tick in ticks:
            return chosen
        # Of all outputs the same: its rows are read once.
        earlier = Random(f"{self.flow.name} {tick}").randrange(max(1, tick))  # noqa: S311
        random = Random(f"{self.flow.name} {asked.output} {tick}")  # noqa: S311 - no secret
        count = sum(piece.num_rows for piece in asked.rows.at(tick, ["tick"]))
        places = random.sample(range(count), min(count, self.keys))
        given = taken(asked.rows.at(tick), places)
        rows = rows_where(given, self.program.typed.outputs[asked.output].item, {})
        drivers = self.drivers[asked.output]
        turn = tick % len(drivers)
        for driver in (*drivers[turn:], *drivers[:turn]):
            kept = _keys(rows, list(driver.fields), (self.keys + 1) // 2)
            fields = list(driver.fields.values())
            for at in (tick, earlier):
                landed = list(slices.some(WantedRows(driver.input, ({},), at, _LOOKED_AT), at))
                random.shuffle(landed)
                more = self.keys - len(kept) if at < tick else (self.keys - len(kept) + 1) // 2
                kept |= _keys(landed, fields, more)
            if kept:
                return ChosenKeys(driver, list(kept.values()))
        return None

    def _where(self, output: str, chosen: ChosenKeys) -> Where:
        item = self.program.typed.outputs[output].item
        return {
            path: KnownValues.of(path_name(path, item), [key[place] for key in chosen.keys])
            for place, path in enumerate(chosen.driver.fields)
        }


def taken(pieces: Iterable[pa.Table], places: Sequence[int]) -> pa.Table:
    """The rows at some places of a table that comes in pieces, in the order of the places."""
    begin, parts, there = 0, list[pa.Table](), list[int]()
    for piece in pieces:
        own = [place for place in places if begin <= place < begin + piece.num_rows]
        parts.append(piece.take(pa.array([place - begin for place in own], pa.int64())))
        begin, there = begin + piece.num_rows, there + own
    return pa.concat_tables(parts).take(pa.array(map(there.index, places), pa.int64()))


def _keys(
    rows: Sequence[Any], fields: Sequence[FieldPath], most: int
) -> dict[Hashable, tuple[Any, ...]]:
    found: dict[Hashable, tuple[Any, ...]] = {}
    for row in rows:
        if len(found) >= most:
            break
        key = tuple(field_of(row, path) for path in fields)
        found.setdefault(canonical(key), key)
    return found


def _fewer(chosen: ChosenKeys, counts: ValueCounts) -> ChosenKeys:
    """Those of the keys that have few landed rows together; one, where nothing could be counted."""
    sizes = [(counts[tuple(map(canonical, key))], place) for place, key in enumerate(chosen.keys)]
    kept: list[tuple[Any, ...]] = []
    for _, place in sorted(sizes):
        more = [*kept, chosen.keys[place]]
        if _size(counts, more) <= _MOST_ROWS and (counts or not kept):
            kept = more
    return ChosenKeys(chosen.driver, kept)


def _size(counts: ValueCounts, keys: Sequence[tuple[Any, ...]]) -> int:
    """How many rows have a value of each field, be they of one key or of several."""
    forms = [{canonical(value) for value in values} for values in zip(*keys, strict=True)]
    return sum(
        count
        for form, count in counts.items()
        if all(value in among for value, among in zip(form, forms, strict=True))
    )


def _too_many(run: SlicedRun) -> str:
    listed = " and of ".join(f"`{name}`" for name in sorted(run.too_many))
    return f"not compared: more than {_MOST_ROWS:,} rows of {listed} can matter for any of the keys"


class Driver(NamedTuple):
    """An input whose rows give keys: fields of the output by the input's that they come from."""

    input: str
    fields: Mapping[FieldPath, FieldPath]


Drivers = Mapping[str, Sequence[Driver]]
"""Inputs that give keys, by output; an output without one cannot be sampled."""


def _drivers(program: Typed, output: str, steps: Steps) -> Iterator[Driver]:
    """Inputs of which a value that an output's row has tells what can matter, on all ways."""
    columns = all_columns(program, output)
    known = {of: path for path, of in columns.items()}
    for name, needs in slice_of(program, output, columns, steps).inputs.items():
        ways = [
            {known[of]: path for path, of in sorted(need.conditions, key=repr) if of in known}
            for need in sorted(needs, key=repr)
        ]
        if ways and all(ways):
            yield from (Driver(name, fields) for fields in ways)


class ComputedOutput(NamedTuple):
    """An output at some ticks, and the rows that a plan has given there."""

    output: str
    ticks: tuple[int, int]
    rows: WrittenRows


@dataclass(frozen=True)
class ComparedKeys:
    slices: FlowSlices
    asked: ComputedOutput
    where: Where
    adds_up: bool

    def verdict(self, run: SlicedRun, keys: int) -> Verdict:
        """Verdict on a slice by so many keys, its rows loaded."""
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
    return Verdict(EQUALS, passed, SAYS, dict(seen))
