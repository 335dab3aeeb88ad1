"""A flow's drawing as the UI can show it: an image inside markdown."""

from __future__ import annotations

import base64

from hydro_core.ir.render import Picture, picture_of, svg
from hydro_core.plan.tick_plan import TickPlan


def picture(plan: TickPlan) -> Picture:
    """What is drawn of a plan."""
    return picture_of(plan.graph, plan.strata.of, plan.typed.types)


def markdown(drawn: Picture) -> str:
    """Markdown with the drawing as an image; the UI shows no inline SVG and no mermaid."""
    data = base64.b64encode(svg(drawn).encode()).decode()
    return f"![{drawn.name}](data:image/svg+xml;base64,{data})"
