"""A flow's drawing as the UI can show it: an image inside markdown."""

from __future__ import annotations

import base64

from hydro_core.ir.render import picture_of, svg

from .shape import FlowShape


def drawing(shape: FlowShape) -> str:
    """Markdown with the program's drawing as an image; the UI shows no inline SVG and no
    mermaid.
    """
    picture = picture_of(shape.plan.graph, shape.plan.strata.of, shape.plan.typed.types)
    data = base64.b64encode(svg(picture).encode()).decode()
    return f"![{picture.name}](data:image/svg+xml;base64,{data})"
