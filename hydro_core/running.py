"""Runs a program on ticks with either engine: what the command line and `Flow.run` share.

Data comes as JSON values or as items; an input's type is that of its declaration, of the caller's
schema, or of its data. What does not fit is an `input` error that names the tick and the item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NoReturn

from hydro_core.analysis.infer import Typed
from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.engines import Engine, Options, ShardingOptions, run_whole
from hydro_core.errors import DataError
from hydro_core.ir.graph import Graph
from hydro_core.lang.source import did_you_mean
from hydro_core.shards.program import ShardedProgram, sharded
from hydro_core.shards.together import run_shards
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength, parse_time
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.common import merge, type_of
from hydro_core.types.ddl import DDL, given_schema
from hydro_core.types.item import ItemType
from hydro_core.types.json import from_json, to_json
from hydro_core.types.json import infer as infer_json
from hydro_core.types.values import UNFIT, ValueProblem, conform_input

JsonTick = Mapping[str, Sequence[Any]]


def run_items(
    program: CompiledProgram, ticks: Iterable[TickInput], options: Options
) -> Iterator[Outputs]:
    """The outputs of every tick, as items: of the program, whole or in shards."""
    if options.cut is None:
        return run_whole(program, ticks, options)
    return run_shards(cut_into_shards(program, options.cut), ticks, options)


def cut_into_shards(program: CompiledProgram, cut: ShardingOptions) -> ShardedProgram:
    """The program as it is asked to be cut; what is routed by what is told."""
    found = sharded(program, cut.shards, cut.on, cut.replicate)
    cut.progress(found.described)
    return found


def calendar_given(start: Any, every: Any) -> Calendar | None:
    """The times of ticks that begin at a moment, each so long (`1d` unless it is said).

    None where no start is said: then the ticks have no times.
    """
    if start is None and every is None:
        return None
    if not isinstance(start, str | date) or not isinstance(every, str | None):
        _refuse("`start` and `every` say when ticks are", 'write `"start": "2026-01-01T00:00:00Z"`')
    length = TickLength.parse("1d" if every is None else every, "every")
    begins = parse_time(start if isinstance(start, str) else start.isoformat(), "start")
    return Calendar(begins, str(length))


def run_json(
    graph: Graph,
    schemas: Mapping[str, str],
    ticks: Sequence[JsonTick],
    options: Options,
    calendar: Calendar | None = None,
) -> list[dict[str, list[Any]]]:
    """The outputs of every tick as JSON values; all of them, or an error."""
    check_ticks(graph, ticks)
    program = compile_graph(graph, given_types(graph, schemas, ticks))
    outputs = program.typed.outputs
    return [
        {
            name: [to_json(item, outputs[name].item) for item in items]
            for name, items in tick.items()
        }
        for tick in run_items(program, read_ticks(program.typed, ticks, calendar), options)
    ]


def run_flow(
    graph: Graph,
    schemas: Mapping[str, ItemType],
    ticks: Iterable[JsonTick],
    *,
    engine: Engine = "reference",
    optimize: bool = True,
    **options: Any,
) -> Iterator[Outputs]:
    """The outputs of every tick as items; the data are Python values, or texts as in JSON.

    Ticks are taken as they come, unless an input has no schema: then the types of all are needed.
    Other options: `start` and `every`, the times of ticks; `as_range`, `settings`, `spark`; and
    `shards`, `on` and `replicate`, which make a `ShardingOptions`.
    """
    check_names(graph, schemas, "in the schemas")
    open_inputs = [
        name
        for name, node in graph.sources.items()
        if node.args["schema"] is None and name not in schemas
    ]
    if open_inputs:
        ticks = list(ticks)
        batches = {n: [t[n] for t in ticks if n in t] for n in open_inputs}
        schemas = {**schemas, **{n: _typed_values(n, b) for n, b in batches.items() if b}}
    program = compile_graph(graph, schemas)
    shards = options.pop("shards", None)
    calendar = calendar_given(options.pop("start", None), options.pop("every", None))
    said = {name: options.pop(name) for name in ("on", "replicate") if name in options}
    cut = None if shards is None else ShardingOptions(shards, **said)
    given = Options(engine=engine, optimized=optimize, cut=cut, **options)
    return run_items(
        program, read_ticks(program.typed, _checked(graph, ticks), calendar, _read_value), given
    )


def _checked(graph: Graph, ticks: Iterable[JsonTick]) -> Iterator[JsonTick]:
    for number, tick in enumerate(ticks):
        _check_tick(graph, number, tick)
        yield tick


def _read_value(value: Any, of: ItemType) -> Any:
    """A Python value as an item, or a text that stands for it in JSON."""
    try:
        return conform_input(value, of)
    except ValueProblem as problem:
        try:
            return from_json(value, of)
        except ValueProblem:
            raise problem from None


def _typed_values(name: str, batches: Sequence[Sequence[Any]]) -> ItemType:
    """What Python values have in common; lists are tuples where no schema says more, as in JSON."""
    try:
        return merge(type_of(_tuples(value)) for batch in batches for value in batch)
    except ValueProblem as problem:
        _refuse_unlike(name, problem)


def _tuples(value: Any) -> Any:
    match value:
        case list() | tuple():
            return tuple(map(_tuples, value))
        case dict():
            return {key: _tuples(x) for key, x in dict.items(value)}
        case _:
            return value


def check_ticks(graph: Graph, ticks: Any) -> None:
    """Refuses what is no list of ticks, and data for names that are no inputs."""
    if not isinstance(ticks, list):
        _refuse("the ticks are not a list", 'give `[{"input": [item, …]}, …]`')
    for number, tick in enumerate(ticks):
        _check_tick(graph, number, tick)


def _check_tick(graph: Graph, number: int, tick: Any) -> None:
    if not isinstance(tick, Mapping):
        _refuse(f"tick {number} is not an object", 'a tick is `{"input": [item, …]}`')
    check_names(graph, tick, f"in tick {number}")
    for name, batch in tick.items():
        if not isinstance(batch, list | tuple):
            _refuse(f"the batch of `{name}` in tick {number} is not a list", "give a list of items")


def check_names(graph: Graph, names: Iterable[str], where: str) -> None:
    """Refuses data for a name that is no input of the program."""
    for name in names:
        if name not in graph.sources:
            known = ", ".join(f"`{n}`" for n in graph.sources) or "none"
            cure = did_you_mean(name, graph.sources) or f"its inputs: {known}"
            _refuse(f"`{name}` {where} is not an input of the program", cure)


def given_types(
    graph: Graph, schemas: Mapping[str, str], ticks: Sequence[JsonTick] = ()
) -> Mapping[str, ItemType]:
    """The types of inputs that the program leaves open: the caller's schemas, else the data's."""
    if not isinstance(schemas, dict):
        _refuse("the schemas are not an object", 'give `{"input": "schema", …}`')
    check_names(graph, schemas, "in the schemas")
    types = {name: _schema(name, text) for name, text in schemas.items()}
    for name, node in graph.sources.items():
        present = [tick[name] for tick in ticks if name in tick]
        if node.args["schema"] is None and name not in types and present:
            try:
                types[name] = infer_json(item for batch in present for item in batch)
            except ValueProblem as problem:
                _refuse_unlike(name, problem)
    return types


def _schema(name: str, text: Any) -> ItemType:
    if not isinstance(text, str):
        _refuse(f"the schema of `{name}` is not a string", DDL)
    return given_schema(name, text)


def _refuse_unlike(name: str, problem: ValueProblem) -> NoReturn:
    _refuse(f"the items of `{name}`: {problem}", "make them alike, or give a schema")


def read_ticks(
    typed: Typed,
    ticks: Iterable[JsonTick],
    calendar: Calendar | None = None,
    read: Callable[[Any, ItemType], Any] = from_json,
) -> Iterator[TickInput]:
    """The ticks with their values as items, and their times where a calendar says them."""
    types = {name: stream.item for name, stream in typed.inputs.items()}
    for number, tick in enumerate(ticks):
        batches = {n: _read_batch(n, number, batch, types[n], read) for n, batch in tick.items()}
        times = (None, None) if calendar is None else calendar.times(number, number)[number]
        yield TickInput(batches, *times)


def _read_batch(
    name: str, tick: int, batch: Sequence[Any], of: ItemType, read: Callable[[Any, ItemType], Any]
) -> list[Any]:
    items = []
    for position, value in enumerate(batch):
        try:
            items.append(read(value, of))
        except ValueProblem as problem:
            where = f"item {position} of `{name}` in tick {tick}"
            _refuse(f"{where} does not fit its schema {of}: {problem}", UNFIT)
    return items


def _refuse(message: str, cure: str) -> NoReturn:
    raise DataError.of("input", message, help=cure)
