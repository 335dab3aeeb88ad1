"""`hydrotick simulate`: a program, or a flow of the project, on random ticks in every way that must
not matter.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.program_arguments import (
    given_params,
    schemas_of,
)
from hydro_core.compile import Compiled, compile_graph
from hydro_core.lang.load import load
from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import settings_of
from hydro_core.machine.wrong_path import refuse_unwritable, written_at
from hydro_core.project.program import program_of
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import to_ddl
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical
from hydro_core.validation.simulation.case import Case
from hydro_core.validation.simulation.simulate import (
    Divergence,
    Failed,
    Simulated,
    Simulation,
    Subject,
)

from ..project import project
from ..project.console import Console, ProgressLine, flow_named
from .schedules import simulate_schedules

_RUNS = {"reference": 200, "spark": 20}
_DAYS = Calendar(datetime(2024, 1, 1, tzinfo=UTC), "1d")
_WAYS = {
    "plan": "its optimized plan gives something else",
    "order": "it gives something else when the rows of a tick come in another order",
    "pipeline": "the pipeline on Spark gives something else",
}


def simulate(options: Asked) -> int:
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

    def ran(done: Simulated) -> None:
        progress.say(f"{done.runs} of {runs} runs, {done.ticks} ticks")

    done = Simulation(subject, on_spark).run(runs, options.seed, options.seconds, ran)
    progress.end()
    if options.out is not None and done.failed is not None:
        given = _as_ticks(subject.program, done.failed.case)
        with written_at(options.out, "--out"):
            options.out.write_text(json.dumps(given, ensure_ascii=False) + "\n", encoding="utf-8")
    told = _as_json(subject.program, done, name, options.seed)
    Console(options).give(told, "\n".join(_as_text(subject.program, done, name, options)))
    return 0 if done.failed is None else 1


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


def _as_text(program: Compiled, done: Simulated, name: str, options: Asked) -> Iterator[str]:
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


def _failed(program: Compiled, failed: Failed, name: str, seed: int) -> Iterator[str]:
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


def _as_json(program: Compiled, done: Simulated, name: str, seed: int) -> Mapping[str, Any]:
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


def _as_ticks(program: Compiled, case: Case) -> Mapping[str, Any]:
    """The ticks as `hydrotick run --ticks` takes them."""
    inputs = program.typed.inputs
    schemas = {name: to_ddl(stream.item) for name, stream in inputs.items()}
    return {"schemas": schemas, "ticks": _json_ticks(program, case)}


def _json_ticks(
    program: Compiled, case: Case, *, reordered: bool = False
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


def _differing(program: Compiled, found: Divergence) -> tuple[list[Any], list[Any]]:
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
