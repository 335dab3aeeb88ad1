"""The picture as texts: for a terminal, in mermaid's and Graphviz's languages, and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hydro_core.ir.render.picture import Arrow, Box, Picture, Role

_MERMAID = {Role.INPUT: ('[/"', '"/]'), Role.OUTPUT: ('[\\"', '"\\]'), Role.STATE: ('[("', '")]')}
_DOT = {
    Role.INPUT: "invhouse",
    Role.OUTPUT: "house",
    Role.STATE: "cylinder",
    Role.OPERATOR: "box",
}


def text(picture: Picture) -> str:
    """Strata in order; each operator with its arguments and, after `<-`, what it reads."""
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
