"""Mermaid: a flowchart with a subgraph for each stratum."""

from __future__ import annotations

from hydro_core.ir.render.picture import Arrow, Box, Picture, Role

_SHAPES = {Role.INPUT: ('[/"', '"/]'), Role.OUTPUT: ('[\\"', '"\\]'), Role.STATE: ('[("', '")]')}


def mermaid(picture: Picture) -> str:
    """The picture in mermaid's language, a line per box and arrow."""
    ids = {box.id: f"n{i}" for i, box in enumerate(picture.boxes)}
    lines = ["flowchart TD"]
    for stratum in picture.strata:
        lines.append(f'  subgraph stratum_{stratum}["{_escape(picture.label(stratum))}"]')
        lines += [f"    {_box(ids[b.id], b)}" for b in picture.boxes if b.stratum == stratum]
        lines.append("  end")
    lines += [f"  {_arrow(ids[a.source], ids[a.target], a)}" for a in picture.arrows]
    return "\n".join(lines) + "\n"


def _box(id_: str, box: Box) -> str:
    left, right = _SHAPES.get(box.role, ('["', '"]'))
    text = _escape(box.title if box.name == box.title else f"{box.name}: {box.title}")
    if box.is_end:
        text = _escape(box.name)
    return f"{id_}{left}{text}{right}"


def _arrow(source: str, target: str, arrow: Arrow) -> str:
    line = "-.->" if arrow.late else "==>" if arrow.waits else "-->"
    label = f'|"{_escape(arrow.label)}"|' if arrow.label else ""
    return f"{source} {line}{label} {target}"


def _escape(text: str) -> str:
    return (
        text.replace("&", "&amp;")
        .replace('"', "&quot;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\n", " ")
    )
