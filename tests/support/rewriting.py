"""Terms as programs: what the rules make of an expression, for golden tests."""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import Args
from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.ir.sexpr import flatten, function_names, read, show_tree, to_tree
from hydro_core.ir.term import Application, to_terms
from hydro_core.lang.resolve import parse
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.egraph import EGraph
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import optimize, prepare
from hydro_core.types.ddl import parse_ddl
from tests.support.sexpr_programs import from_tree, to_graph

PAIRS, ROWS = ("a", "b", "c", "d"), ("rows", "more")


def _fn(text: str, op: str = "map", more: str = "") -> Fn:
    fn: Fn = parse(f"a -> {op}({more}{text}) -> out").named(op)[0].args["f"]
    return fn


FUNCTIONS: Mapping[str, Fn] = {
    "f": _fn("lambda x: (x[1], x[0])"),
    "g": _fn("lambda x: (x[0], x[1] + 1)"),
    "p": _fn("lambda x: x[0] != 1", "filter"),
    "q": _fn("lambda x: x[1] != 2", "filter"),
    "spread": _fn("lambda x: [x, x]", "flat_map"),
    "key": _fn("lambda x: x[0]"),
    "add": _fn("lambda s, v: s + v, commutative=True", "fold", "0, "),
    "add_second": _fn("lambda s, x: s + x[1], commutative=True", "fold", "0, "),
    "widen": _fn("lambda s, x: s + x[1] / 2, commutative=True", "fold", "0, "),
    "most": _fn("lambda x, y: max(x, y), commutative=True", "reduce"),
    "greatest": _fn("lambda x, y: max(x, y), commutative=True, associative=True", "reduce"),
    "alive": _fn("lambda r: r.v != 0", "filter"),
    "at": _fn("lambda r: r.at"),
    "steps": _fn("lambda s, v: s * 2 - v", "fold", "0, "),
}


def inputs() -> Mapping[str, Application]:
    """The inputs that expressions may name."""
    schemas = dict.fromkeys(PAIRS, "(long, long)") | dict.fromkeys(ROWS, "k long, v long, at long")
    return {
        name: Application(
            operator("source"),
            Args((("schema", parse_ddl(ddl)), ("name", name), ("fds", ()))),
            origin=name,
        )
        for name, ddl in schemas.items()
    }


def program(*texts: str) -> CompiledProgram:
    """The program whose outputs are these expressions."""
    known = inputs()
    terms, sinks = {}, {}
    for number, text in enumerate(texts):
        name = f"out{number}"
        terms[name] = from_tree(read(text), FUNCTIONS, known)
        sinks[name] = Node(name, operator("sink"), Args((("name", name),)))
    return compile_graph(to_graph(terms, sinks))


def plan(text: str, stats: Statistics | None = None) -> str:
    """The plan of an expression, as an expression."""
    found = optimize(program(text).typed, stats=stats)
    (term,) = to_terms(found.graph).values()
    names = {**function_names([term]), **{fn: name for name, fn in FUNCTIONS.items()}}
    return show_tree(to_tree(term, names))


def same_class(left: str, right: str) -> bool:
    """Whether the rules find the two expressions to be equal."""
    loaded = load(program(left, right).typed)
    problem, rules = prepare(loaded)
    egraph = EGraph(problem, rules)
    egraph.saturate()
    space = egraph.space()
    ends = [space.nodes[space.of[root][0]].inputs[0] for root in space.roots]
    return ends[0] == ends[1]


def fired(text: str) -> frozenset[str]:
    """The names of the rules that fire on an expression."""
    loaded = load(program(text).typed)
    problem, rules = prepare(loaded)
    egraph = EGraph(problem, rules, log=True)
    egraph.saturate()
    return frozenset(rule.name for rule, _ in egraph.firings())


def tidy(text: str) -> str:
    """The expression in one line."""
    return flatten(read(text))
