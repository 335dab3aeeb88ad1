"""Identity of operators and functions: their normal form, with the types of their arguments.

Functions of one normal form over the same types become one object, and equal text over other types
becomes another function, so equal arguments are interchangeable. `select`, `rename`, `drop`,
`with_columns` and a `map` that builds a row from its row are spellings of one operator: those of
one projection become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import ItemEffect, Projection, is_itemwise
from hydro_core.catalog.spec import Aggregate, Arg, Args, OpSpec, OverFunction, functions_of
from hydro_core.catalog.type_rules import Types
from hydro_core.functions.forms import argument, declared, known_by, normal_tree, plain_tests
from hydro_core.functions.tree import Expr, Fn, Make, Part, Spread
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.types.item import UNKNOWN, ItemType, Row, Tuple


@dataclass(slots=True)
class _Identities:
    """One representative for each class of equal functions and projections."""

    functions: dict[object, Fn] = field(default_factory=dict)
    projections: dict[object, tuple[OpSpec, Args]] = field(default_factory=dict)


def with_typed_functions(typed: Typed) -> Typed:
    """The program, in which two functions are equal exactly if they compute the same over the same
    types.
    """
    known = _Identities()
    uses = [use for node in typed.graph for use in functions_in(node, typed)]
    # Of equal functions, the one with a single parameter (the whole item) is easier to read.
    for fn, over in sorted(uses, key=lambda use: len(use[0].params)):
        known.functions.setdefault(_key(fn, over), replace(fn, over=over))
    nodes = [_with_typed_functions(node, typed, known) for node in typed.graph]
    graph = Graph.of(nodes, typed.graph.name, typed.graph.warnings)
    return Typed(graph, typed.types)


def without_typed_functions(graph: Graph) -> Graph:
    """The graph, in which a function is equal to another by its text, for any types."""
    nodes = []
    for node in graph:
        made = [(n, mapped(v, lambda fn: replace(fn, over=()))) for n, v in node.args.entries]
        nodes.append(node.with_(args=Args(tuple(made))))
    return Graph.of(nodes, graph.name, graph.warnings)


def functions_in(node: Node, typed: Typed) -> Iterator[tuple[Fn, Types]]:
    """The functions in a node's arguments, with the types of their own arguments."""
    for name, value in node.args.entries:
        for fn in functions_of(value):
            yield fn, applied_to(node, node.op.arg(name), typed)


def _key(fn: Fn, over: Types) -> object:
    # A function that is called with several arguments must have as many parameters.
    return (known_by(fn, over), over, len(fn.params) if len(over) > 1 else 1)


def _with_typed_functions(node: Node, typed: Typed, known: _Identities) -> Node:
    entries = []
    for name, value in node.args.entries:
        over = applied_to(node, node.op.arg(name), typed)
        one = lambda fn, over=over: known.functions[_key(fn, over)]  # noqa: E731
        entries.append((name, mapped(value, one)))
    made = node.with_(args=Args(tuple(entries)))
    form = projection(made, typed)
    if form is None:
        return made
    types = (typed.types[node.inputs[0]].item, typed.types[Endpoint(node.id)].item)
    key = (plain_tests(form), types)
    op, args = known.projections.setdefault(key, (made.op, made.args))
    return made.with_(op=op, args=args)


def mapped(value: Any, change: Callable[[Fn], Fn]) -> Any:
    """An argument with its functions changed."""
    match value:
        case Fn():
            return change(value)
        case Aggregate() | OverFunction():
            return replace(value, arguments=mapped(value.arguments, change))
        case tuple():
            return tuple(mapped(part, change) for part in value)
        case _:
            return value


def applied_to(node: Node, arg: Arg | None, typed: Typed) -> Types:
    """The types of the arguments of the functions in an argument of the node.

    A step's function takes the stored result first and the arriving item last.
    """
    if not node.inputs:
        return ()
    if arg is not None and arg.kind == "condition":
        return tuple(typed.types[end].item for end in node.inputs)
    item = typed.types[node.inputs[-1]].item
    if arg is None or not arg.leading:
        return (item,)
    pairs = "by" in node.args and node.args["by"] is None
    value = item.fields[1] if pairs and isinstance(item, Tuple) else item
    return (_accumulator(node, typed, value, pairs=pairs), value)


def _accumulator(node: Node, typed: Typed, value: ItemType, *, pairs: bool) -> ItemType:
    """The type of the first argument of a step; UNKNOWN where the node does not determine it."""
    if "init" not in node.args:
        return value
    output = typed.types[Endpoint(node.id)].item
    if pairs:
        return output.fields[1] if isinstance(output, Tuple) else UNKNOWN
    return output if "by" not in node.args else UNKNOWN


def projection(node: Node, typed: Typed) -> Make | None:
    """The row that the node computes from its row, its columns in order, in normal form; None if
    the node is no projection.
    """
    cls = node.cls
    if not is_itemwise(cls) or cls.gives is not ItemEffect.ONE:
        return None
    item = typed.types[node.inputs[0]].item
    output = typed.types[Endpoint(node.id)].item
    if not isinstance(item, Row) or not isinstance(output, Row):
        return None
    if isinstance(cls, Projection):
        columns = _projected(cls.columns(node.args, item.names), item)
    else:
        columns = _made(node.args["f"], item)
    if columns is None or set(columns) != set(output.names):
        return None
    return Make("row", tuple(columns[name] for name in output.names), output.names)


_Columns = dict[str, Expr]
_ROW = argument(0)


def _kept(item: Row, name: str) -> Expr:
    return Part(_ROW, name, type=item.column(name) or UNKNOWN)


def _expression(fn: Fn, item: Row) -> Expr | None:
    """The expression of a function whose body is nothing else."""
    return None if any(declared(fn)) else normal_tree(fn, (item,))


def _projected(made: Mapping[str, str | Fn], item: Row) -> _Columns | None:
    found = {
        name: _kept(item, of) if isinstance(of, str) else _expression(of, item)
        for name, of in made.items()
    }
    known = {name: column for name, column in found.items() if column is not None}
    return known if len(known) == len(found) else None


def _made(fn: Fn, item: Row) -> _Columns | None:
    match _expression(fn, item):
        case Make("row", parts, names):
            found: _Columns = {}
            for part, name in zip(parts, names, strict=True):
                if not isinstance(part, Spread):
                    found[str(name)] = part
                elif part.value == _ROW:
                    found |= {kept: _kept(item, kept) for kept in item.names}
                else:
                    return None
            return found
        case _:
            return None
