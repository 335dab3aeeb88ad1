"""`hydrotick forget`: all that a flow has of a person goes, and its history."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from hydro_core.analysis.partition.terms import is_exact
from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.storage.remote import RemotePath
from hydro_core.types.values import ValueProblem

from ..code_location.records import runs_with
from ..instance.opening import open_existing
from ..project import project
from ..project.console import Console, asked_flow, value_in, wrong_where
from ..runner.forgetting import ForgetPlan, WhoseRows, forget_plan
from ..runner.forgetting import forget as forget_rows
from ..runner.runner import TickRunner
from .backfill import record_deployed

_NOTHING, _REFUSED, _THERE = 0, 1, 3
_NAMED = 5


def forget(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    values = _values(flow, runner, options.where)
    plan = forget_plan(runner, flow, values)
    readers = list(_readers(flow))
    record = _as_json(plan, options.where, readers)
    lines = list(_lines(plan, options.where, readers))
    if options.dry_run:
        code = _NOTHING if plan.is_nothing else _THERE
        return Result({**record, "commit": None, "runs": []}, lines, code)
    plan.refuse_landed()
    console.say(*lines)
    console.say("There is no way back: earlier versions of its tables go, and what rollback needs.")
    if not console.agreed():
        return Result(code=_REFUSED)
    began = time.monotonic()
    commit = forget_rows(plan, console.say)
    if commit is not None:
        record_deployed(flow, runner)
    console.say(f"{flow.name}: forgotten in {time.monotonic() - began:.1f} s")
    # Numbers are in the records of all runs.
    texts = {value for _, value in values.values() if isinstance(value, str) and value}
    with open_existing(settings.dagster_home) as instance:
        runs = runs_with(flow, instance, texts) if texts and instance is not None else []
    if runs:
        listed = f"{', '.join(runs[:_NAMED])}{', …' if len(runs) > _NAMED else ''}"
        console.say(f"Dagster's records of {len(runs):,} run(s) have the value: {listed}")
        console.say("  `dagster run delete RUN` removes one.")
    in_store = isinstance(settings.pipelines, RemotePath)
    kept = ", versions of objects that the store keeps" if in_store else ""
    console.say(f"Copies, backups{kept} and logs are not reached.")
    return Result({**record, "commit": commit, "runs": runs})


def _values(flow: FlowAsset, runner: TickRunner, texts: Sequence[str]) -> WhoseRows:
    """The column and the value of each input that was asked for.

    Raises:
        DataError: no input has the column, or the value does not fit (code `config`).
    """
    inputs = {name: one.columns for name, one in runner.landings(flow).sources.items()}
    found: dict[str, tuple[str, Any]] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        of, dot, name = column.partition(".")
        named = [(of, name)] if dot and of in inputs else [(one, column) for one in inputs]
        there = [(one, name) for one, name in named if name in inputs[one]]
        if not equals or not there:
            raise _misuse(
                text, "no input has such a column" if equals else "there is no `=`", inputs
            )
        for one, name in there:
            if one in found:
                raise _misuse(text, f"`{one}` has a value already", inputs)
            item = inputs[one][name]
            try:
                if not is_exact(item):
                    raise ValueProblem(f"rows cannot be told by a {item}")
                found[one] = name, value_in(value, item)
            except ValueProblem as problem:
                raise _misuse(text, str(problem), inputs) from problem
    return found


def _readers(flow: FlowAsset) -> Iterator[str]:
    """The other flows that read the outputs or the landings of a flow."""
    ours = {one.path for one in flow.inputs.values() if not isinstance(one, FlowOutput)}
    for other in project.current().flows:
        for where in other.inputs.values():
            read = where.flow == flow.name if isinstance(where, FlowOutput) else where.path in ours
            if read and other.name != flow.name:
                yield other.name
                break


def _lines(plan: ForgetPlan, where: Sequence[str], readers: Sequence[str]) -> Iterator[str]:
    yield f"{plan.flow.name}: rows of {' and '.join(where)}"
    width = max(map(len, (*(f"landing/{n}" for n in plan.landed), *plan.stored)), default=0)
    for name, landed in plan.landed.items():
        whose = f" (output of `{landed.by_flow}`)" if landed.by_flow else ""
        yield f"  {f'landing/{name}':<{width}}  {landed.rows:,} row(s){whose}"
        yield from (f"    {rows:,} in {file}" for file, rows in landed.files.items())
        if landed.removed:
            yield f"    removed since it was read: {landed.removed}"
    for table, files in plan.stored.items():
        yield f"  {table:<{width}}  in {files:,} file(s)"
    yield from _way(plan)
    if readers:
        listed = ", ".join(f"`{one}`" for one in readers)
        yield f"Forget them next in what reads the same, or what this gives: {listed}."


def _way(plan: ForgetPlan) -> Iterator[str]:
    """How the tables come to be without the rows."""
    window = plan.flow.ticks.calendar.window
    if plan.is_nothing:
        yield "Nothing is known to be there."
    elif not plan.done:
        yield "No tick is committed."
    elif plan.first is None:
        yield "No committed tick has read a row that is gone by now; the history of tables goes."
    else:
        ticks = plan.done - plan.first
        span = f"{window(plan.first).key} to {window(plan.done - 1).key}"
        yield f"{span} ({ticks:,} tick(s)) are computed again from what is landed, in one commit;"
        yield "then the history of tables goes."


def _as_json(plan: ForgetPlan, where: Sequence[str], readers: Sequence[str]) -> dict[str, Any]:
    window = plan.flow.ticks.calendar.window
    return {
        "flow": plan.flow.name,
        "where": list(where),
        "landed": {
            name: {
                "rows": landed.rows,
                "files": {str(file): rows for file, rows in landed.files.items()},
                "removed": landed.removed,
            }
            for name, landed in plan.landed.items()
        },
        "stored": dict(plan.stored),
        "first": None if plan.first is None else window(plan.first).key,
        "ticks": 0 if plan.first is None else plan.done - plan.first,
        "flows": list(readers),
    }


def _misuse(text: str, problem: str, inputs: Any) -> DataError:
    columns = "; ".join(f"`{name}` has {', '.join(of)}" for name, of in inputs.items())
    return wrong_where(text, problem, columns)
