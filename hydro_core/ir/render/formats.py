"""Formats of a drawing: terminal, mermaid, Graphviz, JSON and SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from html import escape
from itertools import pairwise
from typing import Any

from hydro_core.ir.graph import NodeId
from hydro_core.ir.render.layout import Arrow, Box, BoxPlace, Layout, Picture, Role, Route, lay_out

# The picture as text: for a terminal, in mermaid's and Graphviz's languages, and as JSON.


_MERMAID = {Role.INPUT: ('[/"', '"/]'), Role.OUTPUT: ('[\\"', '"\\]'), Role.STATE: ('[("', '")]')}
_DOT = {
    Role.INPUT: "invhouse",
    Role.OUTPUT: "house",
    Role.STATE: "cylinder",
    Role.OPERATOR: "box",
}


def text(picture: Picture) -> str:
    """Strata in order; each operator with its arguments and, after `<-`, its inputs."""
    names = {box.id: box.name for box in picture.boxes}
    width = max((len(box.name) for box in picture.boxes), default=0)
    reads: dict[str, list[str]] = {}
    for arrow in picture.arrows:
        mark = " (a tick later)" if arrow.late else " (complete)" if arrow.waits else ""
        port = f"[{arrow.label}] " if arrow.label else ""
        reads.setdefault(arrow.target, []).append(f"{port}{names[arrow.source]}{mark}")
    lines = []
    for stratum in picture.strata:
        lines.append(picture.label(stratum))
        for box in picture.boxes:
            if box.stratum == stratum:
                inputs = ", ".join(reads.get(box.id, ()))
                title = box.role.value if box.is_end else box.title
                lines.append(f"  {box.name:<{width}}  {title}{f'  <- {inputs}' if inputs else ''}")
    return "\n".join(lines) + "\n"


def mermaid(picture: Picture) -> str:
    """The picture in mermaid's language: a flowchart with a subgraph for each stratum."""
    ids = {box.id: f"n{i}" for i, box in enumerate(picture.boxes)}

    def group(stratum: int) -> list[str]:
        return [f'  subgraph stratum_{stratum}["{_escaped(picture.label(stratum))}"]']

    def boxed(box: Box) -> str:
        left, right = _MERMAID.get(box.role, ('["', '"]'))
        label = box.title if box.name == box.title else f"{box.name}: {box.title}"
        return f"{ids[box.id]}{left}{_escaped(box.name if box.is_end else label)}{right}"

    def drawn(arrow: Arrow) -> str:
        line = "-.->" if arrow.late else "==>" if arrow.waits else "-->"
        label = f'|"{_escaped(arrow.label)}"|' if arrow.label else ""
        return f"{ids[arrow.source]} {line}{label} {ids[arrow.target]}"

    lines = _grouped(picture, group, boxed, "  end", drawn)
    return "\n".join(["flowchart TD", *lines]) + "\n"


def dot(picture: Picture) -> str:
    """The picture in Graphviz's language: a digraph with a cluster for each stratum."""

    def group(stratum: int) -> list[str]:
        label = f"    label={_quoted(picture.label(stratum))}; style=rounded; color=gray;"
        return [f"  subgraph cluster_{stratum} {{", label]

    def boxed(box: Box) -> str:
        label = _quoted(box.name if box.is_end else f"{box.name}\n{box.title}")
        return f"{_quoted(box.id)} [label={label}, shape={_DOT[box.role]}];"

    def drawn(arrow: Arrow) -> str:
        wanted = {
            "label": _quoted(arrow.label) if arrow.label else "",
            "tooltip": _quoted(arrow.type) if arrow.type else "",
            "style": "dashed" if arrow.late else "bold" if arrow.waits else "",
        }
        attributes = ", ".join(f"{name}={value}" for name, value in wanted.items() if value)
        tail = f" [{attributes}]" if attributes else ""
        return f"{_quoted(arrow.source)} -> {_quoted(arrow.target)}{tail};"

    head = [f"digraph {_quoted(picture.name)} {{", '  node [fontname="Helvetica", fontsize=10];']
    return "\n".join([*head, *_grouped(picture, group, boxed, "  }", drawn), "}"]) + "\n"


def json(picture: Picture) -> dict[str, Any]:
    """An object with `name`, `boxes` and `arrows`, each with the fields of `Box` and `Arrow`."""
    return {
        "name": picture.name,
        "boxes": [{**asdict(box), "role": box.role.value} for box in picture.boxes],
        "arrows": [asdict(arrow) for arrow in picture.arrows],
    }


def _grouped(
    picture: Picture,
    group: Callable[[int], list[str]],
    boxed: Callable[[Box], str],
    end: str,
    drawn: Callable[[Arrow], str],
) -> list[str]:
    """A line for each box, those of a stratum between lines of its own, and one for each arrow."""
    lines = []
    for stratum in picture.strata:
        boxes = [f"    {boxed(box)}" for box in picture.boxes if box.stratum == stratum]
        lines += [*group(stratum), *boxes, end]
    return lines + [f"  {drawn(arrow)}" for arrow in picture.arrows]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    return (
        text.replace("&", "&amp;")
        .replace('"', "&quot;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\n", " ")
    )


# SVG: the picture as a drawing of its own, for files, notebooks and the UI.


_HEIGHT = 44.0
_CHARACTER = 6.7
"""Width of a character of the titles, in pixels."""
_FILL = {
    Role.INPUT: ("#e3f2e6", "#3f8f55"),
    Role.OUTPUT: ("#fdeedd", "#c07a2c"),
    Role.STATE: ("#e4ecfb", "#3f66b8"),
    Role.OPERATOR: ("#ffffff", "#8a8f98"),
}
_STYLE = (
    "text{font-family:ui-sans-serif,Helvetica,Arial,sans-serif;fill:#22262c}"
    ".name{font-size:12.5px;font-weight:600}.title{font-size:11px;fill:#565c66}"
    ".band{font-size:11px;fill:#8a8f98}.port{font-size:10px;fill:#565c66}"
)


def svg(picture: Picture) -> str:
    """The drawing as the text of an SVG document; strata are bands, dashed arrows arrive a tick
    later.
    """
    widths = {box.id: _width(box) for box in picture.boxes}
    layout = lay_out(picture, widths, _HEIGHT)
    entries = _entries(layout, widths)
    width, height = max(layout.width, 220.0), layout.height
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{escape(picture.name)}</title><style>{_STYLE}</style>",
        _head("fwd", "#5b616b") + _head("late", "#b0562f"),
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(
            _band(number, picture.label(number), (top, bottom, width))
            for number, top, bottom in layout.bands
        ),
        *(
            _arrow(route, layout, entry)
            for route, entry in zip(layout.routes, entries, strict=True)
        ),
        *(_box(box, layout.places[box.id], widths[box.id]) for box in picture.boxes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _entries(layout: Layout, widths: Mapping[NodeId, float]) -> list[float]:
    """By arrow: its distance from the middle of its target box, side by side in the order of their
    sources.
    """
    arriving: dict[NodeId, list[int]] = {}
    for number, route in enumerate(layout.routes):
        if not route.back:
            arriving.setdefault(route.arrow.target, []).append(number)
    entries = [0.0] * len(layout.routes)
    for target, numbers in arriving.items():
        numbers.sort(key=lambda n: layout.routes[n].points[-2][0])
        gap = min(30.0, widths[target] / (len(numbers) + 1))
        for place, number in enumerate(numbers):
            entries[number] = (place - (len(numbers) - 1) / 2) * gap
    return entries


def _lines(box: Box) -> tuple[str, str]:
    if box.is_end:
        return box.name, "input" if box.role is Role.INPUT else "output"
    return box.name, box.title


def _width(box: Box) -> float:
    name, title = _lines(box)
    return max(72.0, 22 + max(len(name) * (_CHARACTER + 0.9), len(title) * (_CHARACTER - 0.6)))


def _head(name: str, colour: str) -> str:
    return (
        f'<defs><marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" '
        f'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker></defs>'
    )


def _band(number: int, label: str, sizes: tuple[float, float, float]) -> str:
    top, bottom, width = sizes
    shade = "#f7f8fa" if number % 2 == 0 else "#eff1f5"
    return (
        f'<rect x="0" y="{top:.1f}" width="{width:.0f}" height="{bottom - top:.1f}" '
        f'fill="{shade}"/>'
        f'<text class="band" x="10" y="{top + 16:.1f}">{escape(label)}</text>'
    )


def _box(box: Box, place: BoxPlace, width: float) -> str:
    fill, stroke = _FILL[box.role]
    x, y = place.x - width / 2, place.y - _HEIGHT / 2
    radius = 20 if box.is_end else 6
    name, title = _lines(box)
    return (
        f'<g><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT:.0f}" '
        f'rx="{radius}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="1.3"/>'
        f'<text class="name" x="{place.x:.1f}" y="{place.y - 3:.1f}" text-anchor="middle">'
        f"{escape(name)}</text>"
        f'<text class="title" x="{place.x:.1f}" y="{place.y + 13:.1f}" text-anchor="middle">'
        f"{escape(title)}</text></g>"
    )


def _arrow(route: Route, layout: Layout, entry: float) -> str:
    arrow = route.arrow
    points = list(route.points)
    half = _HEIGHT / 2
    if arrow.source == arrow.target:
        place = layout.places[arrow.source]
        path = (
            f"M{place.x + 20:.1f},{place.y + half:.1f} c0,34 70,34 70,-{half:.0f} "
            f"s-70,-{half + 34:.0f} -70,-{half:.0f}"
        )
    else:
        way = -1 if route.back else 1
        (x0, y0), (x1, y1) = points[0], points[-1]
        points[0], points[-1] = (x0, y0 + way * half), (x1 + entry, y1 - way * (half + 2))
        path = _curve(points)
    late = arrow.late or route.back
    dash = ' stroke-dasharray="5 4"' if arrow.late else ""
    colour = "#b0562f" if late else "#5b616b"
    weight = 2.2 if arrow.waits else 1.3
    marker = "late" if late else "fwd"
    drawn = (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{weight}"{dash} '
        f'marker-end="url(#{marker})"><title>{escape(arrow.type)}</title></path>'
    )
    if arrow.label:
        x, y = points[-1]
        drawn += f'<text class="port" x="{x + 5:.1f}" y="{y - 8:.1f}">{escape(arrow.label)}</text>'
    return drawn


def _curve(points: list[tuple[float, float]]) -> str:
    """A smooth line: between two points it leaves and arrives vertically."""
    path = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        path.append(f"C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}")
    return " ".join(path)
