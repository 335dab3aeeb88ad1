"""The pages as HTML: each is whole by itself, styles and drawing inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.errors import HydroError, Span
from hydro_core.ir.graph import Node
from hydro_core.ir.render import svg
from hydro_core.ir.render.picture import title

from .content import FlowPage

_ENDS = {SOURCE: "input", SINK: "output"}
_UNITS = ("B", "kB", "MB", "GB", "TB")

ProgramLine = tuple[str, Sequence[Node]]
"""A line of a program, and the operators of the plan that stand there."""


def index(flows: Sequence[FlowPage], broken: Sequence[tuple[str, HydroError]] = ()) -> str:
    """The page that lists flows, and those that are wrong."""
    return _templates().get_template("index.html").render(title="Flows", flows=flows, broken=broken)


def page(one: FlowPage) -> str:
    return (
        _templates()
        .get_template("page.html")
        .render(
            title=one.flow.name,
            one=one,
            facts=_facts(one),
            texts=_texts(one),
            # It is markup already: what it shows of the program is escaped where it is drawn.
            drawing=Markup(svg(one.picture)),  # noqa: S704
        )
    )


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("hydrotick.site", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(bytes=_bytes, code=_code)
    made.globals.update(ends=_ENDS, operator_title=title)
    return made


def _facts(one: FlowPage) -> Mapping[str, str]:
    ticks = one.flow.ticks
    begin = ticks.calendar.shown(ticks.calendar.origin)
    end = f" to {ticks.calendar.shown(ticks.calendar.last)}" if ticks.calendar.last else ""
    delay = f", {ticks.delay} after its end" if ticks.delay else ""
    number = "none yet: this is what the first tick deploys"
    return {
        "ticks": f"every {ticks.every} from {begin}{end}{delay}",
        "last tick": one.last or "none is committed",
        "deployment": number if one.deployed is None else str(one.deployed),
        "in shards": one.deployment.sharding.says if one.deployment.sharding else "",
        "not deployed": one.undeployed,
        "owners": ", ".join(one.flow.owners),
    }


def _texts(one: FlowPage) -> Mapping[str, Sequence[ProgramLine]]:
    """The lines of the program's files; without a name, those of operators that stand nowhere."""
    of_line: dict[tuple[str, int], list[Node]] = {}
    for node in one.plan.graph:
        of_line.setdefault(_line(node.span), []).append(node)
    texts = {
        name: [
            (line, of_line.pop((name, number), []))
            for number, line in enumerate(text.splitlines(), 1)
        ]
        for name, text in one.deployment.program.texts.items()
    }
    left: list[ProgramLine] = [("", [node]) for nodes in of_line.values() for node in nodes]
    return {**texts, "": left} if left else texts


def _line(place: Span | None) -> tuple[str, int]:
    return ("", 0) if place is None else (place.file.rpartition("/")[2], place.line)


def _bytes(count: int) -> str:
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def _code(text: object) -> Markup:
    """Words in backticks as code."""
    parts = escape(str(text)).split("`")
    return Markup().join(
        Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)
    )
