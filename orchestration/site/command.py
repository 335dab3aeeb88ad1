"""`hydrotick docs [FLOW] --out DIR`: a page for each flow, and one that lists them.

It tells of a flow's deployment where there is one, else of its program as it is now. Neither Spark
nor Dagster is loaded, and no table is read: the ledger and the logs of tables tell how much there
is. Each page is whole by itself, styles and drawing inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hydro_core.analysis.lineage import ColumnDescriptions, described
from hydro_core.artifact.deployment import Deployment
from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.errors import HydroError, Span
from hydro_core.ir.graph import Node
from hydro_core.ir.render import Picture, picture_of, svg
from hydro_core.ir.render.layout import title
from hydro_core.lang.comments import Comments
from hydro_core.machine.faults import raise_outage, written_at
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.storage.remote import local_path

from ..deploy.deployments import fitted, untried_deployment
from ..project import project
from ..project.console import flow_named
from ..project.shape import FlowShape, shape_of
from ..quality.suites import checks_of
from ..runner.runner import TickRunner

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class TableSize:
    rows: int
    bytes: int
    files: int


def sizes_of(ledger: Ledger) -> Mapping[str, TableSize]:
    """The sizes of a pipeline's tables, by their assets: an output, or "state/NAME".

    What its last commit names is read at the version that it names: it alone has happened.
    """
    from deltalake.exceptions import DeltaError

    from hydro_core.storage.delta import data_files, opened_table

    commit, found = ledger.last, {}
    if commit is None:
        return {}
    for name, record in commit.tables.items():
        try:
            table = opened_table(ledger.directory / name, commit.versions.get(name))
        except DeltaError as error:
            raise_outage(error, str(ledger.directory))
            # A table that is not there is told by what runs next.
            continue
        files = data_files(table, "size_bytes", "num_records")
        size = TableSize(
            sum(file["num_records"] or 0 for file in files),
            sum(file["size_bytes"] for file in files),
            len(files),
        )
        found[f"state/{record['of']}" if record["role"] == "state" else record["of"]] = size
    return found


@dataclass(frozen=True, slots=True)
class FlowPage:
    flow: FlowAsset
    about: str
    deployed: int | None
    """The number of the deployment; None: it would be the first."""
    undeployed: str
    """Changes of the program that are not deployed."""
    deployment: Deployment
    shape: FlowShape
    picture: Picture
    comments: Comments
    columns: ColumnDescriptions
    """Descriptions of the columns of inputs and outputs."""
    last: str | None
    """The key of the last committed tick."""
    sizes: Mapping[str, TableSize]
    """How much there is of each asset's table."""
    checks: Mapping[str, Mapping[str, str]]
    """The checks of each asset, each with what it says."""

    @property
    def plan(self) -> TickPlan:
        return self.deployment.plan

    @property
    def rules(self) -> Mapping[str, str]:
        """How each output's plan was found, by the output."""
        sinks = {sink.id: name for name, all_ in self.plan.graph.sinks.items() for sink in all_}
        explained = self.deployment.explanation.items()
        return {sinks[node]: text for node, text in explained if node in sinks}

    def place(self, name: str) -> Span | None:
        return self.plan.graph.sources[name].span


def page_of_flow(flow: FlowAsset, runner: TickRunner) -> FlowPage:
    """What there is to tell of a flow.

    Raises:
        HydroError: its program, or its stored state, is wrong.
    """
    deployments = runner.deployments
    shown = deployments.active_or_draft(flow)
    made = untried_deployment(flow) if shown is None else shown.deployment
    plan = made.plan
    ledger, shape, comments = deployments.ledger(flow), shape_of(plan), Comments(made.program.texts)
    flow, last = fitted(flow, plan), ledger.last_tick
    return FlowPage(
        flow=flow,
        about=flow.description or comments.head,
        deployed=None if shown is None else shown.number,
        undeployed=deployments.undeployed(flow).says,
        deployment=made,
        shape=shape,
        picture=picture_of(plan.graph, plan.strata.of, plan.typed.types),
        comments=comments,
        columns=described(made.program.typed, comments),
        last=None if last is None else flow.ticks.calendar.window(last).key,
        sizes=sizes_of(ledger),
        checks=checks_of(flow, shape, runner.sampled(flow)),
    )


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
            for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)
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


def docs(options: Asked) -> Result:
    found, out = project.current(), local_path(options.out)
    wanted = [flow_named(options.flow, found)] if options.flow else list(found.flows)
    broken = [] if options.flow else [(flow.name, flow.error) for flow in found.broken]
    made = {}
    runner = TickRunner(found.settings)
    for flow in wanted:
        try:
            made[flow.name] = page_of_flow(flow, runner)
        except HydroError as error:
            if options.flow:
                raise
            broken.append((flow.name, error))
    pages = {f"{name}.html": page(one) for name, one in made.items()}
    pages["index.html"] = index(list(made.values()), broken)
    with written_at(out, "--out"):
        out.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (out / name).write_text(text, encoding="utf-8")
    files = [str(out / name) for name in pages]
    wrong = {name: error.as_json() for name, error in broken}
    record = {"out": str(out), "files": files, "broken": wrong}
    return Result(record, files, int(bool(broken)), (f"{name}: {error}" for name, error in broken))
