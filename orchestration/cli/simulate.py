"""`hydrotick simulate`: programs on random ticks, and rules under random schedules of delivery."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result
from hydro_core.cli.programs import given_params, schemas_of
from hydro_core.cli.run import read_ticks_file
from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.delivery import load_rules, open_graph
from hydro_core.errors import DataError
from hydro_core.lang.load import load
from hydro_core.lang.rules.syntax import Literals
from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import settings_of
from hydro_core.machine.faults import refuse_unwritable, written_at
from hydro_core.project.program import program_of
from hydro_core.running import check_ticks, given_types, read_ticks
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical
from hydro_core.validation.simulation.schedules import (
    GroundFact,
    Limits,
    ScheduledRules,
    ScheduleSearch,
    SearchProgress,
    Story,
    as_ticks,
    facts_of,
    invariant_text,
    shown,
    smallest,
    value_text,
)
from hydro_core.validation.simulation.simulate import (
    Case,
    Divergence,
    FailedSimulation,
    Simulation,
    SimulationResult,
    Subject,
)

from ..project import project
from ..project.console import ProgressLine, flow_named

_RUNS = {"reference": 200, "spark": 20}
_DAYS = Calendar(datetime(2024, 1, 1, tzinfo=UTC), "1d")
_WAYS = {
    "plan": "its optimized plan gives something else",
    "order": "it gives something else when the rows of a tick come in another order",
    "pipeline": "the pipeline on Spark gives something else",
}


def simulate(options: Asked) -> Result:
    if options.out is not None:
        # Before what may take long.
        refuse_unwritable(options.out, "--out")
    if options.schedules is not None:
        return simulate_schedules(options)
    subject, name = _subject(options)
    on_spark = None
    if options.engine == "spark":
        from hydro_core.validation.simulation.pipelines import on_pipelines

        on_spark = on_pipelines(subject.program, subject.windows, subject.settings)
    runs = options.runs or _RUNS[options.engine]
    progress = ProgressLine()

    def ran(done: SimulationResult) -> None:
        progress.say(f"{done.runs} of {runs} runs, {done.ticks} ticks")

    done = Simulation(subject, on_spark).run(runs, options.seed, options.seconds, ran)
    progress.end()
    if options.out is not None and done.failed is not None:
        given = _as_ticks(subject.program, done.failed.case)
        with written_at(options.out, "--out"):
            options.out.write_text(json.dumps(given, ensure_ascii=False) + "\n", encoding="utf-8")
    record = _as_json(subject.program, done, name, options.seed)
    text = _as_text(subject.program, done, name, options)
    return Result(record, text, 0 if done.failed is None else 1)


def _subject(options: Asked) -> tuple[Subject, str]:
    named: str = options.program
    if named.endswith(PROGRAMS) or ":" in named:
        graph = load(named, given_params(options))
        program = compile_graph(graph, schemas_of(options, graph))
        return Subject(program, _DAYS.window, settings_of(os.environ)), graph.name
    if options.schema:
        raise MisuseError("--schema is for a FILE: a flow's schemas stand in its asset")
    if options.param:
        raise MisuseError("--param is for a FILE: a flow's parameters stand in its asset")
    found = project.current()
    flow = flow_named(named, found)
    program = program_of(flow, served=flow.inputs)
    endless = replace(flow.ticks, end=None).calendar
    return Subject(program, endless.window, found.settings.core), named


def _as_text(
    program: CompiledProgram, done: SimulationResult, name: str, options: Asked
) -> Iterator[str]:
    if done.failed is None:
        what = f"{done.runs} runs of {done.ticks} random ticks"
        if options.engine == "spark":
            what += f" in {done.ranges} ranges with {done.crashes} crashes"
        yield f"{name}: {what}: all is the same (seed {options.seed})"
    else:
        yield from _failed(program, done.failed, name, options.seed)
    if done.refusal is not None:
        refused = done.refusal.diagnostics[0].message
        yield f"{done.refused} of the runs ended at an error of the program, such as: {refused}"


def _failed(
    program: CompiledProgram, failed: FailedSimulation, name: str, seed: int
) -> Iterator[str]:
    case, found = failed.case, failed.difference
    yield f"{name}: {_WAYS[found.way]} (run {failed.run + 1}, seed {seed})"
    least = "nothing of it can be left out" if failed.is_least else "there was no time for more"
    whole = f"{len(failed.whole.ticks)} ticks with {failed.whole.rows} rows"
    yield f"the run, made smaller from {whole} in {failed.tries} tries; {least}:"
    yield ""
    for tick, batches in enumerate(_json_ticks(program, case)):
        yield f"  tick {tick}"
        for source, rows in batches.items():
            yield from (f"    {source}  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    if found.way == "order":
        yield "  in the order:"
        for tick, batches in enumerate(_json_ticks(program, case, reordered=True)):
            for source, rows in batches.items():
                yield f"    tick {tick}, {source}  {json.dumps(rows, ensure_ascii=False)}"
    if found.way == "pipeline":
        crash = ""
        if case.crash is not None:
            at = f"step {case.crash.step} of the commit of range {case.crash.range + 1}"
            crash = f", with a crash at {at}"
        yield f"  in ranges of {' + '.join(map(str, case.ranges))} ticks{crash}"
    yield ""
    if found.error is not None:
        yield from str(found.error).splitlines()
        return
    yield f"tick {found.tick}, `{found.output}`: `-` the program gives, `+` is given instead"
    expected, given = _differing(program, found)
    yield from (f"  - {json.dumps(row, ensure_ascii=False)}" for row in expected)
    yield from (f"  + {json.dumps(row, ensure_ascii=False)}" for row in given)


def _as_json(
    program: CompiledProgram, done: SimulationResult, name: str, seed: int
) -> Mapping[str, Any]:
    refusal = None if done.refusal is None else done.refusal.as_json()
    told = {
        "program": name,
        "seed": seed,
        "runs": done.runs,
        "ticks": done.ticks,
        "ranges": done.ranges,
        "crashes": done.crashes,
        "refused": {"runs": done.refused, "error": refusal},
        "same": done.failed is None,
    }
    if done.failed is None:
        return told
    case, found = done.failed.case, done.failed.difference
    expected, given = _differing(program, found)
    crash = None if case.crash is None else case.crash._asdict()
    return {
        **told,
        "difference": {
            "run": done.failed.run,
            "way": found.way,
            "tick": found.tick,
            "output": found.output or None,
            "missing": expected,
            "unexpected": given,
            "error": None if found.error is None else found.error.as_json(),
            **_as_ticks(program, case),
            "reordered": _json_ticks(program, case, reordered=True),
            "ranges": list(case.ranges),
            "crash": crash,
            "least": done.failed.is_least,
        },
    }


def _as_ticks(program: CompiledProgram, case: Case) -> Mapping[str, Any]:
    """The ticks as `hydrotick run --ticks` takes them."""
    inputs = program.typed.inputs
    schemas = {name: to_ddl(stream.item) for name, stream in inputs.items()}
    return {"schemas": schemas, "ticks": _json_ticks(program, case)}


def _json_ticks(
    program: CompiledProgram, case: Case, *, reordered: bool = False
) -> list[Mapping[str, Any]]:
    inputs = program.typed.inputs
    return [
        {
            name: [to_json(item, inputs[name].item) for item in items]
            for name, items in tick.batches.items()
            if items
        }
        for tick in case.inputs(_DAYS.window, reordered=reordered)
    ]


def _differing(program: CompiledProgram, found: Divergence) -> tuple[list[Any], list[Any]]:
    """The items of either side that the other has not; all of them where only the order differs."""
    if not found.output:
        return [], []
    item = program.typed.outputs[found.output].item
    left, right = list(found.expected), list(found.found)
    for value in found.expected:
        same = next((x for x in right if canonical(x) == canonical(value)), None)
        if same is not None:
            right.remove(same)
            left.remove(value)
    if not left and not right:
        left, right = list(found.expected), list(found.found)
    return [to_json(x, item) for x in left], [to_json(x, item) for x in right]


def simulate_schedules(options: Asked) -> Result:
    """Explores schedules; what breaks an invariant is made smaller and shown tick by tick."""
    rules = load_rules(options.program, given_params(options))
    if not rules.program.never:
        message = f"`{options.program}` says nothing that must never hold"
        cure = "say it: `.never chosen(a), chosen(b), a != b.`"
        raise DataError.of("config", message, help=cure)
    graph = open_graph(rules, name=Path(options.program).stem)
    given: Mapping[str, Any] = {"ticks": []}
    if options.ticks is not None:
        given = read_ticks_file(options.ticks)
    check_ticks(graph, given["ticks"])
    schemas = {**given_types(graph, given.get("schemas") or {}, given["ticks"])}
    schemas |= schemas_of(options, graph)
    scheduled = ScheduledRules(rules, schemas, graph.name)
    facts = [
        facts_of(scheduled, tick) for tick in read_ticks(scheduled.program.typed, given["ticks"])
    ]
    limits = Limits(options.steps, options.duplicates)
    progress = ProgressLine()

    def explored(done: SearchProgress) -> None:
        count = f"{done.schedules:,} of {options.schedules:,} schedules"
        progress.say(f"{count}, {done.ticks:,} ticks")

    done = ScheduleSearch(scheduled, facts, limits, explored).run(options.schedules, options.seed)
    progress.end()
    story = None if done.found is None else smallest(scheduled, facts, done.found, limits)
    told = _Report(scheduled, schemas, graph.name, options.seed, done, story)
    if options.out is not None and story is not None:
        text = json.dumps(told.ticks(), ensure_ascii=False)
        with written_at(options.out, "--out"):
            options.out.write_text(f"{text}\n", encoding="utf-8")
    return Result(told, told.lines(), 0 if story is None else 1)


@dataclass(frozen=True, slots=True)
class _Report:
    rules: ScheduledRules
    schemas: Mapping[str, ItemType]
    name: str
    seed: int
    done: SearchProgress
    story: Story | None

    def ticks(self) -> Mapping[str, Any]:
        """The counterexample as `hydrotick run --deliver given` takes it."""
        assert self.story is not None
        inputs = self.rules.program.typed.inputs
        facts = [
            arrived | given
            for arrived, given in zip(self.story.arrived, self.story.given, strict=True)
        ]
        schemas = {name: to_ddl(stream.item) for name, stream in inputs.items()}
        return {"schemas": schemas, "ticks": as_ticks(self.rules, facts)}

    def as_json(self) -> Mapping[str, Any]:
        told = {
            "program": self.name,
            "seed": self.seed,
            "schedules": self.done.schedules,
            "ticks": self.done.ticks,
            "holds": self.story is None,
        }
        if self.story is None:
            return told
        violation = self.story.violation
        values = {name: value_text(value) for name, value in violation.values}
        never = invariant_text(self.rules.rules.program, violation.never)
        found = {"never": never, "values": values, "schedule": self.done.number, **self.ticks()}
        return {**told, "violation": found}

    def lines(self) -> Iterator[str]:
        done = self.done
        count = f"{done.schedules:,} schedules of {done.ticks:,} ticks"
        if self.story is None:
            yield f"{self.name}: {count}: what must never hold never does (seed {self.seed})"
            return
        program, violation = self.rules.rules.program, self.story.violation
        _, span = program.never[violation.never]
        number = f"schedule {done.number + 1} (seed {self.seed})"
        yield f"{self.name}: what must never hold does, in {number}"
        yield f"  {invariant_text(program, violation.never)}   {span.place}"
        yield f"  where {', '.join(f'{n} = {value_text(v)}' for n, v in violation.values)}"
        yield "the schedule, made smaller; nothing of it can be left out:"
        yield from self._story(self.story)

    def _story(self, story: Story) -> Iterator[str]:
        # Facts that the program says itself hold whatever happens: they are no news.
        shows = [any(rule.body != Literals() for rule in p.rules) for p in self.rules.predicates]
        run = ScheduledRules(self.rules.rules, self.schemas, self.name, shown=True).run()
        before: frozenset[GroundFact] = frozenset()
        for tick, (arrived, given) in enumerate(zip(story.arrived, story.given, strict=True)):
            outcome = run.tick(arrived | given)
            new = {f for f in outcome.holds - before - arrived if shows[f[0]]}
            yield ""
            yield f"  tick {tick}"
            words = (
                ("comes in", given),
                ("arrives", arrived),
                ("new", new),
                ("sent", outcome.sent),
            )
            for word, facts in words:
                if facts:
                    yield f"    {word:9} {shown(self.rules, facts)}"
            before = outcome.holds
