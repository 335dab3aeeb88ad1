"""`hydrotick forget`: all that a flow has of a person goes, and its history."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from hydro_core.analysis.partition.terms import is_exact
from hydro_core.cli.command import Asked
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset, FlowOutput
from hydro_core.storage.remote import RemotePath
from hydro_core.types.values import ValueProblem

from ..code_location.records import runs_with
from ..instance.opening import open_existing
from ..project import project
from ..project.console import Console, asked_flow, value_in, wrong_where
from ..runner.forgetting import forget as forget_rows
from ..runner.forgetting import refuse_files
from ..runner.runner import TickRunner
from ..runner.to_forget import ToForget, WhoseRows, to_forget
from .backfill import record_deployed

_NOTHING, _REFUSED, _THERE = 0, 1, 3
_NAMED = 5


def forget(options: Asked) -> int:
    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    values = _values(flow, runner, options.where)
    found = to_forget(runner, flow, values)
    readers = list(_readers(flow))
    told = _as_json(found, options.where, readers)
    if options.dry_run:
        console.give(
            {**told, "commit": None, "runs": []}, "\n".join(_lines(found, options.where, readers))
        )
        return _NOTHING if found.is_nothing else _THERE
    refuse_files(found)
    console.say(*_lines(found, options.where, readers))
    console.say("There is no way back: earlier versions of its tables go, and what rollback needs.")
    if not console.agreed():
        return _REFUSED
    began = time.monotonic()
    commit = forget_rows(found, console.say, project.current().flows)
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
    console.give({**told, "commit": commit, "runs": runs})
    return _NOTHING


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


def _lines(found: ToForget, where: Sequence[str], readers: Sequence[str]) -> Iterator[str]:
    yield f"{found.flow.name}: rows of {' and '.join(where)}"
    width = max(map(len, (*(f"landing/{n}" for n in found.landed), *found.tables)), default=0)
    for one, landed in found.landed.items():
        whose = f" (output of `{landed.by_flow}`)" if landed.by_flow else ""
        yield f"  {f'landing/{one}':<{width}}  {landed.rows:,}{whose}"
        yield from (
            f"    {n:,} in {file}" for file, n in landed.files.items() if not landed.is_delta
        )
        if one in found.gone and not found.gone[one].is_nothing:
            yield f"    taken for theirs: {found.says_gone(one)}"
    for table, rows in found.tables.items():
        yield f"  {table:<{width}}  {rows:,}"
    if found.replaced:
        yield f"  {'history':<{width}}  {found.replaced:,}"
    yield from _way(found)
    if readers:
        listed = ", ".join(f"`{one}`" for one in readers)
        yield f"Forget them next in what reads the same, or what this gives: {listed}."


def _way(found: ToForget) -> Iterator[str]:
    """How the tables come to be without the rows."""
    window = found.flow.ticks.calendar.window
    if found.begun:
        yield "A deletion was begun before, and is ended now."
    if found.is_nothing:
        yield "Nothing is known to be there."
    elif not found.done:
        yield "No tick is committed."
    elif found.is_by_key:
        yield "They are taken out of the tables by their key; no tick is computed."
    elif found.first is None:
        yield "No committed tick has read one, so none is computed again; history goes."
    else:
        ticks = found.done - found.first
        span = f"{window(found.first).key} to {window(found.done - 1).key}"
        yield f"{span} ({ticks:,} tick(s)) are computed again without them, in one commit:"
        yield from (f"  {why}" for why in found.keyed.obstacles)


def _as_json(found: ToForget, where: Sequence[str], readers: Sequence[str]) -> dict[str, Any]:
    window = found.flow.ticks.calendar.window
    return {
        "flow": found.flow.name,
        "where": list(where),
        "landed": {
            name: {
                "rows": one.rows,
                "files": {str(file): n for file, n in one.files.items()},
                "gone": found.says_gone(name) if name in found.gone else "",
            }
            for name, one in found.landed.items()
        },
        "tables": dict(found.tables),
        "history": found.replaced,
        "by_key": found.is_by_key,
        "why_not": list(found.keyed.obstacles),
        "first": None if found.first is None else window(found.first).key,
        "ticks": 0 if found.first is None else found.done - found.first,
        "flows": list(readers),
    }


def _misuse(text: str, problem: str, inputs: Any) -> DataError:
    columns = "; ".join(f"`{name}` has {', '.join(of)}" for name, of in inputs.items())
    return wrong_where(text, problem, columns)
