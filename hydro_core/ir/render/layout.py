"""Layout of a drawing: boxes by strata, and arrows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.catalog.spec import Aggregate, Args, Barrier, OverFunction, State
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, inputs_first
from hydro_core.types.item import StreamType

# The content of every drawing: boxes with labels, grouped by stratum, and the arrows between them.
#
# An arrow `waits` if its reader needs the stream complete (a handoff). It is `late` if its reader
# sees the stream a tick later, so a cycle through `prev` is visibly none.


_LONGEST = 34
"""Longest text of an argument in a box, in characters."""

_MOST_NAMES = 5
"""Operators that the name of a stratum lists."""


class Role(Enum):
    """The role of a box in the drawing."""

    INPUT = SOURCE.name
    OUTPUT = SINK.name
    STATE = "state"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Box:
    """A node as it is drawn: `title` is the operator with its arguments, `name` its name in the
    program.
    """

    id: NodeId
    title: str
    name: str
    role: Role
    stratum: int

    @property
    def is_end(self) -> bool:
        """True if a stream of the program begins or ends here."""
        return self.role in (Role.INPUT, Role.OUTPUT)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream from one box to another; `label` is the port that it enters, if there are
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
    """By stratum: its blocking operators, in a few words."""

    def label(self, stratum: int) -> str:
        """The label of a stratum: its number and its blocking operators."""
        return f"stratum {stratum}: {self.does[stratum]}"


def picture_of(
    graph: Graph,
    strata: Mapping[NodeId, int] | None = None,
    types: Mapping[Endpoint, StreamType] | None = None,
) -> Picture:
    """The picture of a graph; without `strata` all boxes are in one group, without `types` arrows
    have no types.
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
    """The blocking operators of a stratum, by their names in the program; else "as rows arrive"."""
    waiting = [node for node in graph if strata.get(node.id, 0) == number and _waits(node)]
    names = list(dict.fromkeys(map(_known_as, waiting)))
    more = ", …" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more or "as rows arrive"


def _waits(node: Node) -> bool:
    return any(port.barrier is Barrier.STRATUM for port, _ in node.reads())


def _known_as(node: Node) -> str:
    """The name of the statement, or the operator's name if the program gives it none."""
    operator, _, number = node.id.rpartition("_")
    return node.op.name if number.isdigit() and operator == node.op.name else _name(node)


def title(node: Node) -> str:
    """The operator with as many of its arguments as fit into a box: `map(lambda x: x + 1)`."""
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


# Positions of boxes and arrows: a layered layout, strata from top to bottom.
#
# A box is one layer below the lowest box that it reads in the same tick, and every stratum begins a
# new layer. Arrows over several layers pass through points in between, which are ordered like
# boxes; arrows upwards (a tick later, or around a cycle) are routed at the side. Within a layer the
# order comes from averages of neighbours, and the coordinates are the least-squares solution for
# the same averages, with gaps.


LAYER_GAP = 64.0
BOX_GAP = 26.0
_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class BoxPlace:
    """The centre of a box, and its layer."""

    x: float
    y: float
    layer: int


@dataclass(frozen=True, slots=True)
class Route:
    """The points of an arrow, from centre to centre; `back` if it leads up."""

    arrow: Arrow
    points: tuple[tuple[float, float], ...]
    back: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A picture with coordinates: x grows to the right, y down, in pixels; all x are positive."""

    places: Mapping[NodeId, BoxPlace]
    routes: tuple[Route, ...]
    width: float
    height: float
    bands: tuple[tuple[int, float, float], ...]
    """Each stratum with the y where it begins and ends."""


def lay_out(picture: Picture, widths: Mapping[NodeId, float], height: float) -> Layout:
    """The layout of a picture whose boxes have these widths and one height."""
    layers = _layers(picture)
    rows, chains = _rows(picture, layers, dict(widths))
    order = _ordered(rows, chains)
    xs = _coordinates(order, chains, rows.widths)
    left = min((xs[k] - rows.widths[k] / 2 for row in order for k in row), default=0.0) - 40
    right = max((xs[k] + rows.widths[k] / 2 for row in order for k in row), default=0.0) + 40
    step = height + LAYER_GAP
    top = 40 + height / 2
    places = {
        box.id: BoxPlace(xs[box.id] - left, top + layers[box.id] * step, layers[box.id])
        for box in picture.boxes
    }
    routes = []
    for arrow, chain in chains:
        back = layers[arrow.source] >= layers[arrow.target]
        points = [(xs[k] - left, top + rows.layer[k] * step) for k in chain]
        routes.append(Route(arrow, tuple(reversed(points)) if back else tuple(points), back))
    total = top + max(layers.values(), default=0) * step + height / 2 + 40
    return Layout(places, tuple(routes), right - left, total, _bands(picture, layers, step, height))


def _bands(
    picture: Picture, layers: Mapping[NodeId, int], step: float, height: float
) -> tuple[tuple[int, float, float], ...]:
    bands = []
    for stratum in picture.strata:
        rows = [layers[box.id] for box in picture.boxes if box.stratum == stratum]
        top = 40 + min(rows) * step - LAYER_GAP / 2 + 4
        bands.append((stratum, top, 40 + max(rows) * step + height + LAYER_GAP / 2 - 4))
    return tuple(bands)


def _layers(picture: Picture) -> dict[NodeId, int]:
    """The layer of every box; arrows that close a cycle or are late do not count."""
    reads: dict[NodeId, list[NodeId]] = {box.id: [] for box in picture.boxes}
    stratum = {box.id: box.stratum for box in picture.boxes}
    for arrow in picture.arrows:
        if not arrow.late and stratum[arrow.source] == stratum[arrow.target]:
            reads[arrow.target].append(arrow.source)
    depth: dict[NodeId, int] = {}
    for node in inputs_first(reads, lambda box: reads[box][::-1]):
        # The longest path, without inputs that close a cycle.
        depth[node] = max((depth[r] + 1 for r in reads[node] if r in depth), default=0)
    layers: dict[NodeId, int] = {}
    offset = 0
    for number in picture.strata:
        members = [box.id for box in picture.boxes if box.stratum == number]
        layers.update({member: offset + depth[member] for member in members})
        offset += 1 + max(depth[m] for m in members)
    return layers


@dataclass(slots=True)
class _Rows:
    """Boxes and the points between layers, by their keys."""

    rows: list[list[str]]
    layer: dict[str, int]
    widths: dict[str, float]


def _rows(
    picture: Picture, layers: Mapping[NodeId, int], widths: dict[str, float]
) -> tuple[_Rows, list[tuple[Arrow, tuple[str, ...]]]]:
    rows: list[list[str]] = [[] for _ in range(max(layers.values(), default=0) + 1)]
    layer = dict(layers)
    for box in picture.boxes:
        rows[layers[box.id]].append(box.id)
    chains: list[tuple[Arrow, tuple[str, ...]]] = []
    for number, arrow in enumerate(picture.arrows):
        upper, lower = arrow.source, arrow.target
        if layers[upper] > layers[lower]:
            upper, lower = lower, upper
        between = []
        for at in range(layers[upper] + 1, layers[lower]):
            key = f"\0{number}.{at}"
            layer[key], widths[key] = at, 10.0
            rows[at].append(key)
            between.append(key)
        chains.append((arrow, (upper, *between, lower)))
    return _Rows(rows, layer, widths), chains


def _neighbours(
    chains: Sequence[tuple[Arrow, tuple[str, ...]]],
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for _, chain in chains:
        for upper, lower in pairwise(chain):
            if upper != lower:
                above.setdefault(lower, []).append(upper)
                below.setdefault(upper, []).append(lower)
    return above, below


def _ordered(rows: _Rows, chains: Sequence[tuple[Arrow, tuple[str, ...]]]) -> list[list[str]]:
    above, below = _neighbours(chains)
    order = [list(row) for row in rows.rows]
    rank = {key: place for row in order for key, place in _ranks(row)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        sides = above if down else below
        for row in order[1:] if down else order[-2::-1]:
            wish = {k: _mean([rank[n] for n in sides.get(k, ())], rank[k]) for k in row}
            row.sort(key=wish.__getitem__)
            rank.update(_ranks(row))
    return order


def _ranks(row: Sequence[str]) -> list[tuple[str, float]]:
    return [(key, place / max(1, len(row) - 1)) for place, key in enumerate(row)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _coordinates(
    order: Sequence[Sequence[str]],
    chains: Sequence[tuple[Arrow, tuple[str, ...]]],
    widths: Mapping[str, float],
) -> dict[str, float]:
    above, below = _neighbours(chains)
    xs: dict[str, float] = {}
    for row in order:
        xs.update(zip(row, _spread([0.0] * len(row), row, widths), strict=True))
    for sweep in range(_SWEEPS):
        for row in order if sweep % 2 == 0 else list(reversed(order)):
            sides = (
                [above, below] if sweep >= _SWEEPS // 2 else [above if sweep % 2 == 0 else below]
            )
            wish = [
                _mean([xs[n] for side in sides for n in side.get(key, ())], xs[key]) for key in row
            ]
            xs.update(zip(row, _spread(wish, row, widths), strict=True))
    return xs


def _spread(wish: Sequence[float], row: Sequence[str], widths: Mapping[str, float]) -> list[float]:
    """The positions nearest to `wish`, in order and without overlaps: pooled averages of the wishes
    less the gaps.
    """
    offsets, total = [], 0.0
    for i, key in enumerate(row):
        if i:
            total += (widths[row[i - 1]] + widths[key]) / 2 + BOX_GAP
        offsets.append(total)
    pools: list[list[float]] = []
    for want, offset in zip(wish, offsets, strict=True):
        pools.append([want - offset, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, m) = pools[-2], pools[-1]
            pools[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    flat = [mean for mean, count in pools for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(flat, offsets, strict=True)]
