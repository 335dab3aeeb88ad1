"""`hydrotick partition`: how a program can be cut into shards; executes nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from hydro_core.analysis.partition.partitioning import judge, partition
from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.program_arguments import given_params, graph_of, schemas_of
from hydro_core.compile import compile_graph
from hydro_core.delivery import open_program


def command(arguments: Asked) -> int:
    refuse_wrong_on(arguments)
    graph = open_program(arguments.file, given_params(arguments)) or graph_of(arguments)
    program = compile_graph(graph, schemas_of(arguments, graph))
    typed = program.typed
    on = choice_of(arguments.on)
    found = judge(typed, on) if on else partition(typed)
    if arguments.format == "json":
        output.print_json(found.as_json())
    else:
        output.print_warnings(graph.warnings)
        output.print_text(str(found))
    return 0


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
