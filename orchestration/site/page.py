"""The pages as HTML: each is whole by itself, styles and drawing inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.errors import HydroError, Span
from hydro_core.ir.graph import Node
from hydro_core.ir.render import svg
from hydro_core.ir.render.picture import title
from hydro_core.project.flow_asset import FlowOutput

from ..project.shape import ColumnTypes, OutputShape, StateShape
from .content import Told
from .sizes import TableSize

_ENDS = {SOURCE: "input", SINK: "output"}
_SAID = "what it is"
_UNITS = ("B", "kB", "MB", "GB", "TB")


def index(flows: Sequence[Told], broken: Sequence[tuple[str, HydroError]] = ()) -> str:
    """The page that lists flows, and those that are wrong."""
    rows = [
        [
            f'<a href="{escape(one.flow.name)}.html">{escape(one.flow.name)}</a>',
            escape(one.about),
            ", ".join(escape(name) for name in one.plan.graph.sinks),
            escape(one.last or "–"),
        ]
        for one in flows
    ]
    wrong = [f"<h3>{escape(name)}</h3>{_pre(str(error))}" for name, error in broken]
    if wrong:
        wrong = ["<h2>Flows that cannot run</h2>", *wrong]
    head = ["flow", "what it is", "outputs", "last tick"]
    return _document("Flows", "<h1>Flows</h1>" + _table(head, rows) + "".join(wrong))


def page(one: Told) -> str:
    """The page of a flow."""
    flow = one.flow
    parts = [
        f'<nav><a href="index.html">all flows</a> {_contents()}</nav>',
        f"<h1>{escape(flow.name)}</h1>",
        f"<p class=about>{escape(one.about)}</p>" if one.about else "",
        _facts(one),
        _section("drawing", f"<div class=drawing>{svg(one.picture)}</div>"),
        _section(
            "program",
            "<p>Each line of the program, and what the plan does for it.</p>"
            + "".join(_side_by_side(one)),
        ),
        _section("inputs", _inputs(one)),
        _section("outputs", "".join(_output(one, output) for output in one.shape.outputs)),
        _section("state", _states(one)),
        _section("cost", _cost(one)),
        _section("checks", _checks(one)),
    ]
    return _document(flow.name, "\n".join(parts))


_SECTIONS: Mapping[str, str] = {
    "drawing": "Drawing",
    "program": "Program and plan",
    "inputs": "Inputs",
    "outputs": "Outputs and their columns",
    "state": "State",
    "cost": "Cost",
    "checks": "Checks",
}


def _contents() -> str:
    return " ".join(f'<a href="#{name}">{title_}</a>' for name, title_ in _SECTIONS.items())


def _section(name: str, inside: str) -> str:
    return f'<section id="{name}"><h2>{_SECTIONS[name]}</h2>{inside}</section>'


def _facts(one: Told) -> str:
    ticks = one.flow.ticks
    begin = ticks.calendar.shown(ticks.calendar.origin)
    end = f" to {ticks.calendar.shown(ticks.calendar.last)}" if ticks.calendar.last else ""
    delay = f", {ticks.delay} after its end" if ticks.delay else ""
    number = "none yet: this is what the first tick deploys"
    facts = {
        "ticks": f"every {ticks.every} from {begin}{end}{delay}",
        "last tick": one.last or "none is committed",
        "deployment": number if one.deployed is None else str(one.deployed),
        "in shards": one.deployment.sharding.says if one.deployment.sharding else "",
        "not deployed": one.undeployed,
        "owners": ", ".join(one.flow.owners),
    }
    rows = [f"<dt>{name}</dt><dd>{escape(says)}</dd>" for name, says in facts.items() if says]
    return f"<dl>{''.join(rows)}</dl>"


def _side_by_side(one: Told) -> Iterator[str]:
    """The lines of the program, each beside the operators of the plan that stand there."""
    of_line: dict[tuple[str, int], list[Node]] = {}
    for node in one.plan.graph:
        of_line.setdefault(_line(node.span), []).append(node)
    for name, text in one.deployment.program.texts.items():
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            nodes = of_line.pop((name, number), [])
            kind = " class=comment" if line.lstrip().startswith(("#", "//")) else ""
            rows.append(
                f'<tr id="{_anchor(name, number)}"><th>{number}</th><td{kind}>{escape(line)}</td>'
                f"<td>{''.join(_operator(one, node) for node in nodes)}</td></tr>"
            )
        yield f"<table class=code><caption>{escape(name)}</caption>{''.join(rows)}</table>"
    left = [node for nodes in of_line.values() for node in nodes]
    if left:
        rows = [f"<tr><th></th><td></td><td>{_operator(one, node)}</td></tr>" for node in left]
        yield f"<table class=code>{''.join(rows)}</table>"


def _operator(one: Told, node: Node) -> str:
    read = ", ".join(map(str, node.inputs))
    stratum = one.plan.strata.of[node.id]
    label = escape(one.picture.label(stratum))
    what = _ENDS.get(node.op) or title(node)
    name = str(node.args["name"]) if node.op in _ENDS else node.id
    return (
        f'<div title="{label}"><i>{stratum}</i><b>{escape(name)}</b> {escape(what)}'
        f"{f' <span>← {escape(read)}</span>' if read else ''}</div>"
    )


def _inputs(one: Told) -> str:
    parts = []
    for name, columns in one.shape.inputs.items():
        where = one.flow.inputs[name]
        if isinstance(where, FlowOutput):
            link = f'<a href="{escape(where.flow)}.html#output-{escape(where.output)}">'
            lands = f"{link}{_code(str(where))}</a>"
        else:
            by = (
                f"cut into ticks by <code>{escape(where.column)}</code>"
                if where.column
                else "whole"
            )
            waits = ", waited for" if where.wait == "landed" else ""
            lands = f"<code>{escape(str(where.path))}</code>, {by}{waits}; late rows: {where.late}"
        said = one.comments.of(one.place(name))
        about = "" if said == one.comments.head else said
        says = one.columns.inputs[name]
        head = ["column", "type", *([_SAID] if says else [])]
        rows = [
            [
                f'<code id="input-{escape(name)}.{escape(c)}">{escape(c)}</code>',
                f"<code>{escape(k)}</code>",
                *([escape(says.get(c, ""))] if says else []),
            ]
            for c, k in columns
        ]
        parts.append(
            f'<h3 id="input-{escape(name)}">{escape(name)} {_at(one.place(name))}</h3>'
            f"<p>{escape(about)}</p><p>{lands}</p>{_table(head, rows)}"
        )
    return "".join(parts)


def _output(one: Told, output: OutputShape) -> str:
    said = one.flow.outputs.get(output.name) or one.comments.of(output.place)
    says = one.columns.outputs[output.name]
    rows = [
        [
            f"<code>{escape(name)}</code>",
            f"<code>{escape(kind)}</code>",
            *([escape(says.get(name, ""))] if says else []),
            _sources(output, name),
        ]
        for name, kind in output.columns
    ]
    head = ["column", "type", *([_SAID] if says else []), "where it comes from"]
    return (
        f'<h3 id="output-{escape(output.name)}">{escape(output.name)} {_at(output.place)}</h3>'
        f"<p>{escape(said)}</p>{_amount(one.sizes.get(output.name))}"
        f"{_table(head, rows)}"
    )


def _sources(output: OutputShape, column: str) -> str:
    sources = output.sources.get(column)
    if sources is None:
        return "the number of the tick" if column == "tick" else "the place within the tick"
    if not sources:
        return "no column"
    links = [
        f'<a href="#input-{escape(name)}.{escape(field)}">{escape(name)}.{escape(field)}</a>'
        for name, field in sources
    ]
    return ("computed from " if column in output.changed else "") + ", ".join(links)


def _states(one: Told) -> str:
    if not one.shape.states:
        return "<p>None: every tick is computed from what arrives with it.</p>"
    rows = [_state(one, state) for state in one.shape.states]
    return _table(["state", "what it keeps", "written by", "read by", "stored rows", "size"], rows)


def _state(one: Told, state: StateShape) -> list[str]:
    size = one.sizes.get(f"state/{state.name}")
    said = one.comments.of_any(reversed(state.places))
    kept = "<br>".join(_code(text) for text in (said, state.says) if text)
    return [
        f"<b>{escape(state.name)}</b>",
        f"{kept}<br>{_kinds(state.columns)}",
        _code(state.written_by),
        _code(", ".join(state.read_by)),
        f"{size.rows:,}" if size else "–",
        _bytes(size.bytes) if size else "–",
    ]


def _kinds(columns: ColumnTypes) -> str:
    kind = dict(columns)["item"]
    return f"<code class=kind>{escape(kind)}</code>"


def _cost(one: Told) -> str:
    made = one.deployment
    before, after = made.costs.before, made.costs.after
    says = f"A tick costs about {after:,.0f} rows by the model; as written, {before:,.0f}."
    notes = "".join(_pre(note) for note in made.notes)
    rules = "".join(_details(f"the rules to {name}", text) for name, text in one.rules.items())
    shards = _details("how it can be cut into shards", made.routing) if made.routing else ""
    return f"<p>{says}</p>{f'<h3>Not incremental</h3>{notes}' if notes else ''}{rules}{shards}"


def _checks(one: Told) -> str:
    rows = [
        [escape(asset), f"<code>{escape(name)}</code>", _code(says)]
        for asset, checks in one.checks.items()
        for name, says in checks.items()
    ]
    says = "<p>All must hold before a tick commits, but those of what landed, which warn.</p>"
    return says + _table(["of", "check", "what must hold"], rows)


def _amount(size: TableSize | None) -> str:
    if size is None:
        return ""
    rows, files = _counted(size.rows, "row"), _counted(size.files, "file")
    return f"<p>{rows} in {files} of {_bytes(size.bytes)}.</p>"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _bytes(count: int) -> str:
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def _line(place: Span | None) -> tuple[str, int]:
    return ("", 0) if place is None else (place.file.rpartition("/")[2], place.line)


def _anchor(name: str, line: int) -> str:
    return escape(f"{name}-{line}")


def _at(place: Span | None) -> str:
    if place is None:
        return ""
    name, line = _line(place)
    return f'<a class=at href="#{_anchor(name, line)}">{escape(name)}:{line}</a>'


def _code(text: str) -> str:
    """Words in backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


def _details(name: str, text: str) -> str:
    return f"<details><summary>{escape(name)}</summary>{_pre(text)}</details>"


def _pre(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _document(name: str, body: str) -> str:
    style = (files(__package__) / "site.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>{style}</style></head>\n<body>{body}</body></html>\n"
    )
