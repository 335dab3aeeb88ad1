"""`hydrotick run FILE --input NAME=PATH …`: ticks from files, outputs to Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.cli.program_arguments import graph_of, schemas_of
from hydro_core.compile import Compiled, compile_graph, optimized, planned
from hydro_core.engines import Options
from hydro_core.files.cut import Cut, cut
from hydro_core.files.inputs import InputFile
from hydro_core.files.local_path import place_at
from hydro_core.files.outputs import OutputFiles, OutputFolders
from hydro_core.files.reading import AllRows, read_all, tick_inputs
from hydro_core.files.scan import scans_of
from hydro_core.ir.graph import Graph
from hydro_core.machine.environment import storage_of
from hydro_core.project.discover import SETTINGS, project_root
from hydro_core.running import check_names, cut_into_shards, run_items
from hydro_core.shards.together import side_by_side
from hydro_core.storage.remote import DataPlace
from hydro_core.ticks.every import Every, parse_time
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import ItemType

FileRows = list[dict[str, int]]


def run_files(arguments: Asked, options: Options) -> int:
    every = Every.parse(arguments.every or "1d")
    start = parse_time(arguments.start) if arguments.start else None
    root = project_root(os.environ)
    storage = storage_of(os.environ, None if root is None else root / SETTINGS)
    files = [InputFile.parse(text, storage) for text in arguments.input]
    arguments.out = place_at(arguments.out, storage) if arguments.out else None
    graph = graph_of(arguments)
    check_names(graph, (file.name for file in files), "of `--input`")
    given = schemas_of(arguments, graph)
    if options.engine == "spark":
        _on_spark(graph, files, given, (every, start), arguments, options)
        return 0
    declared = {**_declared(graph), **given}
    scans = scans_of(files, declared)
    types = {x.file.name: x.item for x in scans if x.file.name not in declared}
    output.print_warnings(graph.warnings)
    program = compile_graph(graph, {**types, **given})
    of = {name: stream.item for name, stream in program.typed.inputs.items()}
    inputs = [read_all(replace(x, item=of[x.file.name])) for x in scans]
    rows = _run(program, cut(inputs, every, start), inputs, options, arguments.out)
    _report(rows, arguments)
    return 0


def _on_spark(
    graph: Graph,
    files: Sequence[InputFile],
    given: Mapping[str, ItemType],
    ticks: tuple[Every, datetime | None],
    arguments: Asked,
    options: Options,
) -> None:
    """The same on Spark, in ranges of ticks; no row passes through this process."""
    from hydro_core.spark.files import run as spark_files

    declared = {**_declared(graph), **given}
    inputs = spark_files.Inputs(files, declared, options.settings, options.spark)
    output.print_warnings(graph.warnings)
    found = {name: item for name, item in inputs.types.items() if name not in declared}
    program = compile_graph(graph, {**found, **given})
    at_once = arguments.ticks_at_once
    if options.cut is None:
        best = optimized(program) if options.optimized else program
    else:
        shards = cut_into_shards(program, options.cut)
        best = side_by_side(shards, optimize=options.optimized)
    with ExitStack() as stack:
        work = spark_files.prepared(planned(best), inputs, ticks, stack)
        folders = None
        if arguments.out:
            folders = stack.enter_context(OutputFolders(arguments.out, program.typed.outputs))
        came = ", ".join(f"{r.scan.file.name} {r.summary.rows:,}" for r in work.inputs)
        output.print_error(f"{work.cut.count:,} ticks, in: {came or 'nothing'}")

        def report(first: int, last: int, counts: Mapping[str, Mapping[int, int]]) -> None:
            out = ", ".join(f"{name} {sum(c.values()):,}" for name, c in counts.items())
            what = f"tick {last + 1}" if first == last else f"ticks {first + 1} to {last + 1}"
            output.print_error(f"{what} of {work.cut.count}; out: {out or 'nothing'}")

        counts = spark_files.run(work, folders, at_once, report)
    rows = [{name: of.get(t, 0) for name, of in counts.items()} for t in range(work.cut.count)]
    _report(rows, arguments)


def _declared(graph: Graph) -> dict[str, ItemType]:
    return {n: node.args["schema"] for n, node in graph.sources.items() if node.args["schema"]}


def _run(
    program: Compiled, ticks: Cut, rows_in: list[AllRows], options: Options, out: DataPlace | None
) -> FileRows:
    """Runs the ticks; gives how many rows each output has in each."""
    rows: FileRows = []
    came: list[str] = []
    with ExitStack() as stack:
        files = stack.enter_context(OutputFiles(out, program.typed.outputs)) if out else None
        inputs = _recording(tick_inputs(rows_in, ticks), came)
        for number, outputs in enumerate(run_items(program, inputs, options)):
            if files:
                files.write(number, outputs)
            rows.append({name: len(items) for name, items in outputs.items()})
            said = f"{came[number]}; out: {_counts(outputs)}"
            output.print_error(f"tick {number + 1} of {ticks.count}{said}")
    return rows


def _recording(ticks: Iterator[TickInput], came: list[str]) -> Iterator[TickInput]:
    """The ticks; what came in is noted for the progress that is told when the tick is done."""
    for tick in ticks:
        begin = f" ({tick.start:%Y-%m-%dT%H:%M:%SZ})" if tick.start else ""
        came.append(f"{begin}, in: {_counts(tick.batches)}")
        yield tick


def _counts(streams: Mapping[str, Any] | Outputs) -> str:
    return ", ".join(f"{name} {len(items):,}" for name, items in streams.items()) or "nothing"


def _report(rows: FileRows, arguments: Asked) -> None:
    if arguments.format == "json":
        output.print_json({"ticks": rows})
        return
    if arguments.out:
        names = sorted({name for tick in rows for name in tick})
        for name in names:
            total = sum(tick[name] for tick in rows)
            output.print_text(f"{arguments.out / name}: {total:,} rows of {len(rows):,} ticks")
        return
    for number, tick in enumerate(rows):
        for name, count in tick.items():
            output.print_text(f"tick {number}  {name}  {count:,} rows")
