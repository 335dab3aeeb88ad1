"""`hydrotick simulate FILE.dl --schedules N`: rules under schedules of what is asynchronous."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydro_core.cli.command import Asked
from hydro_core.cli.program_arguments import given_params, schemas_of
from hydro_core.cli.run import read_ticks_file
from hydro_core.delivery import load_rules, open_graph
from hydro_core.errors import DataError
from hydro_core.lang.rules.syntax import Literals
from hydro_core.machine.wrong_path import written_at
from hydro_core.running import check_ticks, given_types, read_ticks
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import ItemType
from hydro_core.validation.simulation.schedules import (
    Explored,
    GroundFact,
    Limits,
    ScheduledRules,
    ScheduleSearch,
    Story,
    as_ticks,
    facts_of,
    invariant_text,
    shown,
    smallest,
    value_text,
)

from ..project.console import Console, ProgressLine


def simulate_schedules(options: Asked) -> int:
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

    def explored(done: Explored) -> None:
        count = f"{done.schedules:,} of {options.schedules:,} schedules"
        progress.say(f"{count}, {done.ticks:,} ticks")

    done = ScheduleSearch(scheduled, facts, limits, explored).run(options.schedules, options.seed)
    progress.end()
    story = None if done.found is None else smallest(scheduled, facts, done.found, limits)
    told = _Report(scheduled, schemas, graph.name, done, story)
    if options.out is not None and story is not None:
        text = json.dumps(told.ticks(), ensure_ascii=False)
        with written_at(options.out, "--out"):
            options.out.write_text(f"{text}\n", encoding="utf-8")
    Console(options).give(told.as_json(options.seed), "\n".join(told.lines(options.seed)))
    return 0 if story is None else 1


@dataclass(frozen=True, slots=True)
class _Report:
    rules: ScheduledRules
    schemas: Mapping[str, ItemType]
    name: str
    done: Explored
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

    def as_json(self, seed: int) -> Mapping[str, Any]:
        told = {
            "program": self.name,
            "seed": seed,
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

    def lines(self, seed: int) -> Iterator[str]:
        done = self.done
        count = f"{done.schedules:,} schedules of {done.ticks:,} ticks"
        if self.story is None:
            yield f"{self.name}: {count}: what must never hold never does (seed {seed})"
            return
        program, violation = self.rules.rules.program, self.story.violation
        _, span = program.never[violation.never]
        yield f"{self.name}: what must never hold does, in schedule {done.number + 1} (seed {seed})"
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
