"""The picture for a terminal: a line per operator, grouped by stratum, with what it reads."""

from __future__ import annotations

from hydro_core.ir.render.picture import Arrow, Picture


def text(picture: Picture) -> str:
    """Strata in order; each operator with its arguments and, after `<-`, what it reads."""
    names = {box.id: box.name for box in picture.boxes}
    width = max((len(box.name) for box in picture.boxes), default=0)
    reads: dict[str, list[Arrow]] = {}
    for arrow in picture.arrows:
        reads.setdefault(arrow.target, []).append(arrow)
    lines = []
    for stratum in picture.strata:
        lines.append(picture.label(stratum))
        for box in picture.boxes:
            if box.stratum == stratum:
                inputs = ", ".join(_read(a, names[a.source]) for a in reads.get(box.id, ()))
                title = box.role.value if box.is_end else box.title
                lines.append(f"  {box.name:<{width}}  {title}{f'  <- {inputs}' if inputs else ''}")
    return "\n".join(lines) + "\n"


def _read(arrow: Arrow, source: str) -> str:
    mark = " (a tick later)" if arrow.late else " (complete)" if arrow.waits else ""
    return f"{f'[{arrow.label}] ' if arrow.label else ''}{source}{mark}"
