"""A plan as data that JSON can hold.

Types, functions and places are written once, in tables, and referred to by their numbers. A value
that JSON has no form for is an object with one key, which says what it is.
"""

from __future__ import annotations

import ast
import base64
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.artifact.functions import stored_call
from hydro_core.catalog.spec import Aggregate, OverFunction
from hydro_core.errors import Span
from hydro_core.functions.fn import Fn
from hydro_core.functions.tree import Const, Expr, Spread
from hydro_core.ir.graph import Endpoint, Graph
from hydro_core.plan.tick_plan import Component, StateSlot, TickPlan
from hydro_core.types import item as items
from hydro_core.types.ddl import stored_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.values import RowItem, Struct

_TYPES = (items.Unknown, items.Scalar, items.Decimal, items.Tuple, items.Row, items.Array)


@dataclass(slots=True)
class Encoder:
    """Writes parts of a plan; what they share is in the tables."""

    types: dict[str, int] = field(default_factory=dict)
    """By their text: types are equal that differ in which columns may be null."""
    spans: dict[tuple[Hashable, ...], int] = field(default_factory=dict)
    functions: dict[int, int] = field(default_factory=dict)
    """The numbers of functions, by the identity of the object."""
    held: list[Fn] = field(default_factory=list)
    function_records: list[Any] = field(default_factory=list)

    def tables(self) -> dict[str, Any]:
        """What the written parts refer to."""
        return {
            "types": list(self.types),
            "spans": [list(span) for span in self.spans],
            "functions": self.function_records,
        }

    def type(self, item: ItemType) -> int:
        """The number of a type."""
        return self.types.setdefault(stored_ddl(item), len(self.types))

    def span(self, span: Span | None) -> int | None:
        """The number of a place."""
        if span is None:
            return None
        key = (*(getattr(span, f.name) for f in fields(Span)),)
        return self.spans.setdefault(key, len(self.spans))

    def function(self, fn: Fn) -> int:
        """The number of a function."""
        if id(fn) not in self.functions:
            record = self._function(fn)
            self.functions[id(fn)] = len(self.function_records)
            self.held.append(fn)
            self.function_records.append(record)
        return self.functions[id(fn)]

    def _function(self, fn: Fn) -> dict[str, Any]:
        algebra = fn.algebra
        return {
            "name": fn.name,
            "source": fn.source,
            "closed": [list(pair) for pair in fn.closed],
            "params": list(fn.params),
            "call": self._call(fn),
            "tree": None if fn.tree is None else self.tree(fn.tree),
            "algebra": [getattr(algebra, f.name) for f in fields(algebra)],
            "returns": None if fn.returns is None else self.type(fn.returns),
            "span": self.span(fn.span),
            "pure": fn.pure,
            "unrepeatable": [[used, self.span(span)] for used, span in fn.unrepeatable],
            "over": [self.type(t) for t in fn.over],
        }

    def _call(self, fn: Fn) -> dict[str, Any]:
        kind, *parts = stored_call(fn)
        match kind, parts:
            case "view", [inner, view]:
                return {"viewed": [self.function(inner), self.tree(view)]}
            case "syntax", [node, bindings]:
                bound = {name: self._bound(name, value) for name, value in bindings.items()}
                return {"syntax": self._syntax(node), "bindings": bound}
            case "reference", [module, name]:
                return {"reference": [module, name]}
            case _:
                return {"tree": True}

    def _bound(self, name: str, value: Any) -> Any:
        if not callable(value):
            return {"value": self.value(value)}
        _, module, qualname = stored_call(Fn(name, name, (), value))
        return {"reference": [module, qualname]}

    def _syntax(self, node: Any) -> Any:
        match node:
            case ast.AST():
                parts = {name: self._syntax(value) for name, value in ast.iter_fields(node)}
                return {"is": type(node).__name__, "has": parts}
            case list():
                return [self._syntax(part) for part in node]
            case _:
                return self.value(node)

    def tree(self, node: Expr | Spread) -> list[Any]:
        """A tree: the name of each node, its place, its parts."""
        parts = [getattr(node, f.name) for f in fields(node) if f.compare]
        given = [self.value(p) if isinstance(node, Const) else self._part(p) for p in parts]
        return [type(node).__name__, list(getattr(node, "place", (0, 0))), *given]

    def _part(self, part: Any) -> Any:
        match part:
            case None | bool() | int() | str():
                return part
            case tuple():
                return {"all": [self._part(p) for p in part]}
            case _:
                return self.tree(part)

    def value(self, value: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 - a closed set of cases
        """An argument of an operator, or a constant."""
        match value:
            case None | bool() | str():
                return value
            case int():
                return value if abs(value) < 2**53 else {"integer": str(value)}
            case float():
                return value if math.isfinite(value) else {"float": repr(value)}
            case Fn():
                return {"function": self.function(value)}
            case Aggregate(function, arguments):
                return {"aggregate": [function, [self.value(a) for a in arguments]]}
            case OverFunction(function, arguments):
                return {"over_function": [function, [self.value(a) for a in arguments]]}
            case list():
                return [self.value(v) for v in value]
            case tuple():
                kind = "struct" if isinstance(value, Struct) else "tuple"
                return {kind: [self.value(v) for v in value]}
            case Mapping():
                kind = "row" if isinstance(value, RowItem) else "dict"
                return {kind: [[self.value(k), self.value(value[k])] for k in value]}
            case bytes():
                return {"bytes": base64.b64encode(value).decode("ascii")}
            case Decimal():
                return {"decimal": str(value)}
            case datetime():
                return {"datetime": value.isoformat()}
            case date():
                return {"date": value.isoformat()}
            case timedelta():
                return {"timedelta": [value.days, value.seconds, value.microseconds]}
            case timezone():
                return {"timezone": self.value(value.utcoffset(None))}
            case _ if isinstance(value, _TYPES):
                return {"type": self.type(value)}
            case _:
                raise TypeError(f"{type(value).__name__} is no argument of an operator")

    def graph(self, graph: Graph) -> dict[str, Any]:
        """A graph."""
        nodes = [
            {
                "id": node.id,
                "operator": node.op.name,
                "arguments": {name: self.value(value) for name, value in node.args.entries},
                "inputs": [endpoint(e) for e in node.inputs],
                "span": self.span(node.span),
            }
            for node in graph
        ]
        warnings = [
            {
                **{f.name: getattr(warning, f.name) for f in fields(warning)},
                "span": self.span(warning.span),
            }
            for warning in graph.warnings
        ]
        return {"name": graph.name, "nodes": nodes, "warnings": warnings}

    def typed(self, typed: Typed) -> dict[str, Any]:
        """A graph with the types of its streams."""
        streams = [
            [*endpoint(e), self.type(t.item), t.order.value, t.single]
            for e, t in typed.types.items()
        ]
        return {"graph": self.graph(typed.graph), "streams": streams}

    def plan(self, plan: TickPlan) -> dict[str, Any]:
        """A plan."""
        return {
            **self.typed(plan.typed),
            "strata": strata(plan.strata),
            "kinds": {node: kind.value for node, kind in plan.kinds.items()},
            "slots": [self._slot(slot) for slot in plan.slots],
            "components": [component(c) for c in plan.components],
            "reads": dict(plan.reads),
            "in_changes": sorted(plan.in_changes),
            "notes": list(plan.notes),
            "hashes": dict(plan.hashes),
        }

    def _slot(self, slot: StateSlot) -> dict[str, Any]:
        return {
            "id": slot.id,
            "stream": endpoint(slot.stream),
            "readers": list(slot.readers),
            "item": self.type(slot.item),
            "ordered": slot.ordered,
            "mode": slot.form.stored,
            "semantic_hash": slot.semantic_hash,
            "keep": slot.keep,
            **({"bound": [slot.bound.column, slot.bound.micros]} if slot.bound else {}),
        }


def endpoint(end: Endpoint) -> list[str]:
    """An output of a node."""
    return [end.node, end.port]


def strata(found: Strata) -> dict[str, Any]:
    """The strata."""
    return {
        "of": dict(found.of),
        "recursive": [sorted(nodes) for nodes in found.recursive],
        "handoffs": [[*endpoint(e), one, other] for e, one, other in found.handoffs],
    }


def component(found: Component) -> list[Any]:
    """Operators that depend on each other."""
    return [list(found.nodes), found.how, [component(part) for part in found.parts]]
