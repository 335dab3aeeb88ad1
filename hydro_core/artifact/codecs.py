"""A plan as data that JSON can hold, and back: written as the annotations of its classes say.

Types, functions and places are written once, in tables, and referred to by their numbers. A value
that JSON has no form for is an object with one key, which names its kind.
"""

from __future__ import annotations

import ast
import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any, get_args

from hydro_core.analysis.infer import Typed
from hydro_core.artifact.functions import ReferenceCall, stored_call
from hydro_core.catalog.forms import Form
from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import Aggregate, Args, OpSpec, OverFunction
from hydro_core.errors import Span
from hydro_core.functions.call import TextCall
from hydro_core.functions.from_tree import TreeCall
from hydro_core.functions.tree import Algebra, Const, Expr, Fn, Spread, whole
from hydro_core.functions.views import ViewedCall
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.plan.tick_plan import Component, TimeBound
from hydro_core.types.ddl import parse_stored, stored_ddl
from hydro_core.types.item import ItemType, StreamType
from hydro_core.types.records import Codec, Codecs
from hydro_core.types.values import RowItem, Struct


def write_value(tables: Any, value: Any) -> Any:
    """A value as it is written; functions and types are numbers of the tables."""
    match value:
        case None | bool() | str():
            return value
        case int() if abs(value) < 2**53:
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [write_value(tables, one) for one in value]
        case _:
            found = next((kind for kind in _KINDS if isinstance(value, kind.of)), None)
            if found is None:
                raise TypeError(f"{type(value).__name__} is no argument of an operator")
            return {found.tag: found.write(tables, value)}


def read_value(tables: Any, record: Any) -> Any:
    """The value that was written."""
    match record:
        case list():
            return [read_value(tables, one) for one in record]
        case dict():
            ((tag, given),) = record.items()
            return _BY_TAG[tag].read(tables, given)
        case _:
            return record


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of values: its tag, its classes, and how it is written and read."""

    tag: str
    of: type | tuple[type, ...]
    write: Callable[[Any, Any], Any]
    read: Callable[[Any, Any], Any]


def _all(tables: Any, values: Iterable[Any]) -> list[Any]:
    return [write_value(tables, value) for value in values]


def _call(made: Callable[[str, tuple[Any, ...]], Any]) -> Callable[[Any, Any], Any]:
    return lambda tables, given: made(given[0], tuple(read_value(tables, given[1])))


def _write_aggregate(tables: Any, call: Aggregate | OverFunction) -> list[Any]:
    return [call.function, _all(tables, call.arguments)]


def _write_pairs(tables: Any, values: Mapping[Any, Any]) -> list[Any]:
    return [_all(tables, pair) for pair in values.items()]


def _scalar(
    tag: str, of: type, text: Callable[[Any], Any], read: Callable[[Any], Any] | None = None
) -> _Kind:
    return _Kind(tag, of, lambda _, value: text(value), lambda _, given: (read or of)(given))


_KINDS = (
    _Kind("function", Fn, lambda to, fn: to.function(fn), lambda of, n: of.functions[n]),
    _Kind("type", get_args(ItemType), lambda to, item: to.type(item), lambda of, n: of.types[n]),
    _Kind("aggregate", Aggregate, _write_aggregate, _call(Aggregate)),
    _Kind("over_function", OverFunction, _write_aggregate, _call(OverFunction)),
    _Kind("struct", Struct, _all, lambda of, given: Struct(read_value(of, given))),
    _Kind("tuple", tuple, _all, lambda of, given: tuple(read_value(of, given))),
    _Kind("row", RowItem, _write_pairs, lambda of, given: RowItem(read_value(of, given))),
    _Kind("dict", Mapping, _write_pairs, lambda of, given: dict(read_value(of, given))),
    _scalar("integer", int, str),
    _scalar("float", float, repr),
    _scalar("bytes", bytes, lambda v: base64.b64encode(v).decode("ascii"), base64.b64decode),
    _scalar("decimal", Decimal, str),
    _scalar("datetime", datetime, datetime.isoformat, datetime.fromisoformat),
    _scalar("date", date, date.isoformat, date.fromisoformat),
    _scalar(
        "timedelta",
        timedelta,
        lambda v: [v.days, v.seconds, v.microseconds],
        lambda p: timedelta(*p),
    ),
    _Kind(
        "timezone",
        timezone,
        lambda to, zone: write_value(to, zone.utcoffset(None)),
        lambda of, given: timezone(read_value(of, given)),
    ),
)
"""The first whose class a value has is its kind."""
_BY_TAG = {kind.tag: kind for kind in _KINDS}


_POSITIONAL = frozenset({Algebra, Component, Endpoint, StreamType, TimeBound})
"""Classes whose records are lists of their fields."""
_ITEMS, _NODES = get_args(ItemType), get_args(Expr)


@dataclass(slots=True)
class EncodedTables:
    """Types, places and functions of a plan that is written, each once."""

    types: dict[str, int] = field(default_factory=dict)
    """By their text: types are equal that differ in which columns may be null."""
    spans: dict[tuple[Any, ...], int] = field(default_factory=dict)
    functions: dict[int, tuple[int, Fn]] = field(default_factory=dict)
    """By the identity of the object, which is held."""
    records: list[Any] = field(default_factory=list)

    def tables(self) -> dict[str, Any]:
        """The tables as data."""
        spans = [list(span) for span in self.spans]
        return {"types": list(self.types), "spans": spans, "functions": self.records}

    def type(self, item: ItemType) -> int:
        """The number of a type."""
        return self.types.setdefault(stored_ddl(item), len(self.types))

    def span(self, span: Span) -> int:
        """The number of a place."""
        # two places are equal whose lines are not
        parts = (*(getattr(span, f.name) for f in fields(span)),)
        return self.spans.setdefault(parts, len(self.spans))

    def function(self, fn: Fn) -> int:
        """The number of a function."""
        if id(fn) not in self.functions:
            record = _write_function(self, fn)
            self.functions[id(fn)] = len(self.records), fn
            self.records.append(record)
        return self.functions[id(fn)][0]


class DecodedTables:
    """Types, places and functions of a plan that is read."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self.types: list[ItemType] = [parse_stored(text) for text in tables["types"]]
        self.spans = [Span(*record) for record in tables["spans"]]
        self.functions: list[Fn] = []
        self.functions.extend(_read_function(self, record) for record in tables["functions"])


def _write_function(tables: EncodedTables, fn: Fn) -> dict[str, Any]:
    # in this order since it is part of deployments' names
    first = dict.fromkeys(("name", "source", "closed", "params"))
    made: dict[str, Any] = first | {"call": _write_call(tables, fn)} | _FUNCTION.write(tables, fn)
    return made


def _write_call(tables: EncodedTables, fn: Fn) -> dict[str, Any]:
    match stored_call(fn):
        case "view", inner, view:
            return {"viewed": [tables.function(inner), write_tree(tables, view)]}
        case "syntax", node, bindings:
            bound = {name: _write_bound(tables, name, value) for name, value in bindings.items()}
            return {"syntax": write_syntax(tables, node), "bindings": bound}
        case "reference", module, name:
            return {"reference": [module, name]}
        case _:
            return {"tree": True}


def _write_bound(tables: EncodedTables, name: str, value: Any) -> Any:
    if not callable(value):
        return {"value": write_value(tables, value)}
    _, module, qualname = stored_call(Fn(name, name, (), value))
    return {"reference": [module, qualname]}


def _read_function(tables: DecodedTables, record: Mapping[str, Any]) -> Fn:
    left = dict(record)
    call = left.pop("call")
    given = _FUNCTION.read(tables, left)
    return Fn(**given, call=_read_call(tables, call, given))


def _read_call(
    tables: DecodedTables, record: Mapping[str, Any], given: Mapping[str, Any]
) -> Callable[..., Any]:
    match record:
        case {"viewed": [inner, view]}:
            return ViewedCall(tables.functions[inner], read_tree(tables, view))
        case {"syntax": node, "bindings": bindings}:
            bound = {name: _read_bound(tables, value) for name, value in bindings.items()}
            return TextCall(read_syntax(tables, node), bound)
        case {"reference": [module, name]}:
            source = whole(given["source"], given.get("closed", ()))
            return ReferenceCall(module, name, source)
        case _:
            return TreeCall(given["tree"], given["params"])


def _read_bound(tables: DecodedTables, record: Any) -> Any:
    match record:
        case {"value": value}:
            return read_value(tables, value)
        case _:
            return ReferenceCall(*record["reference"])


def _read_node(tables: DecodedTables, record: Any) -> Node:
    node: Node = _NODE.read(tables, record)
    # arguments that the operator got since are as if they were not given
    known = node.op.at(node.args).args
    since = [(arg.name, arg.default) for arg in known if arg.name not in node.args]
    return node.with_(args=Args((*node.args.entries, *since))) if since else node


def _write_graph(tables: EncodedTables, graph: Graph) -> dict[str, Any]:
    record = _GRAPH.write(tables, graph)
    return {"name": record["name"], **record, "nodes": list(record["nodes"].values())}


def _read_graph(tables: DecodedTables, record: Mapping[str, Any]) -> Graph:
    nodes = {node["id"]: node for node in record["nodes"]}
    graph: Graph = _GRAPH.read(tables, {**record, "nodes": nodes})
    return graph


def _write_typed(tables: EncodedTables, typed: Typed) -> dict[str, Any]:
    for stream in typed.types.values():  # they come first in the table
        tables.type(stream.item)
    record: dict[str, Any] = _TYPED.write(tables, typed)
    return record


_TREES: Mapping[str, type] = MappingProxyType({t.__name__: t for t in (*get_args(Expr), Spread)})
"""The nodes of functions' trees, by their names."""

_SYNTAX: Mapping[str, type[ast.AST]] = MappingProxyType(
    {
        name: kind
        for name, kind in vars(ast).items()
        if isinstance(kind, type)
        and issubclass(
            kind,
            (
                *(ast.expr, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
                *(ast.comprehension, ast.arguments, ast.arg, ast.keyword),
            ),
        )
    }
)
"""The syntax of an expression, by its names."""


def write_tree(tables: Any, node: Expr | Spread) -> list[Any]:
    """A tree: the name of each node, its place, its parts. Types are found again by `bind`."""
    parts = [getattr(node, f.name) for f in fields(node) if f.name not in ("place", "type")]
    write = write_value if isinstance(node, Const) else _write_part
    place = list(getattr(node, "place", (0, 0)))
    return [type(node).__name__, place, *(write(tables, part) for part in parts)]


def _write_part(tables: Any, part: Any) -> Any:
    match part:
        case None | bool() | int() | str():
            return part
        case tuple():
            return {"all": [_write_part(tables, p) for p in part]}
        case _:
            return write_tree(tables, part)


def read_tree(tables: Any, record: Sequence[Any]) -> Any:
    """The tree that was written."""
    name, place, *parts = record
    if name == "Const":
        return Const(read_value(tables, parts[0]), tuple(place))
    given = [_read_part(tables, part) for part in parts]
    if name == "Spread":
        return Spread(*given)
    return _TREES[name](*given, place=tuple(place))


def _read_part(tables: Any, record: Any) -> Any:
    match record:
        case None | bool() | int() | str():
            return record
        case {"all": parts}:
            return tuple(_read_part(tables, part) for part in parts)
        case _:
            return read_tree(tables, record)


def write_syntax(tables: Any, node: Any) -> Any:
    """Syntax: the name of each node, and its parts by their names."""
    match node:
        case ast.AST():
            parts = {name: write_syntax(tables, value) for name, value in ast.iter_fields(node)}
            return {"is": type(node).__name__, "has": parts}
        case list():
            return [write_syntax(tables, part) for part in node]
        case _:
            return write_value(tables, node)


def read_syntax(tables: Any, record: Any) -> Any:
    """The syntax that was written; no other than an expression's."""
    match record:
        case {"is": name, "has": parts}:
            return _SYNTAX[name](**{n: read_syntax(tables, part) for n, part in parts.items()})
        case list():
            return [read_syntax(tables, part) for part in record]
        case _:
            return read_value(tables, record)


_OWN: Mapping[Any, Codec] = {
    Span: Codec(lambda to, span: to.span(span), lambda of, number: of.spans[number]),
    Fn: Codec(lambda to, fn: to.function(fn), lambda of, number: of.functions[number]),
    Form: Codec(lambda _, form: form.stored, lambda _, name: Form.of_stored(name)),
    OpSpec: Codec(lambda _, op: op.name, lambda _, name: operator(name)),
    Args: Codec(
        lambda to, args: {name: write_value(to, value) for name, value in args.entries},
        lambda of, record: Args(tuple((n, read_value(of, value)) for n, value in record.items())),
    ),
    **dict.fromkeys(
        _ITEMS, Codec(lambda to, item: to.type(item), lambda of, number: of.types[number])
    ),
    **dict.fromkeys(_NODES, Codec(write_tree, read_tree)),
}
PLAN = Codecs(_OWN, _POSITIONAL)
"""The codecs of all that a deployment is made of."""
_NODE, _GRAPH, _TYPED = map(PLAN.fields_of, (Node, Graph, Typed))
_FUNCTION = PLAN.fields_of(Fn, "call")
PLAN.declare(Node, Codec(_NODE.write, _read_node))
PLAN.declare(Graph, Codec(_write_graph, _read_graph))
PLAN.declare(Typed, Codec(_write_typed, _TYPED.read))
