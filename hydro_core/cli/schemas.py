"""What commands about a program take: FILE, and `--schema NAME=DDL` for inputs that it does not
declare.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hydro_core.errors import DataError, Diagnostic, TypeProblem
from hydro_core.ir.graph import Graph
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.ddl import DDL, parse_ddl
from hydro_core.types.item import ItemType


def program_parser(command: str, says: str | None) -> argparse.ArgumentParser:
    """The parser of `hydrotick COMMAND FILE`, to which the command adds its own options."""
    parser = argparse.ArgumentParser(prog=f"hydrotick {command}", description=says)
    parser.add_argument("file", metavar="FILE", help="`*.hydro`, or `module:attribute`")
    add_schema_argument(parser)
    return parser


def add_schema_argument(parser: argparse.ArgumentParser) -> None:
    """Declares `--schema`."""
    parser.add_argument(
        "--schema",
        action="append",
        default=[],
        metavar="NAME=DDL",
        help="what the items of an input are, in Spark's DDL (repeatable)",
    )


def schemas_of(arguments: argparse.Namespace, graph: Graph) -> Mapping[str, ItemType]:
    """The schemas that were given; each must be one of an input."""
    schemas = {}
    for text in arguments.schema:
        name, equals, ddl = text.partition("=")
        if not equals:
            raise _wrong(f"`--schema {text}` has no `=`", 'write `--schema NAME="DDL"`')
        if name not in graph.sources:
            help_ = (
                did_you_mean(name, graph.sources) or f"the inputs are {', '.join(graph.sources)}"
            )
            raise _wrong(f"`{name}` is not an input", help_)
        try:
            schemas[name] = parse_ddl(ddl)
        except TypeProblem as problem:
            message = f"the schema of `{name}`: {problem.message}"
            raise _wrong(message, problem.help or DDL) from None
    return schemas


def _wrong(message: str, help_: str) -> DataError:
    return DataError(Diagnostic("input", message, help=help_))
