"""A graph as text: `parse(to_text(graph)) == graph`.

Nodes are written in their order, since generated ids are counted in it. A node that only the next
one reads is written before it in one pipeline; every other one is a statement under its id.
"""

from __future__ import annotations

import ast
import keyword
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.catalog.over_functions import arguments_of
from hydro_core.catalog.registry import ALGEBRA, TYPED
from hydro_core.catalog.spec import Aggregate, Arg, OverFunction, functions_of
from hydro_core.errors import HydroError
from hydro_core.functions.from_tree import python_text
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, is_generated
from hydro_core.lang.resolve import parse
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import literal, quoted

WIDTH = 100


def to_text(graph: Graph) -> str:
    """The program's text; functions that are no expressions appear by name (`names_in`)."""
    for layout in (_Layout(graph), _Layout(graph, plain=True)):
        text = "".join(f"{statement}\n" for statement in layout.statements())
        if _reads_back(text, graph):
            break
    return text


def names_in(graph: Graph) -> tuple[str, ...]:
    """The names in the text that its reader must bind."""
    return tuple(
        dict.fromkeys(n for node in graph for fn in functions_of(node.args) for n in left_names(fn))
    )


def _reads_back(text: str, graph: Graph) -> bool:
    bindings = dict.fromkeys(names_in(graph), _anything)
    try:
        again = parse(text, bindings=bindings)
    except HydroError:
        return False
    return {n.id: n.inputs for n in again} == {n.id: n.inputs for n in graph}


def _anything(x: Any) -> Any:
    """Replaces a function whose name alone matters."""
    return x


class _Layout:
    """The nodes that share a statement.

    A node with a generated id that one other reads needs no name: it is written before its reader
    in one pipeline, or its pipeline ends in a port of the reader. With `plain`, every node is a
    statement of its own.
    """

    def __init__(self, graph: Graph, *, plain: bool = False) -> None:
        self.graph = graph
        self.reads = Counter(endpoint.node for node in graph for endpoint in node.inputs)
        self.implicit = {node.id for node in graph if self._is_implicit(node)}
        self.behind: dict[NodeId, NodeId] = {}
        self.ported: set[NodeId] = set()
        self.into: dict[NodeId, tuple[str, NodeId]] = {}
        if not plain:
            self._chain()
            self._port()

    def _is_implicit(self, node: Node) -> bool:
        """True if a source needs no declaration, since a node reads it."""
        undeclared = node.op is SOURCE and node.args["schema"] is None
        return undeclared and node.id == node.args["name"] and self.reads[node.id] > 0

    def _is_nameless(self, node: Node) -> bool:
        return is_generated(node) and node.op.outputs == "one" and self.reads[node.id] == 1

    def _chain(self) -> None:
        nodes = [node for node in self.graph if node.id not in self.implicit]
        for node, after in pairwise(nodes):
            first = after.inputs[:1] == (Endpoint(node.id),)
            single = self.reads[node.id] == 1 and node.op.outputs == "one"
            if first and single and (self._is_nameless(node) or len(node.inputs) > 1):
                self.behind[node.id] = after.id

    def _port(self) -> None:
        """Operators of several inputs whose inputs would need a name only to be an argument."""
        chained = {after: node for node, after in self.behind.items()}
        for node in self.graph:
            if len(node.inputs) < 2 or node.id in chained:
                continue
            nameless = [
                (i, e.node)
                for i, e in enumerate(node.inputs)
                if self._is_nameless(self.graph[e.node])
            ]
            if not nameless:
                continue
            self.ported.add(node.id)
            for position, name in nameless:
                self.into[name] = (self._entry(node, position), node.id)
        for node in self.graph:
            # A named operator starts a pipeline only if streams flow into it by its name.
            if not self._is_nameless(node) and node.id not in self.ported:
                self.behind.pop(node.id, None)

    def _entry(self, node: Node, position: int) -> str:
        label = "" if node.op.variadic else f"[{node.op.inputs[position].name}]"
        return f"{label}{node.id}"

    def statements(self) -> Iterator[str]:
        """The statements, in the order of the nodes."""
        followers = set(self.behind.values())
        for node in self.graph:
            if node.id not in followers and node.id not in self.implicit:
                yield from self._pipelines(node)

    def _pipelines(self, node: Node) -> Iterator[str]:
        chain = [node]
        while chain[-1].id in self.behind:
            chain.append(self.graph[self.behind[chain[-1].id]])
        last = chain[-1]
        ends = last.op.outputs == "none" or (last.op.optional_input and bool(last.inputs))
        ends = ends or last.id in self.into or (self._is_unread(last) and len(chain) > 1)
        if node.id not in self.ported:
            start = [_end(e) for e in node.inputs[:1]]
            yield self._pipeline(start, chain, "" if ends else f"{last.id} = ")
            return
        for position, endpoint in enumerate(node.inputs):
            if endpoint.node not in self.into:
                yield f"{_end(endpoint)} -> {self._entry(node, position)}"
        if ends or len(chain) == 1:
            yield self._pipeline([], chain, f"{node.id} = ")
        else:
            yield self._pipeline([], chain[:1], f"{node.id} = ")
            yield self._pipeline([node.id], chain[1:], f"{last.id} = ")

    def _is_unread(self, node: Node) -> bool:
        return not self.reads[node.id] and is_generated(node)

    def _pipeline(self, start: list[str], chain: list[Node], head: str) -> str:
        elements = start + [_element(self.graph, n, n.id in self.ported) for n in chain]
        if chain[-1].id in self.into:
            elements.append(self.into[chain[-1].id][0])
        return _pipeline(elements, head)


def _pipeline(elements: list[str], head: str) -> str:
    line = head + " -> ".join(elements)
    if len(line) <= WIDTH or len(elements) < 3:
        return line
    return head + "\n  -> ".join(elements)


def _end(endpoint: Endpoint) -> str:
    if not endpoint.port:
        return endpoint.node
    plain = endpoint.port.isdigit() or endpoint.port.isidentifier()
    return f"{endpoint.node}[{endpoint.port if plain else quoted(endpoint.port)}]"


def _element(graph: Graph, node: Node, ported: bool) -> str:
    name = str(node.args["name"]) if node.op is SINK else ""
    taken = name in graph.sources or (name in graph.nodes and graph[name].op is not SINK)
    if name.isidentifier() and not taken:
        return name
    streams = () if ported else _streams(node)
    return f"{node.op.name}({', '.join((*streams, *_arguments(node)))})"


def _streams(node: Node) -> Iterator[str]:
    for position, endpoint in enumerate(node.inputs[1:], start=1):
        label = "" if node.op.variadic else f"{node.op.inputs[position].keyword}="
        yield label + _end(endpoint)


def _arguments(node: Node) -> Iterator[str]:
    for arg in node.spec.args:
        yield from _argument(node, arg)


def _argument(node: Node, arg: Arg) -> Iterator[str]:
    value = node.args[arg.name]
    match arg.kind:
        case "named_columns":
            yield from map(quoted, value)
        case "computed":
            yield from (f"{name}={_typed(fn)}" for name, fn in value)
        case "renames":
            yield from (f"{new}={quoted(old)}" for new, old in value)
        case "aggregates":
            yield from (f"{name}={_aggregate(a)}" for name, a in value)
        case "over_functions":
            yield from (f"{name}={_over_function(f)}" for name, f in value)
        case "function":
            yield function_text(value) if arg.positional else f"{arg.name}={function_text(value)}"
            yield from _promises(value)
        case _ if value == arg.default and not arg.required:
            return
        case "name" if node.op is SOURCE and value == node.id:
            return
        case _:
            text = _text(arg, value)
            yield text if arg.positional and arg.required else f"{arg.name}={text}"


def unwritable_columns(graph: Graph) -> Iterator[tuple[Node, str]]:
    """The columns that operators name and no text can: keywords of Python."""
    for node in graph:
        for arg in node.spec.args:
            names = (name for name, _ in node.args[arg.name]) if arg.is_open else ()
            yield from ((node, name) for name in names if keyword.iskeyword(name))


def _promises(fn: Fn) -> Iterator[str]:
    algebra = fn.algebra
    for name in ALGEBRA:
        if getattr(algebra, name):
            yield f"{name}=True"
    if fn.returns is not None:
        yield f"returns={schema_text(fn.returns)}"


def _typed(fn: Fn) -> str:
    """A function with its result type, where the operator has no argument `returns`."""
    text = function_text(fn)
    return text if fn.returns is None else f"{TYPED}({schema_text(fn.returns)}, {text})"


def _aggregate(aggregate: Aggregate) -> str:
    parts = (_typed(a) if isinstance(a, Fn) else quoted(a) for a in aggregate.arguments)
    return f"{aggregate.function}({', '.join(parts)})"


def _over_function(function: OverFunction) -> str:
    """A call as a program writes it, without arguments that equal their default."""
    shown, by_place = [], True
    for arg, value in arguments_of(function):
        if not arg.required and (type(value), value) == (type(arg.default), arg.default):
            by_place = False
            continue
        by_place = by_place and arg.positional
        text = _over_argument(value)
        shown.append(text if by_place else f"{arg.name}={text}")
    return f"{function.function}({', '.join(shown)})"


def _over_argument(value: Any) -> str:
    match value:
        case Aggregate():
            return _aggregate(value)
        case Fn():
            return _typed(value)
        case _:
            return literal(value)


def _text(arg: Arg, value: Any) -> str:
    match arg.kind:
        case "schema":
            return schema_text(value)
        case "order" | "condition" if isinstance(value, Fn):
            return _typed(value)
        case "key" if isinstance(value[0], tuple):
            return literal(dict(value))
        case "key" | "columns" | "order" if len(value) == 1:
            return quoted(value[0])
        case "key" | "columns" | "order" | "ports" | "items":
            return literal(list(value))
        case "fds":
            pairs = (f"{_fields(left)}: {_fields(right)}" for left, right in value)
            return f"{{{', '.join(pairs)}}}"
        case _:
            return literal(value)


def _fields(names: tuple[str, ...]) -> str:
    return quoted(names[0]) if len(names) == 1 else literal(names)


def is_name(text: str) -> bool:
    """True if a text can be the name of a stream.

    >>> is_name("add_member"), is_name("a b"), is_name("lambda")
    (True, False, False)
    """
    return text.isidentifier() and not keyword.iskeyword(text)


def schema_text(item: ItemType) -> str:
    return quoted(to_ddl(item))


def function_text(fn: Fn) -> str:
    """A lambda with its closed-over constants inlined, or the name of a function that is no lambda.

    A `def` of a single `return` is a lambda; any other function appears by name, for the reader to
    bind.
    """
    tree = _as_lambda(fn.source)
    if tree is None:
        return _name(fn)
    values = {name: _constant(text) for name, text in fn.closed}
    constants = {name: value for name, value in values.items() if value is not None}
    return python_text(ast.fix_missing_locations(_ConstantInliner(constants).visit(tree)))


def left_names(fn: Fn) -> tuple[str, ...]:
    """The free names in the function's text that no constant replaces."""
    tree = _as_lambda(fn.source)
    if tree is None:
        return (_name(fn),)
    named = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    return tuple(name for name, text in fn.closed if name in named and _constant(text) is None)


def _name(fn: Fn) -> str:
    """The name of a function that is no expression; an unreadable lambda has none of its own."""
    return fn.name if fn.name.isidentifier() else f"function_{fn.source.rpartition('#')[2]}"


def _as_lambda(text: str) -> ast.Lambda | None:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    match body:
        case [ast.Expr(value=ast.Lambda() as tree)]:
            return tree
        case [ast.FunctionDef(args=args, body=[ast.Return(value=ast.expr() as result)])]:
            plain = [ast.arg(arg=a.arg) for a in args.args]
            return ast.Lambda(args=ast.arguments([], plain, None, [], [], None, []), body=result)
        case _:
            return None


def _constant(text: str) -> ast.expr | None:
    """The value of a closed-over name as a constant, if it can be written as one."""
    try:
        return ast.parse(literal(ast.literal_eval(text)), mode="eval").body
    except (SyntaxError, ValueError):
        return None


class _ConstantInliner(ast.NodeTransformer):
    """Replaces names by their constants."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.constants.get(node.id, node)
