"""Graphviz's language: a cluster for each stratum."""

from __future__ import annotations

from hydro_core.ir.render.picture import Arrow, Box, Picture, Role

_SHAPES = {
    Role.INPUT: "invhouse",
    Role.OUTPUT: "house",
    Role.STATE: "cylinder",
    Role.OPERATOR: "box",
}


def dot(picture: Picture) -> str:
    """The picture as a digraph."""
    lines = [f"digraph {_quote(picture.name)} {{", '  node [fontname="Helvetica", fontsize=10];']
    for stratum in picture.strata:
        lines.append(f"  subgraph cluster_{stratum} {{")
        lines.append(f"    label={_quote(picture.label(stratum))}; style=rounded; color=gray;")
        lines += [f"    {_box(b)}" for b in picture.boxes if b.stratum == stratum]
        lines.append("  }")
    lines += [f"  {_arrow(a)}" for a in picture.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _box(box: Box) -> str:
    label = box.name if box.is_end else f"{box.name}\n{box.title}"
    return f"{_quote(box.id)} [label={_quote(label)}, shape={_SHAPES[box.role]}];"


def _arrow(arrow: Arrow) -> str:
    wanted = {
        "label": _quote(arrow.label) if arrow.label else "",
        "tooltip": _quote(arrow.type) if arrow.type else "",
        "style": "dashed" if arrow.late else "bold" if arrow.waits else "",
    }
    attributes = ", ".join(f"{name}={value}" for name, value in wanted.items() if value)
    tail = f" [{attributes}]" if attributes else ""
    return f"{_quote(arrow.source)} -> {_quote(arrow.target)}{tail};"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
