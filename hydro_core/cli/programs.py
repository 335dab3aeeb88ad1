"""Commands about one program, or all flows of a project: they read it and execute nothing of it.

What only one command needs is imported there: each of them is to start at once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result, print_error, print_result, print_warnings, warning_lines
from hydro_core.compile import CompiledProgram, compile_graph, draw, stratified
from hydro_core.errors import DataError, Diagnostic, HydroError, ProgramError, in_a_line
from hydro_core.ir.graph import Graph
from hydro_core.lang.load import load
from hydro_core.lang.params import Params, params_of
from hydro_core.lang.source import RULES, did_you_mean, no_such_input
from hydro_core.machine.faults import why_not, written_at
from hydro_core.project.yaml_text import value_of
from hydro_core.types.ddl import given_schema
from hydro_core.types.item import ItemType

if TYPE_CHECKING:
    from hydro_core.analysis.lineage import FieldLineage, SourceField
    from hydro_core.optimize.cost import Statistics
    from hydro_core.optimize.growth import Note
    from hydro_core.project.flow_asset import FlowAsset
    from hydro_core.storage.remote import DataPlace

_DRAWINGS = ("mermaid", "dot", "svg", "text", "json")


def check(arguments: Asked) -> Result:
    from hydro_core.printing.programs import checked

    if arguments.file is None:
        _refuse_words_about_a_file(arguments)
        return _check_project()
    graph = graph_of(arguments)
    program = checked(compile_graph(graph, schemas_of(arguments, graph)))
    return Result(program, map(str, (program,)), aside=warning_lines(graph.warnings))


def _refuse_words_about_a_file(arguments: Asked) -> None:
    from hydro_core.project.discover import PROJECT, project_above

    for option in ("schema", "param"):
        if getattr(arguments, option):
            says = "is about a FILE: the flows of a project have theirs in their assets"
            raise MisuseError(f"--{option} {says}")
    if not os.environ.get(PROJECT) and project_above(Path.cwd()) is None:
        raise MisuseError(
            "name a FILE, or go to a project: there is no folder `assets` here, nor above"
        )


@dataclass(frozen=True, slots=True)
class CheckedFlow:
    """A flow of the project: its program and the warnings of it, or the error in it."""

    name: str
    program: CompiledProgram | HydroError
    warnings: Sequence[Diagnostic] = ()

    def as_json(self) -> dict[str, Any]:
        if isinstance(self.program, HydroError):
            return {"flow": self.name, "error": self.program.as_json()}
        graph = self.program.graph
        return {"flow": self.name, "inputs": [*graph.sources], "outputs": [*graph.sinks]}

    @property
    def line(self) -> str:
        if isinstance(self.program, HydroError):
            return f"{self.name}: wrong"
        graph = self.program.graph
        inputs, outputs = (", ".join(map(in_a_line, of)) for of in (graph.sources, graph.sinks))
        return f"{self.name}: ok: {inputs} -> {outputs}"

    @property
    def aside(self) -> Iterable[str]:
        if isinstance(self.program, HydroError):
            return (f"{self.program}\n",)
        return warning_lines((*self.program.graph.warnings, *self.warnings))


def _check_project() -> Result:
    """A line for each flow of the project at hand; the exit code is 1 if one of them is wrong."""
    from hydro_core.project.discover import no_flows, project_root

    root = project_root(os.environ)
    flows = [] if root is None else _checked_flows(root)
    lines = [flow.line for flow in flows]
    if not flows and root is not None:
        lines.append(no_flows(root))
    return Result(
        {"flows": [flow.as_json() for flow in flows]},
        lines,
        code=int(any(isinstance(flow.program, HydroError) for flow in flows)),
        aside=(line for flow in flows for line in flow.aside),
    )


def _checked_flows(root: Path) -> list[CheckedFlow]:
    from hydro_core.project.check import columns_wrong
    from hydro_core.project.discover import found_in
    from hydro_core.project.program import unread

    declared = found_in(root)
    programs: dict[str, CompiledProgram | HydroError] = {
        one.name: one.error for one in declared.broken
    }
    for flow in declared.flows:
        try:
            programs[flow.name] = _program_of(flow)
        except HydroError as error:
            programs[flow.name] = error
    right = {name: one for name, one in programs.items() if isinstance(one, CompiledProgram)}
    outputs = {
        name: {output: stream.item for output, stream in program.typed.outputs.items()}
        for name, program in right.items()
    }
    warnings: dict[str, list[Diagnostic]] = {}
    for flow in declared.flows:
        program = right.get(flow.name)
        if program is not None:
            programs[flow.name] = columns_wrong(flow, program.typed.schemas, outputs) or program
            warnings[flow.name] = [*unread(flow, program)]
    return [CheckedFlow(name, programs[name], warnings.get(name, ())) for name in sorted(programs)]


def _program_of(flow: FlowAsset) -> CompiledProgram:
    from hydro_core.compile import best_plan, planned
    from hydro_core.project.program import program_of, refuse_not_growing

    program = program_of(flow, served=flow.inputs)
    if any(output.as_ == "append" for output in flow.tables.values()):
        # Only a plan tells which outputs grow.
        refuse_not_growing(flow, planned(program, best_plan(program)))
    return program


def optimize(arguments: Asked) -> Result:
    """The optimized program; executes nothing of it unless validating."""
    from hydro_core.optimize.report import expressions
    from hydro_core.printing.programs import shown_plan
    from hydro_core.validation.random_ticks import validate_randomly

    style: str = arguments.format
    if arguments.explain and style not in {"text", "json"}:
        raise MisuseError("--explain goes with --format text or json")
    graph = graph_of(arguments)
    schemas = schemas_of(arguments, graph)
    program = compile_graph(graph, schemas, partial=arguments.validate is None)
    plan = shown_plan(program, statistics_of(arguments.stats, graph), explain=arguments.explain)
    plan = replace(plan, notes=(*plan.notes, *_notes_of_rules(arguments)))
    if arguments.validate is not None:
        mismatch = validate_randomly(stratified(plan.typed), program, arguments.validate)
        if mismatch is not None:
            raise DataError.of("runtime", str(mismatch), help="this is a bug: please report it")
        print_error(f"plan and program agree on {arguments.validate} random runs")
    print_warnings(graph.warnings)
    text = expressions(plan.graph) if style == "sexpr" else str(plan)
    if style not in ("json", "sexpr", "text"):
        text = draw(stratified(plan.typed), style)
    result = Result(plan, text)
    if arguments.strict and plan.notes:
        print_result(result, style)
        raise ProgramError(
            *(Diagnostic("state", n.message, n.span, n.operator, help=n.cure) for n in plan.notes)
        )
    return result


def _notes_of_rules(arguments: Asked) -> Iterator[Note]:
    """Notes of rules that go through all that holds, for what may go of it."""
    if not arguments.file.endswith(RULES):
        return
    from hydro_core.catalog.state import PREV
    from hydro_core.delivery import load_rules
    from hydro_core.lang.rules.translate import carrying
    from hydro_core.optimize.growth import Note

    for rule in carrying(load_rules(arguments.file, given_params(arguments))):
        name = rule.head.predicate
        reason = "this rule carries it into the next tick, fact by fact, and some may go"
        cure = f"where none goes, let a rule keep all: `{name}(x)@next :- {name}(x).`"
        yield Note(PREV.name, name, reason, cure, rule.span, "all that holds")


def partition(arguments: Asked) -> Result:
    from hydro_core.analysis.partition import partitioning
    from hydro_core.delivery import open_program

    refuse_wrong_on(arguments)
    graph = open_program(arguments.file, given_params(arguments)) or graph_of(arguments)
    typed = compile_graph(graph, schemas_of(arguments, graph)).typed
    on = choice_of(arguments.on)
    found = partitioning.judge(typed, on) if on else partitioning.partition(typed)
    return Result(found, str(found), aside=warning_lines(graph.warnings))


def refuse_wrong_on(arguments: Asked) -> None:
    for text in arguments.on:
        if "=" not in text:
            raise MisuseError(f"`--on {text}` has no `=`; write `--on INPUT=PATH`")


def choice_of(texts: Sequence[str]) -> dict[str, list[str]]:
    """The paths of each input, as `--on` gives them."""
    on: dict[str, list[str]] = {}
    for text in texts:
        name, _, path = text.partition("=")
        on.setdefault(name, []).append(path)
    return on


def lineage(arguments: Asked) -> Result:
    from hydro_core.analysis.lineage import lineage as lineage_of
    from hydro_core.printing.tables import table

    graph = graph_of(arguments)
    outputs = lineage_of(compile_graph(graph, schemas_of(arguments, graph)).typed)
    record = {
        name: {".".join(path): _lineage_json(field) for path, field in fields.items()}
        for name, fields in outputs.items()
    }
    columns = ("equals", "computed from")
    tables = (
        table(
            [name, *columns],
            [
                [field or "(the item)", *(", ".join(names) or "–" for names in of.values())]
                for field, of in fields.items()
            ],
        )
        for name, fields in record.items()
    )
    return Result(record, (f"{shown}\n" for shown in tables))


def _lineage_json(field: FieldLineage) -> Mapping[str, list[str]]:
    def names(sources: Iterable[SourceField]) -> list[str]:
        return sorted(".".join((name, *path)) for name, path in sources)

    return {"equal": names(field.equal), "computed": names(field.computed)}


def graph(arguments: Asked) -> Result:
    program = graph_of(arguments)
    suffix = Path(arguments.out or "").suffix.removeprefix(".")
    style = arguments.format or (suffix if suffix in _DRAWINGS else "mermaid")
    drawing = draw(compile_graph(program, schemas_of(arguments, program), partial=True), style)
    if arguments.out is None:
        return Result(text=drawing)
    with written_at(Path(arguments.out), "--out"):
        Path(arguments.out).write_text(drawing + "\n", encoding="utf-8")
    return Result(aside=(f"wrote {arguments.out}",))


def rules(arguments: Asked) -> Result:
    from hydro_core.lang.print import to_text

    program = graph_of(arguments)
    _refuse_words_of_python(program)
    text = to_text(program)
    return Result({"program": text}, text, aside=warning_lines(program.warnings))


def _refuse_words_of_python(program: Graph) -> None:
    """Raises where a column has a name that no program `*.hydro` can give one."""
    from hydro_core.lang.print import unwritable_columns

    columns = {name: node for node, name in reversed(list(unwritable_columns(program)))}
    problems = [
        Diagnostic(
            "name",
            f"`{name}` is a word of Python, and no program `*.hydro` can name a column so",
            node.span,
            node.op.called,
            help=f"call it `{name}_` in `.decl`, or where the rule's head names it; as rules the "
            "program runs as it is",
        )
        for name, node in sorted(columns.items())
    ]
    if problems:
        raise ProgramError(*problems)


def ready(arguments: Asked) -> Result:
    from hydro_core.spark.session.ready import ready_ahead

    return Result(text=ready_ahead(arguments.store))


def graph_of(arguments: Asked) -> Graph:
    """The program that FILE names, with the parameters that are given.

    Raises:
        ProgramError: there is none, it is wrong, or it has other parameters.
    """
    return load(arguments.file, given_params(arguments))


def given_params(arguments: Asked) -> Params:
    """The parameters of `--param`; the last one counts where a name is given twice.

    Raises:
        ProgramError: one is not written as `NAME=VALUE`, or is none (code `config`).
    """
    found = {}
    for text in arguments.param:
        name, equals, value = text.partition("=")
        if not equals:
            raise _no_param(f"`--param {text}` has no `=`")
        try:
            found[name] = value_of(value)
        except ValueError as problem:
            raise _no_param(f"the value of `--param {text}` is no YAML: {problem}") from None
    return params_of(found)


def _no_param(message: str) -> ProgramError:
    cure = "write `--param NAME=VALUE`, and signs in quotes: `--param 'name=\"a: b\"'`"
    return ProgramError.of("config", message, help=cure)


def schemas_of(arguments: Asked, graph: Graph) -> Mapping[str, ItemType]:
    """The schemas that were given; each must be one of an input."""
    schemas = {}
    for text in arguments.schema:
        name, equals, ddl = text.partition("=")
        if not equals:
            message, cure = f"`--schema {text}` has no `=`", 'write `--schema NAME="DDL"`'
            raise DataError.of("input", message, help=cure)
        if name not in graph.sources:
            raise no_such_input(name, graph.sources)
        schemas[name] = given_schema(name, ddl)
    return schemas


def statistics_of(path: str | None, graph: Graph) -> Statistics:
    """The statistics of a file, or of a pipeline that has run; None: those that are assumed.

    A file names inputs and other streams of the graph.

    Raises:
        DataError: it cannot be read, or makes no sense (code `config`).
    """
    from hydro_core.machine.environment import storage_of
    from hydro_core.optimize.cost import Statistics
    from hydro_core.project.discover import SETTINGS, project_root
    from hydro_core.storage.remote import is_remote, remote_at
    from hydro_core.types.json import parse_json
    from hydro_core.types.values import ValueProblem

    if path is None:
        return Statistics()
    place: DataPlace = Path(path)
    if is_remote(path):
        root = project_root(os.environ)
        place = remote_at(path, storage_of(os.environ, None if root is None else root / SETTINGS))
    if place.is_dir():
        from hydro_core.spark.pipeline.statistics import deployed_statistics

        return deployed_statistics(place)
    try:
        statistics = Statistics.of(parse_json(place.read_text(encoding="utf-8")))
    except OSError as problem:
        why = why_not(place, problem) if isinstance(place, Path) else str(problem)
        cure = "name a file of JSON, or the directory of a pipeline"
        raise DataError.of(
            "config", f"--stats: `{path}` cannot be read: {why}", help=cure
        ) from None
    except (ValueError, ValueProblem) as problem:
        help_ = 'write `{"ticks": 100, "inputs": {"orders": {"rows": 1000, "history": 100000}}}`'
        raise DataError.of("config", f"{path!r}: {problem}", help=help_) from None
    _check_names(path, "inputs", statistics.inputs, graph.sources)
    _check_names(path, "streams", statistics.streams, graph.nodes)
    return statistics


def _check_names(path: str, kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuses a file of statistics that names something else than inputs, or streams."""
    for name in names:
        if name not in known:
            cure = did_you_mean(name, known) or f"the {kind} are {', '.join(known) or 'none'}"
            message = f"{path!r}: `{kind}.{name}`: the program has nothing of this name"
            raise DataError.of("config", message, help=cure)
