"""Where changed outputs go over from the past that they have to the one of another program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hydro_core.errors import DataError, Diagnostic
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.columns import declared_columns

if TYPE_CHECKING:
    from hydro_core.program_change.difference import Difference


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """How a program is to be deployed, beyond the program itself."""

    first: TickWindow | None = None
    """The tick from which on changed outputs are restated, if not all of them."""
    forward_only: bool = False
    """Changed outputs keep the past that they have."""
    from_now: bool = False
    """What has no landed past starts empty."""


def seams(flow: FlowAsset, found: Difference, last: int, asked: DeployOptions) -> Mapping[str, int]:
    """The first restated tick of each output that keeps some of its past; none where all is.

    Args:
        found: what becomes of them.
        asked: whether they keep some of it.

    Raises:
        DataError: there is no such tick, or an output cannot be of both programs (code `state`).
    """
    if asked.first is None and not asked.forward_only:
        return {}
    first = last + 1 if asked.first is None else asked.first.tick
    if asked.first is not None and first > last:
        raise _wrong(
            f"tick {asked.first.key} of `{flow.name}` is not committed, so nothing is restated "
            "from there",
            f"name a committed tick, up to {flow.ticks.calendar.window(last).key}, or give "
            "`--forward-only`",
        )
    changed = [n for n, o in found.outputs.items() if o.change in ("columns", "changed")]
    problems = [p for name in changed for p in _problems(found, name, first > last)]
    if problems:
        raise DataError(*problems)
    return dict.fromkeys(changed, first)


def _problems(found: Difference, output: str, forward_only: bool) -> Iterator[Diagnostic]:
    from hydro_core.spark.pipeline.tables import output_tables

    made = output_tables(found.after.plan)[output]
    served = next(t for t in found.tables if t.role == "output" and t.of == output)
    kinds = (served.kind, made.kind.name)
    cure = "deploy it without `--from` and `--forward-only`: all of its past is restated then"
    if kinds == ("G", "G") and forward_only:
        yield Diagnostic(
            "state",
            f"`{output}` is stored as what each tick changes of it, and that cannot go on from "
            "what another program has left",
            help="give `--from` with the last committed tick, at which it changes to what the new "
            "program has",
        )
    elif kinds not in (("E", "E"), ("G", "G")):
        yield Diagnostic(
            "state",
            f"`{output}` cannot keep a part of its past: it is stored as {_WORDS[kinds[0]]} now, "
            f"and would be as {_WORDS[kinds[1]]}",
            help=cure,
        )
    if served.ordered != made.ordered:
        yield Diagnostic(
            "state", f"`{output}` cannot keep a part of its past: its order changes", help=cure
        )
    before, after = (
        declared_columns(item) or {"item": item}
        for item in (d.program.typed.outputs[output].item for d in (found.before, found.after))
    )
    for column in before:
        if column in after and before[column] != after[column]:
            yield Diagnostic(
                "state",
                f"`{output}` cannot keep a part of its past: its column `{column}` is "
                f"{before[column]} now, and would be {after[column]}",
                help=cure,
            )


_WORDS = {
    "E": "the rows of each tick",
    "H": "what each tick adds",
    "G": "what each tick changes",
}


def _wrong(message: str, cure: str) -> DataError:
    return DataError.of("state", message, help=cure)
