"""Reports of a plan, as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hydro_core.catalog.combine import UNION
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Graph, NodeId
from hydro_core.ir.sexpr import Atom, SExpr, flatten, function_names, show_tree, to_tree
from hydro_core.ir.term import Term, to_terms
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.optimize.growth import LONGER, StatementCost, StreamCost
from hydro_core.optimize.optimizer import OptimizedProgram

MAX_INPUTS = 5
"""Inputs whose assumed sizes are printed one by one."""


def expressions(graph: Graph) -> str:
    """The plan as S-expressions, one per output, each below a comment with its name."""
    terms = to_terms(graph)
    trees = _outputs(graph, terms, function_names(terms.values()))
    return "\n\n".join(f"; {name}\n{show_tree(tree)}" for name, tree in trees.items())


def _outputs(
    graph: Graph, terms: Mapping[NodeId, Term], names: Mapping[Fn, str]
) -> Mapping[str, SExpr]:
    """The tree of every output; several sinks of one name add up."""
    found = {}
    for name, sinks in graph.sinks.items():
        parts = [to_tree(terms[sink.id], names) for sink in sinks]
        found[name] = parts[0] if len(parts) == 1 else (Atom(UNION.name), *parts)
    return found


def as_text(optimized: OptimizedProgram) -> str:
    """The plan as text."""
    before, after = optimized.cost_before, optimized.cost_after
    parts = [
        f"{optimized.graph.name}: a tick costs {_rows(after)} rows, as written {_rows(before)}"
        + (f" ({_times(before / after)} times as much)" if before > 1.05 * after > 0 else ""),
        expressions(optimized.graph),
    ]
    parts[0] += f"\n{assumed_of(optimized.graph.sources, optimized.statistics)}"
    parts += [statements(optimized)] if optimized.statements else []
    said = (map(str, optimized.notes), optimized.bounds, optimized.limits)
    return "\n\n".join((*parts, *filter(None, map("\n".join, said))))


def statements(optimized: OptimizedProgram) -> str:
    """A table of the rows that each statement reads, makes and stores in a tick, now and later."""
    rows = [
        (_called(of), *map(_rows, (*of.now, *of.longer)))
        for of in optimized.statements
        if max(*of.now, *of.longer) >= 1
    ]
    columns = StreamCost._fields
    table = [("rows in a tick", *columns, *columns), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join((cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])))
        for cells in table
    ]
    later = f"at {LONGER:.0f} times the history".rjust(len(lines[0]))
    return "\n".join((later, *lines))


def _called(of: StatementCost) -> str:
    return of.name if of.name == of.operator else f"{of.name} ({of.operator})"


def assumed_of(inputs: Collection[str], given: Statistics) -> str:
    """The assumed sizes of inputs, in words."""
    known = [name for name in inputs if name in given.inputs]
    parts = [f"{name} {_assumed(given, name)}" for name in known[:MAX_INPUTS]]
    others = len(inputs) - len(known[:MAX_INPUTS])
    if others:
        every = "every other input" if known else "each input"
        parts.append(f"{every} {_assumed(given, None)}" if len(known) <= MAX_INPUTS else "others")
    advice = "" if known else "; `--stats` takes what is known"
    return f"assumed: {'; '.join(parts)}{advice}" if parts else "there are no inputs"


def _assumed(given: Statistics, name: str | None) -> str:
    sizes = _sizes(given, name or "")
    return f"{_rows(sizes['rows'])} rows in a tick and {_rows(sizes['history'])} in history"


def explanation(optimized: OptimizedProgram) -> str:
    """The rules that lead to the plan of every output."""
    return "\n\n".join(derivation.render() for derivation in optimized.derivations)


def as_json(optimized: OptimizedProgram) -> Mapping[str, Any]:
    """The plan as `--format json` prints it."""
    graph = optimized.graph
    terms = to_terms(graph)
    names = function_names(terms.values())
    result: dict[str, Any] = {
        "name": graph.name,
        "cost_before": optimized.cost_before,
        "cost_after": optimized.cost_after,
        "assumed": {name: _sizes(optimized.statistics, name) for name in graph.sources},
        "outputs": {name: flatten(t) for name, t in _outputs(graph, terms, names).items()},
        "functions": {name: fn.whole for fn, name in names.items()},
        "nodes": [
            {
                "id": node.id,
                "operator": node.op.name,
                "inputs": list(map(str, node.inputs)),
                "line": node.span.line if node.span else None,
                "column": node.span.column if node.span else None,
            }
            for node in graph
        ],
        "statements": [of.as_json() for of in optimized.statements],
        "notes": [
            {part: getattr(n, part) for part in ("operator", "name", "reads", "reason", "cure")}
            for n in optimized.notes
        ],
        "iterations": optimized.saturation.iterations,
        "saturated": optimized.saturation.saturated,
        "e_nodes": optimized.saturation.nodes,
        "bounds": list(optimized.bounds),
        "limits": list(optimized.limits),
    }
    if optimized.derivations:
        result["explanation"] = [d.as_json() for d in optimized.derivations]
    return result


def _sizes(given: Statistics, name: str) -> Mapping[str, float]:
    found = given.inputs.get(name, InputStatistics())
    history = found.rows * given.ticks if found.history is None else found.history
    return {"rows": found.rows, "history": history}


def _rows(cost: float) -> str:
    return f"{cost:,.0f}" if cost < 1e15 else f"{cost:.0e}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
