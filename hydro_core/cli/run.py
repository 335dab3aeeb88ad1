"""`hydrotick run`: a program on ticks from JSON, many jobs, or files cut into ticks."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result
from hydro_core.cli.programs import choice_of, given_params, graph_of, refuse_wrong_on, schemas_of
from hydro_core.compile import CompiledProgram, compile_graph, optimized, planned
from hydro_core.delivery import GIVEN, NEXT, delivered, load_rules
from hydro_core.engines import Options, ShardingOptions
from hydro_core.errors import DataError, Diagnostic, HydroError
from hydro_core.files.inputs import InputFile
from hydro_core.files.kinds import NOT_UTF8
from hydro_core.files.outputs import OutputFiles, OutputFolders
from hydro_core.files.scan import AllRows, TickCut, cut, read_all, scans_of, tick_inputs
from hydro_core.ir.graph import Graph
from hydro_core.lang.load import load, load_text
from hydro_core.lang.params import Params, params_of
from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import settings_of, storage_of
from hydro_core.machine.faults import why_not
from hydro_core.project.discover import SETTINGS, project_root
from hydro_core.running import calendar_given, check_names, cut_into_shards, run_items, run_json
from hydro_core.settings import Settings
from hydro_core.shards.together import side_by_side
from hydro_core.storage.remote import DataPlace, place_at
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength, parse_time
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import ItemType
from hydro_core.types.json import parse_json
from hydro_core.types.values import ValueProblem


def run(arguments: Asked) -> Result:
    _refuse_misuse(arguments)
    options = Options(
        arguments.engine,
        not arguments.no_optimize,
        arguments.range,
        settings_of(os.environ) if arguments.engine == "spark" else Settings(),
        cut=_cut(arguments),
    )
    if arguments.batch:
        _run_batch(Path(arguments.batch), options)
        return Result()
    if arguments.input:
        return run_files(arguments, options)
    given = read_ticks_file(Path(arguments.ticks))
    params = Params({**_params(given).values, **given_params(arguments).values})
    schemas, ticks = given.get("schemas") or {}, given["ticks"]
    graph = load(arguments.file, params)
    if arguments.deliver != NEXT:
        seed = None if arguments.deliver == GIVEN else int(arguments.deliver)
        graph, schemas, ticks = delivered(load_rules(arguments.file, params), schemas, ticks, seed)
    output.print_warnings(graph.warnings)
    ticks = run_json(graph, schemas, ticks, options, _calendar(given))
    return Result({"ticks": ticks}, text=None)


def _refuse_misuse(asked: Asked) -> None:
    sources = sum(map(bool, (asked.ticks, asked.batch, asked.input)))
    on_spark = bool(asked.input) and asked.engine == "spark"
    wrong = {
        "give one of --ticks T.json, --batch JOBS.jsonl and --input NAME=PATH": sources != 1,
        "--batch takes its programs from the jobs: leave FILE out": asked.batch and asked.file,
        "--schema goes with --input; with --ticks, schemas stand in the file": asked.schema
        and not asked.input,
        "--param is about a FILE: a job has its own as `params`": asked.batch and asked.param,
        "FILE is missing": not asked.batch and not asked.file,
        "--on and --replicate go with --shards": asked.shards is None
        and (asked.on or asked.replicate),
        "--every, --start and --out go with --input": not asked.input
        and (asked.every or asked.start or asked.out),
        "--deliver goes with --ticks": not asked.ticks and asked.deliver != NEXT,
        "--ticks-at-once goes with --input and --engine spark": asked.ticks_at_once is not None
        and not on_spark,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise MisuseError(message)
    refuse_wrong_on(asked)


def _cut(arguments: Asked) -> ShardingOptions | None:
    if arguments.shards is None:
        return None
    on = choice_of(arguments.on)
    return ShardingOptions(arguments.shards, on, tuple(arguments.replicate), output.print_error)


def read_ticks_file(path: Path) -> Mapping[str, Any]:
    """The ticks of a file: `{"schemas": …, "ticks": […]}`, or the list of ticks alone.

    Raises:
        DataError: it holds none (code `input`).
    """
    content = _parse_json(_read_text(path), str(path))
    if isinstance(content, list):
        return {"ticks": content}
    if not isinstance(content, dict) or "ticks" not in content:
        raise DataError.of(
            "input",
            f"`{path}` holds no ticks",
            help='write `{"schemas": {"input": "schema"}, "ticks": [{"input": [item]}]}`',
        )
    return content


def _run_batch(path: Path, options: Options) -> None:
    """Runs the jobs of a file; each is answered on a line of its own, as soon as it is done."""
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        if line.strip():
            output.print_json(_answer(line, f"{path}, line {number}", path.parent, options))


def _answer(line: str, where: str, directory: Path, options: Options) -> Mapping[str, Any]:
    name: Any = None
    try:
        job = _job(line, where)
        name = job.get("name")
        if "file" in job:
            # Relative to the jobs; `module:attribute` stands for itself.
            file = job["file"]
            file = str(directory / file) if file.endswith(PROGRAMS) else file
            graph = load(file, _params(job))
        else:
            graph = load_text(job["program"], f"<{name}>", _params(job))
        ticks = run_json(
            graph, job.get("schemas") or {}, job.get("ticks", []), options, _calendar(job)
        )
    except HydroError as error:
        return {"name": name, "error": error.as_json()}
    except Exception:  # noqa: BLE001 - a bug in one job must not end the others
        output.print_error(f"job {name!r}:\n{traceback.format_exc()}")
        cure = "this is a bug: please report it, with what stands on standard error"
        return {"name": name, "error": Diagnostic("runtime", "internal error", help=cure).as_json()}
    return {"name": name, "ticks": ticks}


def _calendar(given: Mapping[str, Any]) -> Calendar | None:
    return calendar_given(given.get("start"), given.get("every"))


def _params(given: Mapping[str, Any]) -> Params:
    said = given.get("params") or {}
    if not isinstance(said, dict):
        message = f"`params` are values by name, and this is {said!r}"
        raise DataError.of("input", message, help='write `"params": {"threshold": 100}`')
    return params_of(said)


def _job(line: str, where: str) -> Mapping[str, Any]:
    job = _parse_json(line, where)
    if not isinstance(job, dict) or ("program" in job) == ("file" in job):
        raise DataError.of(
            "input",
            f"{where} is not a job",
            help='write `{"name": …, "program" or "file": …, "schemas": …, "ticks": […]}`',
        )
    return job


def _read_text(path: Path) -> str:
    try:
        # As written: a CR within a line of JSON is a space, no line end.
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as problem:
        why = why_not(path, problem) if isinstance(problem, OSError) else str(problem)
        message = f"`{path}` cannot be read: {why}"
        cure = NOT_UTF8 if isinstance(problem, UnicodeDecodeError) else "name a file of JSON"
        raise DataError.of("input", message, help=cure) from None


def _parse_json(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueProblem as problem:
        help_ = 'JSON is written as in `[{"user": "ann", "amount": 5}]`'
        message = f"{where} is not JSON: {problem}"
        raise DataError.of("input", message, help=help_) from None


FileRows = list[dict[str, int]]


def run_files(arguments: Asked, options: Options) -> Result:
    every = TickLength.parse(arguments.every or "1d")
    start = parse_time(arguments.start) if arguments.start else None
    root = project_root(os.environ)
    storage = storage_of(os.environ, None if root is None else root / SETTINGS)
    files = [InputFile.parse(text, storage) for text in arguments.input]
    arguments.out = place_at(arguments.out, storage) if arguments.out else None
    graph = graph_of(arguments)
    check_names(graph, (file.name for file in files), "of `--input`")
    given = schemas_of(arguments, graph)
    if options.engine == "spark":
        rows = _on_spark(graph, files, given, (every, start), arguments, options)
        return Result({"ticks": rows}, _row_counts(rows, arguments.out))
    declared = {**_declared(graph), **given}
    scans = scans_of(files, declared)
    types = {x.file.name: x.item for x in scans if x.file.name not in declared}
    output.print_warnings(graph.warnings)
    program = compile_graph(graph, {**types, **given})
    of = {name: stream.item for name, stream in program.typed.inputs.items()}
    inputs = [read_all(replace(x, item=of[x.file.name])) for x in scans]
    rows = _run(program, cut(inputs, every, start), inputs, options, arguments.out)
    return Result({"ticks": rows}, _row_counts(rows, arguments.out))


def _on_spark(
    graph: Graph,
    files: Sequence[InputFile],
    given: Mapping[str, ItemType],
    ticks: tuple[TickLength, datetime | None],
    arguments: Asked,
    options: Options,
) -> FileRows:
    """The same on Spark, in ranges of ticks; no row passes through this process."""
    from hydro_core.spark.files import run as spark_files

    declared = {**_declared(graph), **given}
    inputs = spark_files.RunInputs(files, declared, options.settings, options.spark)
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
    return [{name: of.get(t, 0) for name, of in counts.items()} for t in range(work.cut.count)]


def _declared(graph: Graph) -> dict[str, ItemType]:
    return {n: node.args["schema"] for n, node in graph.sources.items() if node.args["schema"]}


def _run(
    program: CompiledProgram,
    ticks: TickCut,
    rows_in: list[AllRows],
    options: Options,
    out: DataPlace | None,
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


def _row_counts(rows: FileRows, out: DataPlace | None) -> Iterator[str]:
    if out is None:
        for number, tick in enumerate(rows):
            yield from (f"tick {number}  {name}  {count:,} rows" for name, count in tick.items())
        return
    for name in sorted({name for tick in rows for name in tick}):
        total = sum(tick[name] for tick in rows)
        yield f"{out / name}: {total:,} rows of {len(rows):,} ticks"
