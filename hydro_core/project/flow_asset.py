"""What an asset folder declares: a program, where its inputs land, its ticks, and what must hold of
its outputs.

A `FlowAsset` is data. `hydrotick.code_location.factory` makes Dagster assets, checks and jobs of
it; `hydrotick` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from hydro_core.errors import Diagnostic, Span
from hydro_core.ticks.calendar import Calendar, scheduled


@dataclass(frozen=True, slots=True)
class OnError:
    """Up to `quarantine` wrong rows a tick go to a table of their own, and the tick goes on."""

    quarantine: int


@dataclass(frozen=True, slots=True)
class Landing:
    """A table that outside systems write and ticks read: Delta, Parquet, CSV or JSON lines.

    `path` is relative to the project's landing directory, absolute, or a `file:` URL: a file, a
    folder or a glob.
    `column` says which tick a row belongs to: a date or timestamp that the flow's ticks cut up, or
    a long that is the tick's number; without it the whole table arrives at tick 0. With `wait`
    "landed" a tick waits for a row at or after its window's end; "closed" waits for the clock only.

    `late` says what becomes of rows that land for ticks that are committed: they arrive with the
    "next" tick, or the committed ticks are computed again ("correct"), or the next tick fails until
    somebody has decided ("refuse").

    `removed` says what becomes of the flow while rows are gone that committed ticks have read: it
    goes on and says so ("note"), or it waits until they are back, or somebody has decided ("hold").

    `optional` names columns of the program's schema that files may lack: they are null there. Any
    other that a file lacks is an error.

    `on_error` says how many rows of a tick that do not fit their type are put in quarantine;
    without it the first fails the tick.

    `event` names the column that says when what a row tells of took place, a date or a timestamp:
    how late rows are is then told by it, too, beside by when they landed.
    """

    path: str
    column: str | None = None
    wait: Literal["closed", "landed"] = "closed"
    late: Literal["next", "correct", "refuse"] = "next"
    removed: Literal["note", "hold"] = "note"
    optional: tuple[str, ...] = ()
    on_error: OnError | None = None
    event: str | None = None


@dataclass(frozen=True, slots=True)
class FlowOutput:
    """An output of another flow of the project, whose ticks are the same or longer.

    A tick reads what the tick of the other flow with the same window has added to the output's
    table, once that is committed; what a longer tick has added is read by the first tick after its
    window. `late` is as a `Landing` has it: what the other flow computes again is followed by
    "correct".
    """

    flow: str
    output: str
    late: Literal["next", "correct", "refuse"] = "correct"

    @property
    def column(self) -> str:
        """The column of an output's table that tells the tick."""
        return "tick"

    def __str__(self) -> str:
        return f"the output `{self.output}` of `{self.flow}`"


@dataclass(frozen=True, slots=True)
class Ticks:
    """The tick axis: windows of length `every` (`15m 1h 1d 1w 1mo` and others that divide an hour,
    a day or a year) from `start`, up to `end` where the flow has an end.

    Times without an offset are those of the wall clock of `zone`, which the windows follow. A tick
    may run once its window has ended and `delay` (`2h`, say) has passed.
    """

    start: datetime
    every: str = "1d"
    end: datetime | None = None
    delay: str = ""
    zone: str = "UTC"

    @property
    def calendar(self) -> Calendar:
        """The windows; a `ProgramError` says why there are none."""
        return _calendar(self)


@lru_cache
def _calendar(ticks: Ticks) -> Calendar:
    return scheduled(Calendar(ticks.start, ticks.every, ticks.end, ticks.zone, ticks.delay))


Bound = float | int | Decimal | date | str | None
"""A value that those of a column are compared with, read by the column's type."""


@dataclass(frozen=True, slots=True)
class Expect:
    """What must hold of a column of an output in every tick; a broken one stops the tick before it
    commits, or is only shown where its `severity` is "warn".
    """

    column: str
    not_null: bool = False
    unique: bool = False
    at_least: Bound = None
    at_most: Bound = None
    one_of: tuple[Any, ...] = ()
    matches: str | None = None
    severity: Literal["error", "warn"] = "error"


@dataclass(frozen=True, slots=True)
class Shards:
    """Into how many parts a flow is cut that do not talk to each other: each has its share of the
    items, and states of its own.

    `on` says by which field or fields an input is routed; where nothing is said, it is derived from
    the program. `replicate` names inputs that every shard has whole.
    """

    count: int
    on: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    replicate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FlowSpark:
    """How Spark runs a flow: `conf` has settings of its own, which win over the project's; `master`
    is where it does, if not where the project's flows run.
    """

    conf: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """How an output is kept for those who read it, and a sentence about it.

    A "log" is what its ticks add or change, with the tick, by which it is read as of any tick. A
    "table" is, beside that, a Delta table that holds the output as of the last committed tick, and
    nothing else. "append" is such a table of an output that only grows: of another it is refused.
    """

    as_: Literal["log", "table", "append"] = "log"
    description: str = ""


@dataclass(frozen=True, slots=True)
class FlowAsset:
    """A flow as an asset folder gives it.

    `program` is a file `*.hydro` or `*.dl`, relative to the asset's folder, or `module:attribute`.
    `schemas` types the inputs that the program does not declare, as Spark DDL. `outputs` has, for
    each output, a sentence that the UI shows, or how it is kept. `sample_keys` says for how many
    keys of each output a tick is judged by what the program, run over all that is landed, gives;
    0 switches it off. `shards` cuts the program into so many. `spark` says how Spark runs it.
    `params` are constants that the program names; with other ones it is another program.
    `on_error` says how many rows of a tick on which a function fails are put in quarantine; without
    it the first fails the tick.
    """

    name: str
    program: Path | str
    ticks: Ticks
    inputs: Mapping[str, Landing | FlowOutput]
    description: str = ""
    expect: Mapping[str, tuple[Expect, ...]] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str | KeptOutput] = field(default_factory=dict)
    owners: tuple[str, ...] = ()
    sample_keys: int | None = None
    shards: int | Shards = 1
    spark: FlowSpark = FlowSpark()
    params: Mapping[str, Any] = field(default_factory=dict)
    on_error: OnError | None = None
    land: Callable[[Path], None] | None = None
    """Puts the data that the folder brings with it below a landing directory."""
    folder: Path | None = None
    """The asset's folder, by whoever has found it there."""
    fed_by: Mapping[str, Ticks] = field(default_factory=dict)
    """The ticks of the flows that it reads, by whoever knows them; those of others are its own."""
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)
    """Where a declaration that has lines says what: "inputs.payments.column", and all the rest."""

    @property
    def landings(self) -> Mapping[str, Landing]:
        """The inputs that outside systems write."""
        return {name: of for name, of in self.inputs.items() if isinstance(of, Landing)}

    @property
    def reads(self) -> Mapping[str, FlowOutput]:
        """The inputs that are outputs of other flows."""
        return {name: of for name, of in self.inputs.items() if isinstance(of, FlowOutput)}

    @property
    def tables(self) -> Mapping[str, KeptOutput]:
        """The outputs that are tables of their own."""
        found = {name: of for name, of in self.outputs.items() if isinstance(of, KeptOutput)}
        return {name: of for name, of in found.items() if of.as_ != "log"}

    def described(self, output: str) -> str:
        said = self.outputs.get(output, "")
        return said.description if isinstance(said, KeptOutput) else said

    def problem_at(self, place: str, message: str, cure: str, at: str | None = None) -> Diagnostic:
        """What is wrong with the declaration, where it says it or that of which it is a part.

        Args:
            place: as people know it: "inputs.payments.column".
            message: what is wrong.
            cure: what helps.
            at: where it stands, if that is not `place`.
        """
        where = at or place
        while where and where not in self.places:
            where = where.rpartition(".")[0]
        said = f"flow `{self.name}`, `{place}`: {message}"
        return Diagnostic("config", said, self.places.get(where), help=cure)

    def numbered_by(self, name: str) -> Calendar | None:
        """Calendar that numbers the rows of an input; None: the flow's own."""
        read = self.reads.get(name)
        theirs = self.fed_by.get(read.flow) if read else None
        return None if theirs is None else theirs.calendar
