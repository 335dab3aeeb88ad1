"""When asynchronous facts of rules arrive: in the next tick, as it is given, or by chance.

Rules with `@async` are a program with an input and an output for each asynchronous predicate. What
was sent arrives at later ticks; a fact that is sent in one tick after another is one message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.errors import DataError
from hydro_core.ir.graph import Graph
from hydro_core.lang.load import read_program
from hydro_core.lang.params import Params, check_named
from hydro_core.lang.rules.translate import ASYNC, Rules, graph_of_rules, read_rules
from hydro_core.lang.source import RULES
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import JsonTick, check_ticks, given_types, read_ticks
from hydro_core.settings import Settings
from hydro_core.ticks.tick import TickInput
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import UNKNOWN, ItemType, Row
from hydro_core.types.json import to_json
from hydro_core.types.values import canonical

NEXT, GIVEN = "next", "given"
"""What is sent arrives in the next tick; it arrives as the ticks say."""
CHANCE = 0.5
"""How likely a message that is under way arrives in a tick."""


def load_rules(spec: str, params: Params) -> Rules:
    """The rules that FILE names.

    Raises:
        ProgramError: they are wrong.
        DataError: it names no rules (code `config`).
    """
    if not spec.endswith(RULES):
        message = f"`{spec}` holds no rules, so nothing of it is asynchronous"
        raise DataError.of("config", message, help="name a file `*.dl`")
    text = read_program(Path(spec))
    rules = read_rules(text, file=spec, constants=params.values)
    check_named(params, text, graph_of_rules(rules))
    return rules


def open_graph(
    rules: Rules, schemas: Mapping[str, ItemType] | None = None, name: str = "flow"
) -> Graph:
    """Rules as a program whose asynchronous predicates are inputs, and outputs `NAME_async`.

    What arrives has the types that it was sent with.
    """
    whole = graph_of_rules(rules, name)
    known = {n: item for n, item in (schemas or {}).items() if n in whole.sources}
    typed = compile_graph(whole, known, partial=True).typed
    arriving = {}
    for predicate in rules.asynchronous:
        node = predicate if predicate not in whole.sources else f"{predicate}_now"
        item = typed.of(node).item
        if UNKNOWN not in (item, *_columns(item)):
            arriving[predicate] = item
    return graph_of_rules(rules, name, "open", arriving)


def open_program(spec: str, params: Params) -> Graph | None:
    """The graph of FILE in which what is asynchronous comes in from outside; None: nothing is.

    A message may go to any shard, so a program is cut between its sending and its arrival.
    """
    if not spec.endswith(RULES):
        return None
    rules = load_rules(spec, params)
    return open_graph(rules, name=Path(spec).stem) if rules.asynchronous else None


def _columns(item: ItemType) -> Sequence[ItemType]:
    return [field.type for field in item.fields] if isinstance(item, Row) else []


def delivered(
    rules: Rules, schemas: Mapping[str, str], ticks: Sequence[JsonTick], seed: int | None
) -> tuple[Graph, Mapping[str, str], list[JsonTick]]:
    """A program and ticks that say what arrives when: as they do already, or by a seed.

    Args:
        rules: the program.
        schemas: of inputs that it does not declare, in DDL.
        ticks: what comes in, and without a seed what arrives, as JSON values.
        seed: what chance is made from.
    """
    graph = open_graph(rules)
    check_ticks(graph, ticks)
    types = given_types(graph, schemas, ticks)
    graph = open_graph(rules, types)
    if seed is None:
        return graph, schemas, list(ticks)
    program = compile_graph(graph, types)
    inputs = program.typed.inputs
    told = by_chance(program, list(read_ticks(program.typed, ticks)), seed)
    found: list[JsonTick] = [
        {n: [to_json(item, inputs[n].item) for item in batch] for n, batch in tick.batches.items()}
        for tick in told
    ]
    return graph, {name: to_ddl(stream.item) for name, stream in inputs.items()}, found


def by_chance(program: CompiledProgram, ticks: Sequence[TickInput], seed: int) -> list[TickInput]:
    """The ticks with what arrives in them, by a seed.

    Args:
        program: rules whose asynchronous predicates are inputs.
        ticks: what comes in from outside; after the last of them nothing arrives.
        seed: what chance is made from.
    """
    graph = program.graph
    sent = {name.removesuffix(ASYNC): name for name in graph.sinks if name.endswith(ASYNC)}
    random = Random(f"deliver/{seed}")  # noqa: S311 - schedules, no secrets
    run = _Run(tuple(n for n in sent if n in graph.sources), sent, random)
    outputs = run_ticks(program.typed, program.strata, run.fed(ticks), Settings())
    for given in outputs:
        run.take(given)
    return run.delivered


class _Run:
    """Messages under way, while ticks run."""

    def __init__(self, names: Sequence[str], sent: Mapping[str, str], random: Random) -> None:
        self.names, self.sent, self.random = names, sent, random
        self.under_way: dict[str, dict[Any, Any]] = {name: {} for name in names}
        self.last: dict[str, frozenset[Any]] = dict.fromkeys(names, frozenset())
        self.delivered: list[TickInput] = []

    def fed(self, ticks: Sequence[TickInput]) -> Iterator[TickInput]:
        """The ticks as they come, each when the one before is done."""
        for tick in ticks:
            batches = {name: list(batch) for name, batch in tick.batches.items()}
            for name in self.names:
                waiting = self.under_way[name]
                arriving = [key for key in waiting if self.random.random() < CHANCE]
                batches.setdefault(name, []).extend(waiting.pop(key) for key in arriving)
            self.delivered.append(TickInput(batches, tick.start, tick.end, tick.number))
            yield self.delivered[-1]

    def take(self, outputs: Mapping[str, Sequence[Any]]) -> None:
        """What a tick has sent is under way."""
        for name in self.names:
            items = {canonical(item): item for item in outputs[self.sent[name]]}
            new = {key: item for key, item in items.items() if key not in self.last[name]}
            self.under_way[name].update(new)
            self.last[name] = frozenset(items)
