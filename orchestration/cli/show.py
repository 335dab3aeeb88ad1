"""`hydrotick show`: rows of an output as of a tick; `hydrotick why`: landed rows behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.analysis.slices import KnownValues, all_columns, column_of, in_words, slice_of
from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.compile import planned
from hydro_core.errors import DataError, HydroError
from hydro_core.printing.tables import table_lines
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.functions.reruns import RerunCount, says
from hydro_core.spark.pipeline.rows import rows_at
from hydro_core.spark.store.schema import flattened
from hydro_core.ticks.calendar import TickWindow
from hydro_core.ticks.wanted import ReadLimits, field_of
from hydro_core.types.item import FLOATS, WRONG, FieldPath, ItemType, at
from hydro_core.types.json import to_json
from hydro_core.types.values import ValueProblem
from hydro_core.validation.random_ticks import same_items
from hydro_core.validation.sliced import ShrunkSlice, SlicedRun, shrink

from ..flows.slices import FlowSlices, Where, rows_where
from ..project.console import asked_flow, value_in, wrong_where
from ..quality.judge import measure
from ..runner.runner import TickRunner

WIDEST = 60
"""Longer values are cut in a table for people."""


def show(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    runner = TickRunner(settings)
    window = committed_window(flow, runner.next_tick(flow), options.tick)
    rows = rows_at(runner.pipeline(flow), options.name, window.tick, options.limit, measure)

    def lines() -> Iterator[str]:
        yield from table_lines(rows.columns, rows, WIDEST)
        part = "" if len(rows) == rows.total else f"{len(rows):,} of "
        yield f"{part}{rows.total:,} row(s) as of tick {window.key}"

    return Result({"tick": window.key, "rows": iter(rows.rows)}, lines())


def committed_window(
    flow: FlowAsset, done: int, key: str | None, *, next_too: bool = False
) -> TickWindow:
    """The tick that was asked for, which is committed, or with `next_too` the next to be.

    Raises:
        DataError: it is not; which ones are (code `state`).
    """
    calendar = flow.ticks.calendar
    if done == 0 and not (next_too and key is not None):
        raise _not_there(
            f"no tick of `{flow.name}` is committed", f"run it: `hydrotick backfill {flow.name}`"
        )
    last = calendar.window(max(done - 1, 0)).key
    there = f"the committed ticks are {calendar.window(0).key} to {last}"
    if key is None:
        return calendar.window(done - 1)
    try:
        window = calendar.window_of(key)
    except HydroError as error:
        wrong = error.diagnostics[0]
        raise _not_there(wrong.message, f"{wrong.help}; {there}") from error
    if window.tick >= done + next_too:
        raise _not_there(f"tick {window.key} of `{flow.name}` is not committed", there)
    return window


def _not_there(message: str, cure: str) -> DataError:
    return DataError.of("state", message, help=cure)


_FEW = 3
"""So many ticks are named at which there was such a row."""


def why(options: Asked) -> Result:
    flow, settings = asked_flow(options)
    runner = TickRunner(settings)
    done = runner.next_tick(flow)
    window = committed_window(flow, done, options.tick, next_too=True)
    ledger, most = runner.pipeline(flow).ledger, ReadLimits(runner.project.why_rows)
    program = runner.deployments.program(flow)
    # The plan that runs may leave inputs out.
    inputs = runner.inputs(flow, planned(program))
    slices = FlowSlices(flow, program, inputs, ledger, most)
    where = _where(slices, options.output, options.where)
    stored = None
    if window.tick < done:
        table = runner.pipeline(flow).output(options.output, window.tick)
        stored = rows_where(table, program.typed.outputs[options.output].item, where)
    found = explain(slices, (options.output, where), window, stored, options.seconds)
    return Result(found, map(as_text, (found,), (options.limit,)), 0 if found.agrees else 1)


def explain(
    slices: FlowSlices,
    asked: tuple[str, Where],
    window: TickWindow,
    stored: Sequence[Any] | None,
    seconds: float,
) -> Why:
    """Where the rows of an output with given values at a tick come from.

    Args:
        asked: the output's name, and which of its rows are asked about.
        stored: these rows as the table holds them; None: the tick is not committed.
        seconds: so long it is tried which of the rows that can matter do.

    Raises:
        DataError: an input cannot be read (code `input`).
    """
    output, where = asked
    ticks = (window.tick, window.tick)
    if stored:
        where = _narrowed(slices, output, where, stored)
    run = slices.run(output, where, ticks)
    rows = None if run.too_many else run.run()[-1]
    if stored is not None and rows is not None and not same_items(rows, stored, ordered=False):
        as_read = slices.run(output, where, ticks, as_read=True)
        if not as_read.too_many:
            run, rows = as_read, as_read.run()[-1]
    shrunk = shrink(run, seconds) if rows else None
    there = () if rows or run.too_many else _there(slices, output, where, window)
    commit = None if stored is None else slices.ledger.commit_of(window.tick)
    again = () if commit is None else commit.ran_again
    return Why(slices, asked[1], run, window, stored, rows, shrunk, there, again)


def _narrowed(slices: FlowSlices, output: str, where: Where, stored: Sequence[Any]) -> Where:
    """If all rows of an input can matter: what else the rows have in their columns, asked for, too,
    but for floating-point numbers, which the program may give with other last bits.
    """
    typed = slices.program.typed
    needs = slice_of(typed, output, where).inputs.values()
    if all(need.conditions for alternatives in needs for need in alternatives):
        return where
    others = {
        path: KnownValues.of(known.column, [field_of(row, path) for row in stored])
        for path, known in all_columns(typed, output).items()
        if str(at(typed.outputs[output].item, path)) not in FLOATS
    }
    return {**others, **where}


def _there(
    slices: FlowSlices, output: str, where: Where, window: TickWindow
) -> Sequence[TickWindow]:
    """The last ticks before at which there are such rows."""
    run = slices.run(output, where, (0, window.tick))
    if run.too_many:
        return ()
    ticks = [tick for tick, rows in enumerate(run.run()) if rows]
    return [slices.window(tick) for tick in ticks[-_FEW:]]


def _where(slices: FlowSlices, output: str, texts: Sequence[str]) -> Where:
    typed, found = slices.program.typed, dict[FieldPath, KnownValues]()
    for text in texts:
        column, equals, value = text.partition("=")
        path = column_of(typed, output, column)
        item = at(typed.outputs[output].item, path)
        assert item is not None
        try:
            if not equals:
                raise ValueProblem("there is no `=`")
            found[path] = KnownValues.of(
                column, [None if value == "null" else value_in(value, item)]
            )
        except ValueProblem as problem:
            cure = f"write `--where {column}=VALUE`; the column is {item}"
            raise wrong_where(text, str(problem), cure) from problem
    return found


@dataclass(frozen=True)
class Why:
    slices: FlowSlices
    where: Where
    """Conditions on the output's rows that were asked about."""
    run: SlicedRun
    window: TickWindow
    stored: Sequence[Any] | None
    """The rows as the table holds them; None: the tick is not committed."""
    rows: Sequence[Any] | None
    """The rows as the program gives them; None: there are too many landed rows to tell."""
    shrunk: ShrunkSlice | None
    """The landed rows that matter; None: there is nothing to explain."""
    there: Sequence[TickWindow]
    """If there is no such row: the ticks before at which there is one."""
    ran_again: Sequence[RerunCount]
    """The functions for which the range of the tick ran again in Python."""

    @property
    def agrees(self) -> bool:
        """True if the table holds what the program gives, as far as that is known."""
        return (
            self.stored is None
            or self.rows is None
            or same_items(self.stored, self.rows, ordered=False)
        )

    def as_json(self) -> dict[str, Any]:
        window = self.slices.window
        run, shrunk, inputs = self.run, self.shrunk, self.slices.program.typed.inputs
        return {
            "flow": self.slices.flow.name,
            "output": run.slice.output,
            "tick": self.window.key,
            "rows": None if self.rows is None else _rows_as_json(self, self.rows),
            "stored": None if self.stored is None else _rows_as_json(self, self.stored),
            "agrees": self.agrees,
            "least": None if shrunk is None else shrunk.is_least,
            "inputs": {
                name: {
                    "rows": [
                        {"tick": window(tick).key, "row": to_json(row, inputs[name].item)}
                        for tick, row in _landed(self, name)
                    ],
                    "can_matter": None if name in run.too_many else _count(run.rows.get(name, {})),
                    "which": in_words(run.slice, name),
                }
                for name in run.slice.inputs
            },
            "there": [window.key for window in self.there],
            "ran_again": [str(one.function) for one in self.ran_again],
        }


def as_text(found: Why, limit: int) -> str:
    """Text for people: the rows, then for each input the rows that they come from."""
    parts = [*_answer(found, limit), *_inputs(found, limit)]
    return "\n\n".join(part.rstrip("\n") for part in parts)


def _answer(found: Why, limit: int) -> Iterator[str]:
    output, key = f"`{found.run.slice.output}`", found.window.key
    with_ = " and ".join(f"`{k.column}` = {_shown(k.values[0])}" for k in found.where.values())
    shown = found.stored if found.rows is None else found.rows
    if shown:
        head = f"As of {key} {output} has {_number(len(shown))} with {with_}:"
        if found.stored is None:
            head = f"{key} is not committed. {head.replace(' has ', ' will have ')}"
        yield f"{head}\n\n{_rows_as_text(found, shown, limit)}"
    else:
        elsewhere = "No tick before had one."
        if found.there:
            keys = ", ".join(window.key for window in found.there)
            elsewhere = f"The last ticks that had one: {keys}. Ask about one of them with `--tick`."
        said = "" if found.run.too_many else elsewhere
        yield f"As of {key} {output} has no row with {with_}. {said}"
    if not found.agrees:
        yield (
            "This is what the program gives, run over all that is landed. The table holds "
            f"{_number(len(found.stored or ()))}:\n\n"
            f"{_rows_as_text(found, found.stored or (), limit)}\n"
            "Rows may have landed, or been changed, after their tick was committed: then "
            f"`hydrotick correct {found.slices.flow.name} --from KEY` computes the ticks from "
            "theirs on again. Else the plan is wrong."
        )
    yield from _verdict(found)


def _verdict(found: Why) -> Iterator[str]:
    for name in sorted(found.run.too_many):
        yield (
            f"What it comes from is not computed: more rows of `{name}` can matter than the "
            f"{found.slices.most.rows:,} that are looked at (HYDROTICK_WHY_ROWS)."
        )
    if found.ran_again:
        yield f"The range of this tick ran twice. {says(found.ran_again)}."
    shrunk = found.shrunk
    if shrunk is None:
        return
    left = sum(map(_count, shrunk.rows.values()))
    many = f"{left:,} of the {left + shrunk.left_out:,} landed rows that can matter"
    if not shrunk.left_out:
        many = "one landed row" if left == 1 else f"{left:,} landed rows"
    if shrunk.is_least and left == 1:
        yield f"It comes from {many}."
    elif shrunk.is_least:
        yield f"It comes from {many}: without any one of them it would be another."
    else:
        yield (
            f"It comes from {many}, or from some of those: there was no time to try without each "
            "of them (`--seconds`)."
        )


def _inputs(found: Why, limit: int) -> Iterator[str]:
    nothing = []
    for name in found.run.slice.inputs:
        words = in_words(found.run.slice, name)
        rows = _landed(found, name)
        if name in found.run.too_many:
            yield f"{name}: {words}"
        elif rows:
            yield f"{name}: {words}\n\n{_landed_as_text(found, name, rows, limit)}"
        else:
            nothing.append(f"`{name}`")
    if nothing:
        listed = ", ".join(nothing)
        yield (
            f"It comes from no row of {listed}."
            if found.rows
            else f"No row of {listed} can matter."
        )


def _landed(found: Why, name: str) -> list[tuple[int, Any]]:
    """The rows of an input that matter, or that can where there is no answer to try it on."""
    of = found.run.rows if found.shrunk is None else found.shrunk.rows
    return [(tick, row) for tick, rows in sorted(of.get(name, {}).items()) for row in rows]


def _landed_as_text(found: Why, name: str, rows: Sequence[tuple[int, Any]], limit: int) -> str:
    item = found.slices.program.typed.inputs[name].item
    columns, values = _columns(item, [row for _, row in rows[:limit]])
    keys = [found.slices.window(tick).key for tick, _ in rows[:limit]]
    head = "tick" if "tick" not in columns else "(tick)"
    lines = [[key, *row] for key, row in zip(keys, values, strict=True)]
    return _table((head, *columns), lines, len(rows) - limit)


def _rows_as_text(found: Why, rows: Sequence[Any], limit: int) -> str:
    item = found.slices.program.typed.outputs[found.run.slice.output].item
    return _table(*_columns(item, rows[:limit]), len(rows) - limit)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], more: int) -> str:
    lines = [*table_lines(columns, rows, WIDEST), *([f"… and {more:,} more"] if more > 0 else [])]
    return "\n".join(lines) + "\n"


def _columns(item: ItemType, rows: Sequence[Any]) -> tuple[list[str], list[list[Any]]]:
    """The rows under the columns in which tables hold them."""
    names = [name for name, _ in flattened(item)]
    found = [dict(zip(names, _parts(to_json(row, item), row), strict=True)) for row in rows]
    # What says that a row is wrong is no column of rows that fit.
    there = any(row[name] is not None for row in found for name in names if name in WRONG)
    shown = names if there else [name for name in names if name not in WRONG]
    return shown, [[row[name] for name in shown] for row in found]


def _parts(value: Any, row: Any) -> Iterable[Any]:
    if isinstance(row, dict):
        parts: Iterable[Any] = value.values()
        return parts
    return value if isinstance(row, tuple) else [value]


def _rows_as_json(found: Why, rows: Sequence[Any]) -> list[Any]:
    item = found.slices.program.typed.outputs[found.run.slice.output].item
    return [to_json(row, item) for row in rows]


def _count(rows: Mapping[int, Sequence[Any]]) -> int:
    return sum(map(len, rows.values()))


def _number(count: int) -> str:
    return "one row" if count == 1 else f"{count:,} rows" if count else "no row"


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)
