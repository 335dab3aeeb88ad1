"""`hydrotick optimize`: the optimized program, its cost before and after; executes nothing of it
unless validating.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hydro_core.catalog.state import PREV
from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.program_arguments import given_params, graph_of, schemas_of
from hydro_core.cli.stats import statistics_of
from hydro_core.compile import compile_graph, draw, stratified
from hydro_core.delivery import load_rules
from hydro_core.errors import DataError, Diagnostic, ProgramError
from hydro_core.lang.rules.translate import carrying
from hydro_core.lang.source import RULES
from hydro_core.optimize.growth import Note
from hydro_core.optimize.report import expressions
from hydro_core.printing.programs import BestPlan, shown_plan
from hydro_core.validation.random_ticks import validate_randomly


def command(arguments: Asked) -> int:
    if arguments.explain and arguments.format not in {"text", "json"}:
        raise MisuseError("--explain goes with --format text or json")
    if arguments.validate is not None and arguments.validate < 1:
        raise MisuseError("--validate takes a positive number of runs")
    graph = graph_of(arguments)
    schemas = schemas_of(arguments, graph)
    program = compile_graph(graph, schemas, partial=arguments.validate is None)
    found = shown_plan(program, statistics_of(arguments.stats), explain=arguments.explain)
    found = replace(found, notes=(*found.notes, *_of_rules(arguments)))
    if arguments.validate is not None:
        mismatch = validate_randomly(stratified(found.typed), program, arguments.validate)
        if mismatch is not None:
            raise DataError.of("runtime", str(mismatch), help="this is a bug: please report it")
        output.print_error(f"plan and program agree on {arguments.validate} random runs")
    output.print_warnings(graph.warnings)
    _print(arguments.format, found)
    if arguments.strict and found.notes:
        raise ProgramError(
            *(Diagnostic("state", n.message, n.span, n.operator, help=n.cure) for n in found.notes)
        )
    return 0


def _of_rules(arguments: Asked) -> Iterator[Note]:
    """Notes of rules that go through all that holds, for what may go of it."""
    if not arguments.file.endswith(RULES):
        return
    for rule in carrying(load_rules(arguments.file, given_params(arguments))):
        name = rule.head.predicate
        reason = "this rule carries it into the next tick, fact by fact, and some may go"
        cure = f"where none goes, let a rule keep all: `{name}(x)@next :- {name}(x).`"
        yield Note(PREV.name, name, reason, cure, rule.span, "all that holds")


def _print(style: str, found: BestPlan) -> None:
    match style:
        case "json":
            output.print_json(found.as_json())
        case "sexpr":
            output.print_text(expressions(found.graph))
        case "text":
            output.print_text(str(found))
        case _:
            output.print_text(draw(stratified(found.typed), style))
