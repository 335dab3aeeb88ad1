"""Facts from the rows of JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.lang.rules.predicates import Predicate
from hydro_core.lang.rules.syntax import RuleProgram
from hydro_core.ticks.tick import TickInput
from hydro_core.types.json import json_text, to_json
from hydro_core.validation.simulation.schedules.machine import GroundFact, RuleMachine


def facts_of(machine: RuleMachine, tick: TickInput) -> frozenset[GroundFact]:
    """The facts that the items of a tick's inputs are."""
    return frozenset(
        (machine.numbers[name], _row(machine.rules.predicates[name], item))
        for name, batch in tick.batches.items()
        for item in batch
    )


def _row(predicate: Predicate, item: Any) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        return tuple(item[column] for column in predicate.columns)
    return tuple(item) if isinstance(item, tuple) else (item,)


def shown(machine: RuleMachine, facts: Iterable[GroundFact]) -> str:
    """Facts as the program would write them, in an order that does not depend on the run."""
    return ", ".join(sorted(_shown(machine, fact) for fact in facts))


def _shown(machine: RuleMachine, fact: GroundFact) -> str:
    number, row = fact
    predicate = machine.predicates[number]
    values = "" if predicate.columns == ("holds",) else ", ".join(map(value_text, row))
    return f"{predicate.name}({values})"


def value_text(value: Any) -> str:
    return json_text(to_json(value))


def as_ticks(
    machine: RuleMachine, typed: Typed, ticks: Sequence[Iterable[GroundFact]]
) -> list[dict[str, list[Any]]]:
    """Facts that come in, tick by tick, as `hydrotick run --deliver given` takes them."""
    found = []
    for facts in ticks:
        tick: dict[str, list[Any]] = {}
        for number, row in sorted(facts, key=repr):
            predicate = machine.predicates[number]
            item = dict(zip(predicate.columns, row, strict=True))
            known = typed.inputs[predicate.name].item
            tick.setdefault(predicate.name, []).append(to_json(item, known))
        found.append(tick)
    return found


def invariant_text(program: RuleProgram, number: int) -> str:
    """An invariant as it stands."""
    _, span = program.never[number]
    start = program.source.offset(span.line, span.column)
    end = program.source.offset(span.end_line, span.end_column)
    return " ".join(program.source.text[start:end].split()).removesuffix(".")
