"""Programs that are written as S-expressions, for tests: as such they are printed, and read nowhere
else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydro_core.catalog.internal import operator
from hydro_core.catalog.itemwise import SOURCE
from hydro_core.catalog.spec import NO_ARGS, Aggregate, Arg, Args, OpSpec, OverFunction
from hydro_core.functions.read import constant
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.sexpr import Atom, SExpr, flatten, read
from hydro_core.ir.term import Application, Bindings, LetRec, LetTerm, Ref, Term
from hydro_core.types.ddl import parse_ddl

Reader = Callable[[str, str, Mapping[str, Fn]], tuple[str, Any]]
READERS: Mapping[str, Reader] = {
    "computed": lambda name, text, functions: (name, functions[text]),
    "renames": lambda name, text, _: (name, ast.literal_eval(text)),
    "aggregates": lambda name, text, functions: (name, _aggregate(text, functions)),
    "over_functions": lambda name, text, functions: (name, _over_function(text, functions)),
}
"""How what stands in open lists of `name=…` is read."""


def parse(
    text: str,
    functions: Mapping[str, Fn] | None = None,
    inputs: Mapping[str, Application] | None = None,
) -> Term:
    """The term that is written so; a free name is the source of that name, or what `inputs` says.

    `functions` are the functions by their printed names.
    """
    return from_tree(read(text), functions or {}, inputs or {})


def from_tree(
    tree: SExpr,
    functions: Mapping[str, Fn],
    inputs: Mapping[str, Application],
    bound: frozenset[str] = frozenset(),
) -> Term:
    """The term of a tree, in which the names in `bound` are references."""
    if isinstance(tree, Atom):
        if tree.text in bound:
            return Ref(tree.text)
        return inputs[tree.text] if tree.text in inputs else _source(tree.text)
    if not tree or not isinstance(tree[0], Atom):
        raise ValueError(f"{flatten(tree)} does not begin with an operator")
    match tree[0].text, tree[1:]:
        case "let", (Atom(name), value, body):
            inner = from_tree(body, functions, inputs, bound | {name})
            return LetTerm(name, from_tree(value, functions, inputs, bound), inner)
        case "letrec", (Atom(name), value, body):
            return _letrec(((name, value),), body, functions, inputs, bound)
        case "letrec", (tuple() as pairs, body):
            named = tuple(zip(map(flatten, pairs[::2]), pairs[1::2], strict=True))
            return _letrec(named, body, functions, inputs, bound)
        case head, rest:
            return _application(head, rest, functions, inputs, bound)


def _letrec(
    pairs: tuple[tuple[str, SExpr], ...],
    body: SExpr,
    functions: Mapping[str, Fn],
    inputs: Mapping[str, Application],
    bound: frozenset[str],
) -> Term:
    known = bound | {name for name, _ in pairs}
    bindings = tuple((name, from_tree(t, functions, inputs, known)) for name, t in pairs)
    return LetRec(bindings, from_tree(body, functions, inputs, known))


def _application(
    head: str,
    rest: tuple[SExpr, ...],
    functions: Mapping[str, Fn],
    inputs: Mapping[str, Application],
    bound: frozenset[str],
) -> Term:
    name, _, port = head.partition("[")
    op, args, streams = read_argument(name, [_raw(t) for t in rest], functions)
    children = tuple(from_tree(rest[i], functions, inputs, bound) for i in streams)
    return Application(op, args, children, port.removesuffix("]"))


def _raw(tree: SExpr) -> str | None:
    return tree.text if isinstance(tree, Atom) else None


def _source(name: str) -> Application:
    op, args, _ = read_argument(SOURCE.name, [f"name={name!r}"], {})
    return Application(op, args)


def read_argument(
    name: str, given: Sequence[str | None], functions: Mapping[str, Fn]
) -> tuple[OpSpec, Args, tuple[int, ...]]:
    """The operator called `name`, its arguments, and the positions of `given` that are streams.

    `given` is what follows the operator: the text of an atom, None for an expression.
    """
    op = operator(name)
    wanted = [a for a in op.args if a.kind == "function"]
    values: dict[str, Any] = {a.name: a.default for a in op.args}
    opened: dict[str, list[tuple[str, Any]]] = {}
    streams: list[int] = []
    for position, text in enumerate(given):
        key, equals, literal = (text or "").partition("=")
        if text is not None and wanted and not equals:
            values[wanted.pop(0).name] = functions[text]
        elif text is not None and equals and key.isidentifier():
            _keyword(op, key, literal, functions, values, opened)
        else:
            streams.append(position)
    values |= {kind: tuple(pairs) for kind, pairs in opened.items()}
    args = Args(tuple(values.items()))
    return op, args if op.at(args).args else NO_ARGS, tuple(streams)


def _keyword(
    op: OpSpec,
    key: str,
    literal: str,
    functions: Mapping[str, Fn],
    values: dict[str, Any],
    opened: dict[str, list[tuple[str, Any]]],
) -> None:
    arg = op.arg(key)
    if arg is not None and not arg.is_open:
        values[key] = _value(arg, literal, functions)
        return
    open_arg = next((a for a in op.args if a.is_open), None)
    if open_arg is None:
        raise ValueError(f"`{op.name}` has no argument {key!r}")
    opened.setdefault(open_arg.name, []).append(READERS[open_arg.kind](key, literal, functions))


def _value(arg: Arg, text: str, functions: Mapping[str, Fn]) -> Any:
    if text in functions:
        return functions[text]
    if arg.kind == "schema":
        return None if text == "None" else parse_ddl(ast.literal_eval(text))
    if arg.kind in {"value", "items"}:
        value = constant(ast.parse(text, mode="eval").body, {})
        return tuple(value) if arg.kind == "items" else value
    return ast.literal_eval(text)


def _aggregate(text: str, functions: Mapping[str, Fn]) -> Aggregate:
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TypeError(f"{text} is not an aggregate")
    parts = tuple(
        functions[a.id] if isinstance(a, ast.Name) else ast.literal_eval(a) for a in call.args
    )
    return Aggregate(call.func.id, parts)


def _over_function(text: str, functions: Mapping[str, Fn]) -> OverFunction:
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TypeError(f"{text} is not a function of `over`")
    parts = tuple(
        _aggregate(ast.unparse(a), functions)
        if isinstance(a, ast.Call)
        else functions[a.id]
        if isinstance(a, ast.Name)
        else ast.literal_eval(a)
        for a in call.args
    )
    return OverFunction(call.func.id, parts)


def to_graph(terms: Mapping[str, Term], sinks: Mapping[str, Node], name: str = "flow") -> Graph:
    """The graph in which each term flows into the sink of its name; equal parts are one node."""
    work = _Nodes(dict.fromkeys(sinks, True))
    ends = {sink: work.place(term, {}) for sink, term in terms.items()}
    last = [sinks[sink].with_(inputs=(end,)) for sink, end in ends.items()]
    return Graph.of((*work.nodes.values(), *last), name)


@dataclass(slots=True)
class _Nodes:
    taken: dict[NodeId, bool]
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    known: dict[tuple[object, ...], NodeId] = field(default_factory=dict)
    cycles: dict[tuple[object, ...], Mapping[str, Endpoint]] = field(default_factory=dict)

    def place(self, term: Term, bound: Mapping[str, Endpoint]) -> Endpoint:
        """The stream of a term, its nodes made."""
        match term:
            case Ref(name):
                return bound[name]
            case LetTerm(name, value, body):
                return self.place(body, {**bound, name: self.place(value, bound)})
            case LetRec(bindings, body):
                return self.place(body, {**bound, **self._cycle(bindings, bound)})
            case Application(op, args, inputs, port):
                read = tuple(self.place(i, bound) for i in inputs)
                key = (op, args, read)
                if key not in self.known:
                    self.known[key] = self._make(term, read)
                return Endpoint(self.known[key], port)

    def _cycle(self, bindings: Bindings, bound: Mapping[str, Endpoint]) -> Mapping[str, Endpoint]:
        """The streams of a `letrec`: their nodes are named before what they read is known."""
        key = (bindings, tuple(sorted(bound.items())))
        if key in self.cycles:
            return self.cycles[key]
        made: dict[str, Endpoint] = {}
        apps: dict[str, Application] = {}
        for name, term in bindings:
            if not isinstance(term, Application):
                raise TypeError(f"{name} is bound to something that is no operator")
            made[name] = Endpoint(self._id(term), term.port)
            apps[name] = term
        inner = {**bound, **made}
        for name, app in apps.items():
            read = tuple(self.place(i, inner) for i in app.inputs)
            node = made[name].node
            self.nodes[node] = Node(node, app.op, app.args, read, app.span)
        self.cycles[key] = made
        return made

    def _make(self, app: Application, read: tuple[Endpoint, ...]) -> NodeId:
        name = self._id(app)
        self.nodes[name] = Node(name, app.op, app.args, read, app.span)
        return name

    def _id(self, app: Application) -> NodeId:
        wanted = app.origin or (app.args["name"] if app.op is SOURCE else "")
        name, number = wanted, 1
        while not name or name in self.taken:
            name = f"{app.op.name}_{number}"
            number += 1
        self.taken[name] = True
        return name
