"""What every drawing shows: boxes with labels, grouped by stratum, and the arrows between them.

An arrow `waits` where its reader sees the stream only when it is complete (a handoff) and is `late`
where the reader sees it a tick later, so that a cycle through `prev` is seen to be none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.catalog.spec import Aggregate, Args, Barrier, OverFunction, State
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.types.stream import StreamType

_LONGEST = 34
"""Longest text of an argument in a box, in characters."""

_MOST_NAMES = 5
"""Operators that the name of a stratum lists."""


class Role(Enum):
    """What a box is drawn as."""

    INPUT = SOURCE.name
    OUTPUT = SINK.name
    STATE = "state"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Box:
    """A node as it is drawn: `title` is the operator with its arguments, `name` what the program
    calls it.
    """

    id: NodeId
    title: str
    name: str
    role: Role
    stratum: int

    @property
    def is_end(self) -> bool:
        """Whether a stream of the program begins or ends here."""
        return self.role in (Role.INPUT, Role.OUTPUT)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream from one box to another; `label` is the port that it enters, where there are
    several.
    """

    source: NodeId
    target: NodeId
    label: str = ""
    type: str = ""
    waits: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """All boxes in the order of the program, and all arrows."""

    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    strata: tuple[int, ...] = field(default=())
    does: Mapping[int, str] = field(default_factory=dict)
    """What each stratum does, in a few words."""

    def label(self, stratum: int) -> str:
        """What a stratum is called: by its number and by what it does."""
        return f"stratum {stratum}: {self.does[stratum]}"


def picture_of(
    graph: Graph,
    strata: Mapping[NodeId, int] | None = None,
    types: Mapping[Endpoint, StreamType] | None = None,
) -> Picture:
    """The picture of a graph; without `strata` all boxes are in one group, without `types` arrows
    have none.
    """
    strata = strata or {}
    boxes = tuple(
        Box(node.id, title(node), _name(node), _role(node), strata.get(node.id, 0))
        for node in graph
    )
    arrows = tuple(arrow for node in graph for arrow in _arrows(node, types or {}))
    does = {number: stratum_does(graph, strata, number) for number in sorted({*strata.values(), 0})}
    return Picture(graph.name, boxes, arrows, tuple(sorted({box.stratum for box in boxes})), does)


def stratum_does(graph: Graph, strata: Mapping[NodeId, int], number: int) -> str:
    """What a stratum does: the operators in it that wait for streams to be complete, by the names
    that the program has for them.
    """
    waiting = [node for node in graph if strata.get(node.id, 0) == number and _waits(node)]
    names = list(dict.fromkeys(map(_known_as, waiting)))
    more = ", …" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more or "as rows arrive"


def _waits(node: Node) -> bool:
    return any(port.barrier is Barrier.STRATUM for port, _ in node.reads())


def _known_as(node: Node) -> str:
    """The name of the statement, or the operator's where the program gives it none."""
    operator, _, number = node.id.rpartition("_")
    return node.op.name if number.isdigit() and operator == node.op.name else _name(node)


def title(node: Node) -> str:
    """The operator with its arguments as they fit into a box: `map(lambda x: x + 1)`."""
    shown = [text for name, value in node.args.entries if (text := _argument(node, name, value))]
    inside = ", ".join(shown)
    if len(inside) > _LONGEST:
        inside = inside[: _LONGEST - 1].rstrip() + "…"
    return f"{node.op.name}({inside})" if inside else node.op.name


def _argument(node: Node, name: str, value: object) -> str:
    arg = node.op.arg(name)
    default = arg.default if arg else None
    if value is None or value == default or name == "schema":
        return ""
    match value:
        case Fn():
            return value.name
        case Args() | Aggregate():
            return ""
        case tuple():
            return ", ".join(_part(part) for part in value)
        case str():
            return value
        case _ if arg is not None and not arg.required:
            return f"{name}={value!r}"
        case _:
            return repr(value)


def _part(part: object) -> str:
    match part:
        case (str() as name, Aggregate() as aggregate):
            arguments = ", ".join(a if isinstance(a, str) else a.name for a in aggregate.arguments)
            return f"{name}={aggregate.function}({arguments})"
        case (str() as name, OverFunction() as over):
            return f"{name}={over.function}(…)"
        case (str() as name, Fn() as fn):
            return f"{name}={fn.name}"
        case (str() as name, str() as old):
            return f"{name}={old}"
        case str():
            return part
        case _:
            return repr(part)


def _name(node: Node) -> str:
    return node.id if _role(node) in (Role.STATE, Role.OPERATOR) else str(node.args["name"])


def _role(node: Node) -> Role:
    if node.op is SOURCE:
        return Role.INPUT
    if node.op is SINK:
        return Role.OUTPUT
    return Role.OPERATOR if node.op.state is State.NONE else Role.STATE


def _arrows(node: Node, types: Mapping[Endpoint, StreamType]) -> list[Arrow]:
    several = len(node.spec.inputs) > 1
    return [
        Arrow(
            endpoint.node,
            node.id,
            label=port.name if several else "",
            type=str(types[endpoint].item) if endpoint in types else "",
            waits=port.barrier is Barrier.STRATUM,
            late=port.barrier is Barrier.TICK,
        )
        for port, endpoint in node.reads()
    ]
