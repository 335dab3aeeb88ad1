"""`hydrotick plan`, `deploy`, `rollback`: what a changed program would do, doing it, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.files import WrittenDeployment
from hydro_core.cli.command import Asked
from hydro_core.cli.output import print_error
from hydro_core.errors import in_a_line
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.report import assumed_of
from hydro_core.program_change.difference import ChangedOutput, ChangedState
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.item import Row

from ..flows.landed_past import rows_read
from ..project import project
from ..project.console import Console, asked_flow, telling_computed
from ..runner.ranges import OnComputed, with_another_jvm
from ..runner.runner import TickRunner
from ..takeover.changes import Change, DeployOptions, change_of, read_by
from ..takeover.deploying import before, compare, roll_back
from ..takeover.deploying import deploy as take_over

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.store.ledger.commit import Commit


NOTHING, CHANGES = 0, 3
"""Exit codes of `plan`; 1 says that the program cannot be deployed."""


def plan(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    if runner.deployments.serving(flow) is None:
        first = runner.deployments.first(flow)
        console.give(first_as_json(flow, first), first_as_text(flow, first))
        return CHANGES
    found = _planned(flow, runner, options)
    if found is None:
        console.give(nothing_as_json(flow, runner), _nothing(flow))
        return NOTHING
    console.give(as_json(found, runner), as_text(found, runner))
    return NOTHING if found.resumes_alike else CHANGES


def deploy(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    if runner.deployments.serving(flow) is None:
        first = runner.deployments.prepared(flow)
        console.give(first_as_json(flow, first), first_as_text(flow, first))
        return 0
    found = _planned(flow, runner, options)
    if found is None:
        console.give(nothing_as_json(flow, runner), _nothing(flow))
        return 0
    # What was planned is told as it was, and not as it is when it is done.
    plan_of = as_json(found, runner)
    console.say(as_text(found, runner).rstrip())
    if not console.agreed():
        return 1
    commit, spent = _done(flow, runner, console, partial(take_over, found, runner))
    number = runner.deployments.prepared(flow).number
    said = f"{flow.name}: deployment {number} serves after {spent:.1f} s"
    console.say(f"{said} (commit {commit.sequence})")
    console.say("  Reload the code location in the Dagster UI to see its assets.")
    console.give({**plan_of, "serves": number, "commit": commit.sequence})
    return 0


def rollback(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    to = before(flow, runner)
    window = flow.ticks.calendar.window
    since = to.last + 1 - to.first
    console.say(f"{flow.name}: deployment {to.serving.number} → {to.target.number}")
    again = f"{window(to.first).key} to {window(to.last).key}" if since else "no tick"
    tables = f"its tables are those of tick {window(to.commit.last).key}"
    console.say(f"  {tables}; {again} computed again")
    if to.first <= to.commit.last:
        first, last = window(to.first).key, window(to.commit.last).key
        console.say(
            f"  {first} to {last} were corrected since, so its tables of these do not serve"
        )
    if not console.agreed():
        return 1
    commit, spent = _done(flow, runner, console, partial(roll_back, flow, runner, to))
    serves = f"deployment {to.target.number} serves again after {spent:.1f} s"
    console.say(f"{flow.name}: {serves} (commit {commit.sequence})")
    undeployed = runner.deployments.undeployed(flow).says
    if undeployed:
        console.say(f"  {undeployed}: `hydrotick deploy {flow.name}` would deploy it again")
    console.give(
        {
            "flow": flow.name,
            "before": to.serving.number,
            "serves": to.target.number,
            "computed_again": since,
            "commit": commit.sequence,
        }
    )
    return 0


def _done(
    flow: FlowAsset, runner: TickRunner, console: Console, work: Callable[[OnComputed], Commit]
) -> tuple[Commit, float]:
    """Has another deployment serve; gives the commit that did it, and the seconds that it took."""
    # Imported here: `plan` does without the second that Dagster takes.
    from .backfill import record_deployed

    began = time.monotonic()
    progress = telling_computed(console.say, runner.next_tick(flow))
    commit = with_another_jvm(lambda: work(progress), console.say)
    record_deployed(flow, runner)
    return commit, time.monotonic() - began


def _planned(flow: FlowAsset, runner: TickRunner, options: Asked) -> Change | None:
    first = flow.ticks.calendar.window_of(options.first) if options.first else None
    found = change_of(flow, runner, DeployOptions(first, options.forward_only, options.from_now))
    if found is not None and any(o.change == "gone" for o in found.difference.outputs.values()):
        found = replace(found, read_by=read_by(found, project.current().flows))
    if found is None or options.compare is None:
        return found
    progress = telling_computed(print_error, runner.next_tick(flow))
    ticks: int = options.compare
    compared = with_another_jvm(lambda: compare(found, runner, ticks, progress), print_error)
    return replace(found, compared=compared)


def _nothing(flow: FlowAsset) -> str:
    return f"{flow.name}: nothing to deploy: the program is the one that serves\n"


def as_json(change: Change, runner: TickRunner) -> dict[str, Any]:
    """What `hydrotick plan --format json` prints."""
    found = change.difference
    return _object(
        change.flow,
        (change.serving.number, change.target),
        change.last.key,
        {
            name: _said(
                output.change,
                found.proofs.get(name, ()),
                restated=[window.key for window in change.restated(name) or ()] or None,
                compared=asdict(change.compared[name]) if name in change.compared else None,
            )
            for name, output in found.outputs.items()
        },
        {
            name: {
                "change": _changed(change, name, state),
                "from": _made_from(change, name, state),
                "rows": _rows(change, runner, name, state),
            }
            for name, state in found.states.items()
        },
        _costs(change),
    ) | {"notes": list(change.notes)}


def first_as_json(flow: FlowAsset, first: WrittenDeployment) -> dict[str, Any]:
    """The same where no deployment serves yet."""
    made = first.deployment
    return _object(
        flow,
        (None, first),
        None,
        {name: _said("new") for name in made.plan.graph.sinks},
        {slot.id: {"change": "empty", "from": [], "rows": 0} for slot in made.plan.slots},
        (made.costs.before, made.costs.after),
    )


def nothing_as_json(flow: FlowAsset, runner: TickRunner) -> dict[str, Any]:
    """The same where the program is the one that serves."""
    serving = runner.deployments.prepared(flow)
    pipeline, done = runner.pipeline(flow), runner.next_tick(flow)
    made = serving.deployment
    return _object(
        flow,
        (serving.number, serving),
        flow.ticks.calendar.window(done - 1).key if done else None,
        {name: _said("same", ("the program says the same",)) for name in made.plan.graph.sinks},
        {
            slot: {"change": "kept", "from": [f"state/{slot}"], "rows": _stored(pipeline, s.name)}
            for slot, s in pipeline.state_tables.items()
        },
        (made.costs.after, made.costs.after),
    )


def _object(
    flow: FlowAsset,
    deployments: tuple[int | None, WrittenDeployment],
    after: str | None,
    outputs: Mapping[str, Any],
    states: Mapping[str, Any],
    costs: tuple[float, float],
) -> dict[str, Any]:
    """`deployments`: the number of the one that serves, and the one that would."""
    deployed, target = deployments
    return {
        "flow": flow.name,
        "deployed": deployed,
        "next": target.number,
        "after": after,
        "outputs": dict(outputs),
        "states": dict(states),
        "cost": {"before": costs[0], "after": costs[1]},
        "notes": list(target.deployment.notes),
    }


def _said(
    change: str,
    proof: Iterable[str] = (),
    *,
    restated: list[str] | None = None,
    compared: dict[str, int] | None = None,
) -> dict[str, Any]:
    return {"change": change, "proof": list(proof), "restated": restated, "compared": compared}


def first_as_text(flow: FlowAsset, first: WrittenDeployment) -> str:
    made = first.deployment
    slots = [f"{slot.id}: the items of `{slot.stream}`" for slot in made.plan.slots]
    lines = [f"{flow.name}: deployment {first.number}, which its first tick makes serve:"]
    lines += [f"  hydrotick backfill {flow.name}", ""]
    lines += _section("outputs", list(map(in_a_line, made.plan.graph.sinks)))
    lines += _section("states", slots or ["none"])
    lines += _section("cost", [_cost(made.costs.before, made.costs.after, "as written")])
    lines += _shards(made)
    return "\n".join([*lines, *_section("notes", _notes(made.notes))]) + "\n"


def as_text(change: Change, runner: TickRunner) -> str:
    """What a reviewer needs before saying yes."""
    last, ticks = change.last.key, change.commit.last + 1
    head = f"{change.flow.name}: deployment {change.serving.number} → {change.target.number}"
    lines = [f"{head}, after tick {last} ({ticks:,} tick(s))", ""]
    outputs, states = change.difference.outputs.items(), change.difference.states.items()
    lines += _section("outputs", _aligned({n: _output(change, n, of) for n, of in outputs}))
    said = _aligned({n: _state(change, runner, n, of) for n, of in states})
    lines += _section("states", said or ["none"])
    made = change.target.deployment
    # What earlier ticks say of the data, where the plan was chosen by it.
    stats = made.costs.statistics
    known = [assumed_of(list(made.plan.graph.sources), Statistics.of(stats))] if stats else []
    lines += _section("cost", [_cost(*_costs(change), "before"), *known])
    lines += _shards(made)
    lines += _section("notes", _notes(change.notes))
    if change.is_nothing:
        lines += ["", "  No table changes: it would be deployed without computing anything."]
    return "\n".join(lines) + "\n"


def _shards(made: Deployment) -> list[str]:
    return [] if made.sharding is None else _section("shards", [made.sharding.says])


def _cost(before: float, after: float, was: str) -> str:
    return f"a tick costs about {after:,.0f} rows ({was}: {before:,.0f})"


def _notes(notes: Iterable[str]) -> list[str]:
    # They begin with their place, which is stored with the whole path of the file.
    here = f"{Path.cwd()}/"
    lines = [line.removeprefix(here) for note in notes for line in note.splitlines()]
    return lines or ["all of it is incremental"]


def _section(title: str, rows: list[str]) -> list[str]:
    return [f"  {title if not i else '':<9} {row}" for i, row in enumerate(rows)]


def _aligned(said: Mapping[str, str]) -> list[str]:
    shown = {in_a_line(name): says for name, says in said.items()}
    width = max(map(len, shown), default=0)
    return [f"{name:<{width}}  {says}" for name, says in shown.items()]


def _output(change: Change, name: str, output: ChangedOutput) -> str:
    if output.change == "gone":
        return "gone; its table is there for `hydrotick rollback`"
    says: str = output.change
    item = change.target.deployment.plan.typed.outputs[name].item
    if output.columns and isinstance(item, Row):
        now = {*item.names}
        done = (f"`{c}` {'added' if c in now else 'dropped'}" for c in output.columns)
        says = f"{output.change}: {', '.join(done)}"
    proof = change.difference.proofs.get(name, ())
    # The names of rules, which docs/rules.md lists; what each says is in the JSON.
    proved = f" (proved: {', '.join(step.partition(':')[0] for step in proof)})" if proof else ""
    parts = [f"{says}{proved}"]
    restated = change.restated(name)
    if restated is not None:
        first, last = restated
        ticks = last.tick - first.tick + 1
        parts.append(f"{ticks:,} tick(s) restated, from {first.key}")
    elif name in change.begun:
        parts.append("starts empty")
    elif name in change.since:
        parts.append("its past stays as it is")
    if name in change.compared:
        parts.append(f"compared: {change.compared[name]}")
    return "; ".join(parts)


def _state(change: Change, runner: TickRunner, name: str, state: ChangedState) -> str:
    rows = _rows(change, runner, name, state)
    counted = "" if rows is None else f", {rows:,} row(s)"
    match _changed(change, name, state):
        case "kept":
            return f"kept{f', was `{state.was}`' if state.was else ''}{counted}"
        case "dropped":
            return f"dropped{counted}; it is there for `hydrotick rollback`"
        case "empty":
            return "starts empty: the landed past is not there"
        case made:
            listed = ", ".join(f"`{one}`" for one in _made_from(change, name, state))
            return f"{made} from {listed}{f'{counted} read' if counted else ''}"


def _changed(change: Change, name: str, state: ChangedState) -> str:
    return "empty" if name in change.empty else state.change


def _made_from(change: Change, name: str, state: ChangedState) -> list[str]:
    """The states, outputs and landings that a state comes from, by their names."""
    if name in change.empty:
        return []
    of = {t.name: f"state/{t.of}" if t.role == "state" else t.of for t in change.difference.tables}
    tables = (state.table,) if state.change == "kept" and state.table else state.tables
    return [*(of[table] for table in tables), *(f"landing/{one}" for one in state.inputs)]


def _rows(change: Change, runner: TickRunner, name: str, state: ChangedState) -> int | None:
    """The rows of a table, or those that are read to make it; None: not known."""
    if name in change.empty:
        return 0
    pipeline = runner.pipeline(change.flow)
    if state.change in ("kept", "dropped"):
        return _stored(pipeline, state.table) if state.table else 0
    read: Mapping[str, int] = rows_read(pipeline.ledger.commits(), 0) if state.inputs else {}
    if any(one not in read for one in state.inputs):
        return None
    stored = [_stored(pipeline, table) for table in state.tables]
    return sum(stored) + sum(read[one] for one in state.inputs)


def _stored(pipeline: Pipeline, table: str) -> int:
    pipeline.store.check(pipeline.ledger.last)
    return pipeline.store.row_count(table)


def _costs(change: Change) -> tuple[float, float]:
    return change.serving.deployment.costs.after, change.target.deployment.costs.after
