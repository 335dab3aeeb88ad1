"""What commands about a program take: FILE, `--param NAME=VALUE` for what it names, and
`--schema NAME=DDL` for inputs that it does not declare.
"""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.cli.command import Asked
from hydro_core.errors import DataError, ProgramError
from hydro_core.ir.graph import Graph
from hydro_core.lang.load import load
from hydro_core.lang.params import Params, params_of
from hydro_core.lang.source import no_such_input
from hydro_core.project.yaml_text import value_of
from hydro_core.types.ddl import given_schema
from hydro_core.types.item import ItemType


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
