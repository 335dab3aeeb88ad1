"""A plan out of what `encode` wrote."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.artifact.functions import ReferenceCall
from hydro_core.artifact.older import node_of, view_of
from hydro_core.artifact.records import NODES, SYNTAX
from hydro_core.catalog.forms import Form
from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import Aggregate, Args, OverFunction
from hydro_core.errors import Diagnostic, Span
from hydro_core.functions.call import TextCall
from hydro_core.functions.fn import Algebra, Fn, whole
from hydro_core.functions.from_tree import TreeCall
from hydro_core.functions.tree import Const, Spread
from hydro_core.functions.views import ViewedCall
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.plan.bound import TimeBound
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import Component, StateSlot, TickPlan
from hydro_core.types import item as items
from hydro_core.types.ddl import parse_stored
from hydro_core.types.item import ItemType
from hydro_core.types.stream import Order, StreamType
from hydro_core.types.values import RowItem, Struct


class Decoder:
    """Reads parts of a plan, which refer to these tables."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        # One by one: what is read of one record is there for the next.
        self.types: list[ItemType] = []
        self.types.extend(map(self._type, tables["types"]))
        self.spans = [Span(*record) for record in tables["spans"]]
        self.functions: list[Fn] = []
        self.functions.extend(map(self._function, tables["functions"]))

    def _type(self, record: Any) -> ItemType:
        match record:
            case str():
                return parse_stored(record)
            # So it was up to format 3, which did not say of columns that they are `not null`.
            case {"decimal": [precision, scale]}:
                return items.Decimal(precision, scale)
            case {"tuple": parts}:
                return items.Tuple(tuple(self.types[i] for i in parts))
            case {"row": columns}:
                return items.Row(tuple(items.Field(name, self.types[i]) for name, i in columns))
            case _:
                return items.Array(self.types[record["array"]])

    def span(self, number: int | None) -> Span | None:
        """A place."""
        return None if number is None else self.spans[number]

    def _function(self, record: Mapping[str, Any]) -> Fn:
        params = tuple(record["params"])
        tree = None if record["tree"] is None else self.tree(record["tree"])
        returns = record["returns"]
        return Fn(
            name=record["name"],
            source=record["source"],
            closed=_closed(record),
            params=params,
            call=self._call(record, tree, params),
            tree=tree,
            algebra=Algebra(*record["algebra"]),
            returns=None if returns is None else self.types[returns],
            span=self.span(record["span"]),
            pure=record["pure"],
            unrepeatable=tuple((u, self.span(n)) for u, n in record.get("unrepeatable", ())),
            over=tuple(self.types[i] for i in record["over"]),
        )

    def _call(
        self, record: Mapping[str, Any], tree: Any, params: tuple[str, ...]
    ) -> Callable[..., Any]:
        match record["call"]:
            case {"viewed": [inner, view]}:
                return ViewedCall(self.functions[inner], self.tree(view))
            case {"view": [inner, view]}:
                return ViewedCall(self.functions[inner], view_of(view))
            case {"syntax": node, "bindings": bindings}:
                return TextCall(
                    self._syntax(node), {n: self._bound(b) for n, b in bindings.items()}
                )
            case {"reference": [module, name]}:
                return ReferenceCall(module, name, whole(record["source"], _closed(record)))
            case _:
                return TreeCall(tree, params)

    def _bound(self, record: Mapping[str, Any]) -> Any:
        match record:
            case {"value": value}:
                return self.value(value)
            case _:
                return ReferenceCall(*record["reference"])

    def _syntax(self, record: Any) -> Any:
        match record:
            case {"is": name, "has": parts}:
                return SYNTAX[name](**{n: self._syntax(part) for n, part in parts.items()})
            case list():
                return [self._syntax(part) for part in record]
            case _:
                return self.value(record)

    def tree(self, record: Sequence[Any]) -> Any:
        """A tree of a function."""
        name, place, *parts = record
        if name == "Const":
            return Const(self.value(parts[0]), tuple(place))
        given = [self._part(part) for part in parts]
        if name == "Spread":
            return Spread(*given)
        made = NODES.get(name) or node_of(name)
        return made(*given, place=tuple(place))

    def _part(self, record: Any) -> Any:
        match record:
            case None | bool() | int() | str():
                return record
            case {"all": parts}:
                return tuple(map(self._part, parts))
            case _:
                return self.tree(record)

    def value(self, record: Any) -> Any:
        """An argument or a constant."""
        match record:
            case list():
                return list(map(self.value, record))
            case dict():
                ((kind, given),) = record.items()
                return self._special(kind, given)
            case _:
                return record

    def _special(self, kind: str, given: Any) -> Any:
        match kind:
            case "function":
                return self.functions[given]
            case "type":
                return self.types[given]
            case "aggregate" | "over_function":
                made = Aggregate if kind == "aggregate" else OverFunction
                return made(given[0], tuple(map(self.value, given[1])))
            case "tuple":
                return tuple(map(self.value, given))
            case "struct":
                return Struct(map(self.value, given))
            case "dict" | "row":
                pairs = [(self.value(k), self.value(v)) for k, v in given]
                return RowItem(pairs) if kind == "row" else dict(pairs)
            case "timezone":
                return timezone(self.value(given))
            case _:
                return _SCALARS[kind](given)

    def graph(self, record: Mapping[str, Any]) -> Graph:
        """A graph."""
        warnings = (
            Diagnostic(
                warning["code"],
                warning["message"],
                self.span(warning["span"]),
                warning["operator"],
                help=warning["help"],
                severity=warning["severity"],
            )
            for warning in record.get("warnings", ())
        )
        return Graph.of(map(self._node, record["nodes"]), record["name"], tuple(warnings))

    def _node(self, record: Mapping[str, Any]) -> Node:
        op = operator(record["operator"])
        given = [(name, self.value(v)) for name, v in record["arguments"].items()]
        # arguments that the operator got since are as if they were not given
        known = op.at(Args(tuple(given))).args
        since = [(arg.name, arg.default) for arg in known if arg.name not in record["arguments"]]
        return Node(
            record["id"],
            op,
            Args((*given, *since)),
            tuple(Endpoint(*e) for e in record["inputs"]),
            self.span(record["span"]),
        )

    def typed(self, record: Mapping[str, Any]) -> Typed:
        """A graph with the types of its streams."""
        streams = {
            Endpoint(node, port): StreamType(self.types[item], Order(order), single)
            for node, port, item, order, single in record["streams"]
        }
        return Typed(self.graph(record["graph"]), MappingProxyType(streams))

    def plan(self, record: Mapping[str, Any]) -> TickPlan:
        """A plan."""
        return TickPlan(
            typed=self.typed(record),
            strata=_strata(record["strata"]),
            kinds={node: Kind(kind) for node, kind in record["kinds"].items()},
            slots=tuple(map(self._slot, record["slots"])),
            components=tuple(map(_component, record["components"])),
            reads=record["reads"],
            in_changes=frozenset(record["in_changes"]),
            notes=tuple(record["notes"]),
            hashes=record["hashes"],
        )

    def _slot(self, record: Mapping[str, Any]) -> StateSlot:
        return StateSlot(
            id=record["id"],
            stream=Endpoint(*record["stream"]),
            readers=tuple(record["readers"]),
            item=self.types[record["item"]],
            ordered=record["ordered"],
            form=Form.of_stored(record["mode"]),
            semantic_hash=record["semantic_hash"],
            keep=record["keep"],
            bound=TimeBound(*record["bound"]) if "bound" in record else None,
        )


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "integer": int,
    "float": float,
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
}


def _strata(record: Mapping[str, Any]) -> Strata:
    return Strata(
        MappingProxyType(record["of"]),
        tuple(map(frozenset, record["recursive"])),
        tuple((Endpoint(node, port), one, other) for node, port, one, other in record["handoffs"]),
    )


def _closed(record: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a function closes over; deployments of before it was a field have it in the source."""
    return tuple((name, text) for name, text in record.get("closed", ()))


def _component(record: Sequence[Any]) -> Component:
    nodes, how, parts = record
    return Component(tuple(nodes), how, tuple(map(_component, parts)))
