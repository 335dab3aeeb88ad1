"""Reports of `check` and `optimize`, the same at the command line and in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.catalog.spec import functions_of
from hydro_core.compile import CompiledProgram, best_plan, planned
from hydro_core.ir.graph import Node
from hydro_core.optimize import report
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.optimizer import OptimizedProgram
from hydro_core.plan.planner import plan
from hydro_core.plan.streams import StreamForm, repeated, stream_forms, written_whole
from hydro_core.printing.tables import table
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import StreamType

_WIDEST = 48
"""Characters of a function in the table of functions."""
_WIDEST_TYPE = 56
"""Characters of a type in the table of streams."""


@dataclass(frozen=True, slots=True)
class CheckedProgram(CompiledProgram):
    """A program that is checked; its text is what `hydrotick check` prints."""

    def __str__(self) -> str:
        parts = [check_text(self.typed, self.strata), *_stored_anew(self)]
        return "\n\n".join((*parts, *_tables(_functions(self))))

    def as_json(self) -> Mapping[str, Any]:
        found = {"stored_anew": _stored_anew(self), "functions": _functions(self)}
        return {**check_json(self.typed, self.strata), **found}


@dataclass(frozen=True, slots=True)
class BestPlan(OptimizedProgram):
    """The best plan of a program; its text is what `hydrotick optimize` prints."""

    forms: tuple[StreamForm, ...] = ()
    """Forms of outputs and states, if the plan is explained."""

    def __str__(self) -> str:
        parts = [report.as_text(self)]
        if self.derivations:
            parts.append(report.explanation(self))
        return "\n\n".join((*parts, *filter(None, ["\n".join(map(str, self.forms))])))

    def as_json(self) -> Mapping[str, Any]:
        forms = {"forms": [form.as_json() for form in self.forms]} if self.forms else {}
        return {**report.as_json(self), **forms}


def checked(program: CompiledProgram) -> CheckedProgram:
    return CheckedProgram(program.typed, program.strata)


def shown_plan(
    program: CompiledProgram, stats: Statistics | None = None, *, explain: bool = False
) -> BestPlan:
    """The best plan of a program as `optimize` tells of it.

    Args:
        program: what is optimized.
        stats: what is known of its inputs.
        explain: whether it comes with the rules that lead to it, and the forms of what it stores.
    """
    found = best_plan(program, stats, explain=explain)
    forms = stream_forms(planned(program, found)) if explain else ()
    return BestPlan(**{f.name: getattr(found, f.name) for f in fields(found)}, forms=forms)


def check_json(typed: Typed, strata: Strata) -> Mapping[str, Any]:
    ready = plan(typed)
    return {
        "name": typed.graph.name,
        "inputs": {name: to_ddl(stream.item) for name, stream in typed.inputs.items()},
        "outputs": {name: _stream(stream) for name, stream in typed.outputs.items()},
        "streams": {str(endpoint): _stream(stream) for endpoint, stream in typed.types.items()},
        "strata": [list(strata.members(number)) for number in range(strata.count)],
        "recursive": [sorted(cycle) for cycle in strata.recursive],
        "handoffs": [
            {"stream": str(endpoint), "from": before, "to": after}
            for endpoint, before, after in strata.handoffs
        ],
        "tick_by_tick": list(ready.notes),
        "repeated": list(repeated(ready).values()),
        "warnings": [warning.as_json() for warning in typed.graph.warnings],
    }


def _stream(stream: StreamType) -> Mapping[str, Any]:
    return {"type": to_ddl(stream.item), "order": stream.order.value, "single": stream.single}


def check_text(typed: Typed, strata: Strata) -> str:
    inputs = [[name, to_ddl(stream.item)] for name, stream in typed.inputs.items()]
    outputs = [
        [name, stream.order.value, to_ddl(stream.item)] for name, stream in typed.outputs.items()
    ]
    strata_shown = "1 stratum" if strata.count == 1 else f"{strata.count} strata"
    parts = [
        f"{typed.graph.name}: {len(typed.graph.nodes)} operators in {strata_shown}",
        table(["input", "items"], inputs) if inputs else "no inputs",
        table(["output", "order", "items"], outputs) if outputs else "no outputs",
        table(["stratum", "stream", "operator", "order", "items"], _streams(typed, strata)),
    ]
    if strata.recursive:
        cycles = (", ".join(sorted(cycle)) for cycle in strata.recursive)
        parts.append("\n".join(f"runs to a fixpoint: {cycle}" for cycle in cycles))
    ready = plan(typed)
    notes = (*ready.notes, *repeated(ready).values())
    if notes:
        parts.append("\n".join(notes))
    return "\n\n".join(parts)


def _streams(typed: Typed, strata: Strata) -> list[list[str]]:
    rows = []
    for number in range(strata.count):
        for i, name in enumerate(strata.members(number)):
            node = typed.graph[name]
            rows.append([str(number) if i == 0 else "", name, node.op.name, *_types(typed, node)])
    return rows


def _types(typed: Typed, node: Node) -> tuple[str, str]:
    if node.op.outputs == "none":
        return "", ""
    stream = typed.of(node.id)
    order, text = "ordered" if stream.order.value == "TotalOrder" else "", to_ddl(stream.item)
    # as much of a long type as keeps the table readable; inputs and outputs stand above whole
    is_short = len(text) <= _WIDEST_TYPE
    return order, text if is_short else text[: _WIDEST_TYPE - 1].rstrip(" ,") + "…"


def _stored_anew(program: CompiledProgram) -> Sequence[str]:
    """Sentences about outputs whose rows the best plan stores anew in each tick."""
    if not any(written_whole(planned(program))):
        return []  # the best plan takes longer than all else here
    return list(written_whole(planned(program, best_plan(program))))


def _functions(program: CompiledProgram) -> list[dict[str, Any]]:
    if not any(True for node in program.graph for _ in functions_of(node.args)):
        return []
    # Imported here: PySpark takes a second to load.
    from hydro_core.spark.lower.explained import function_runs

    return [
        {
            "operator": found.node.id,
            "function": found.fn.name,
            "line": found.fn.span.line if found.fn.span else None,
            "runs_as": found.runtime.how,
            "why": found.runtime.reason,
            "why_line": found.runtime.place[0] or None,
        }
        for found in function_runs(program.typed)
    ]


def _tables(functions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = []
    for function in functions:
        name = function["function"]
        shown = name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
        why = function["why"] or ""
        place = f" (line {function['why_line']})" if function["why_line"] else ""
        rows.append([function["operator"], shown, function["runs_as"], why + place])
    if rows:
        yield table(["stream", "function", "on Spark", "why"], rows)
