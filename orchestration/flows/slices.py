"""Slices of a flow over what is landed: the naive program on the rows that can matter.

Rows are read as they are landed now. That is not always what the ticks have read: rows may have
landed later. So where an answer is not what the tables hold, every tick's rows are read once more,
as they were when it was committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.slices import KnownValues, slice_of
from hydro_core.compile import CompiledProgram
from hydro_core.errors import DataError
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.ticks.tick import TickInput
from hydro_core.ticks.wanted import ReadLimits, WantedRows, meets
from hydro_core.types.item import FieldPath, ItemType
from hydro_core.types.values import canonical
from hydro_core.validation.sliced import SlicedRun

from .landed_past import rows_read

if TYPE_CHECKING:
    import pyarrow as pa

    from hydro_core.spark.inputs.reading import SlicedBatches
    from hydro_core.spark.store.ledger.ledger import Ledger
    from hydro_core.spark.store.ledger.records import Commit, InputRead

Where = Mapping[FieldPath, KnownValues]
"""Values of fields of an output's rows."""


SlicedInputs = Callable[[FlowAsset, TickPlan], "SlicedBatches"]
"""Gives what a flow reads by a plan."""


@dataclass
class FlowSlices:
    """Slices of one flow.

    Args:
        program: its program as it is written.
        inputs: where its landings are.
        ledger: what its ticks have read.
        most: what may be read of an input.
        reads: what the tick that is judged has read; without it, what is landed now is read.
        at: the first tick that has read it.
        steps: those of the program, if they are known.
    """

    flow: FlowAsset
    program: CompiledProgram
    inputs: SlicedBatches
    ledger: Ledger
    most: ReadLimits
    reads: Sequence[InputRead] = ()
    at: int = 0
    steps: Steps | None = None
    not_as_read: set[str] = field(default_factory=set)
    """The inputs of which nobody can tell any more what the ticks have read."""
    _some: dict[tuple[str, int, int, int | None], list[Any]] = field(default_factory=dict)

    def run(
        self, output: str, where: Where, ticks: tuple[int, int], *, as_read: bool = False
    ) -> SlicedRun:
        """A slice of an output at some ticks, its rows loaded.

        Args:
            where: which of its rows are asked for.
            ticks: the first and the last of the ticks.
            as_read: every committed tick's rows as it has read them.

        Raises:
            DataError: an input cannot be read (code `input`).
            TooLargeError: the files of one are larger than they may be.
        """
        return self.loaded(self.slice(output, where, ticks), as_read=as_read)

    def slice(self, output: str, where: Where, ticks: tuple[int, int]) -> SlicedRun:
        """The same, with no rows loaded yet."""
        sliced = slice_of(self.program.typed, output, where, self._steps)
        return SlicedRun(self.program, sliced, *ticks, tick=self._tick)

    def loaded(self, run: SlicedRun, *, as_read: bool = False) -> SlicedRun:
        """A slice, its rows loaded."""
        run.load(partial(self._read_as_read if as_read else self._read_at_once, run.last))
        return run

    def gather(self, runs: Sequence[SlicedRun]) -> None:
        """Reads at once what several slices need of an input from the same tick on, to be loaded.

        Slices that are to be gathered end at the same tick.
        """
        together: dict[tuple[str, int], list[WantedRows]] = {}
        for run in runs:
            for wanted in run.first_wanted().values():
                if not wanted.is_all:
                    together.setdefault((wanted.name, wanted.first), []).append(wanted)
        for (name, _), several in together.items():
            if len(several) > 1:
                most = replace(self.most, rows=len(several) * self.most.rows)
                try:
                    self.inputs.gather(several, runs[0].last, most, self._versions.get(name))
                except (DataError, FileNotFoundError):
                    # Each is told of it where it asks for its own.
                    continue

    def some(self, wanted: WantedRows, last: int) -> Sequence[Any]:
        """Some of the rows of an input, up to a tick: the same for all who ask for so many."""
        key = wanted.name, wanted.first, last, wanted.some
        if key not in self._some:
            found = self._read_at_once(last, wanted)
            self._some[key] = [row for _, rows in sorted(found.items()) for row in rows]
        return self._some[key]

    def counts(
        self, asked: Sequence[tuple[WantedRows, Sequence[FieldPath]]], last: int
    ) -> list[Counter[tuple[Hashable, ...]]]:
        """How many of the rows of an input have which values in some fields, by their forms; for
        each who asks, all from the same tick on. Nothing where that takes more than to count.
        """
        version = self._versions.get(asked[0][0].name)
        for wanted, _ in asked:
            if self.most.size is not None:
                size = self.inputs.size(wanted, last, version)
                if size > self.most.size:
                    return [Counter() for _ in asked]
        return self.inputs.counts(asked, last, version)

    def has_lost(self, name: str) -> bool:
        """Whether rows of an input are not landed any more that ticks have read."""
        read = rows_read(self._commits, 0).get(name, 0)
        try:
            there = self.inputs.rows_there(name, self._versions.get(name))
        except DataError:
            return True
        return there is not None and there < read

    def window(self, tick: int) -> TickWindow:
        return self.flow.ticks.calendar.window(tick)

    @cached_property
    def _steps(self) -> Steps:
        return self.steps or steps_of(self.program.typed)

    @cached_property
    def _versions(self) -> Mapping[str, int | None]:
        return {read.name: read.version for read in self.reads}

    def _tick(self, number: int, batches: Mapping[str, Sequence[Any]]) -> TickInput:
        window = self.window(number)
        return TickInput(batches, window.start, window.end)

    def _read(self, wanted: WantedRows, parts: Iterable[_Part]) -> Mapping[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        left = self.most.rows
        for part in parts:
            asked = replace(wanted, first=part.first)
            rows = self._of_part(asked, part, replace(self.most, rows=left))
            found |= rows
            left -= sum(map(len, rows.values()))
        return found

    def _of_part(
        self, wanted: WantedRows, part: _Part, most: ReadLimits
    ) -> Mapping[int, list[Any]]:
        try:
            return self.inputs.wanted(wanted, part.last, most, part.version)
        except (DataError, FileNotFoundError):
            if part.version is None:
                raise
            # The table no longer has what it had at the version.
            self.not_as_read.add(wanted.name)
            return self.inputs.wanted(wanted, part.last, most)

    def _read_at_once(self, last: int, wanted: WantedRows) -> Mapping[int, list[Any]]:
        return self._read(wanted, [_Part(wanted.first, last, self._versions.get(wanted.name))])

    def _read_as_read(self, last: int, wanted: WantedRows) -> Mapping[int, list[Any]]:
        """The rows as the ticks have read them, those of earlier ticks that came late, too."""
        found = dict(self._read(wanted, self._as_read(last, wanted)))
        known: dict[int, list[Any]] = {}
        for came, of, versions in self._late(wanted.name):
            if came > last:
                continue
            late = replace(wanted, first=of)
            at = (self._version_at(wanted.name, of), *versions)
            own, before, now = (self._read(late, [_Part(of, of, v)]).get(of, ()) for v in at)
            read = known.setdefault(of, [*own])
            # What had been read, and was away before it came, is back and not late.
            rows = without(without(now, before), without(read, before))
            read += rows
            if wanted.first <= came:
                found[came] = [*found.get(came, ()), *rows]
        return found

    def _late(self, name: str) -> Iterator[tuple[int, int, tuple[int, int]]]:
        """The ticks with which rows came late, the ticks that they are of, and the versions of the
        table before and then.
        """
        before: int | None = None
        for first, stands, read in self._all_reads(name):
            if read.late and stands and (before is None or read.version is None):
                self.not_as_read.add(name)
            elif stands and before is not None and read.version is not None:
                yield from ((first, tick, (before, read.version)) for tick in read.late)
            before = read.version if read.version is not None else before

    def _all_reads(self, name: str) -> Iterator[tuple[int, bool, InputRead]]:
        """What was read of an input one after the other, the first tick that has it, and whether
        that was not computed again since.
        """
        for commit in self._commits:
            stands = self._made_by.get(commit.first) is commit
            yield from ((commit.first, stands, r) for r in commit.inputs if r.name == name)
        yield from ((self.at, True, read) for read in self.reads if read.name == name)

    def _as_read(self, last: int, wanted: WantedRows) -> Iterator[_Part]:
        """Ticks that follow each other and have read the same version, together."""
        name, part = wanted.name, None
        for tick in range(wanted.first, last + 1):
            version = self._version_at(name, tick)
            if part is not None and part.version == version:
                part = replace(part, last=tick)
                continue
            if part is not None:
                yield part
            part = _Part(tick, tick, version)
        if part is not None:
            yield part

    def _version_at(self, name: str, tick: int) -> int | None:
        commit = self._made_by.get(tick)
        if commit is None:
            return self._versions.get(name)
        read = next((read for read in commit.inputs if read.name == name), None)
        if read is None or read.version is None:
            self.not_as_read.add(name)
            return self._versions.get(name)
        return read.version

    @cached_property
    def _commits(self) -> Sequence[Commit]:
        return self.ledger.commits()

    @cached_property
    def _made_by(self) -> Mapping[int, Commit]:
        """The commit that read each tick, the latest where it was read anew."""
        from hydro_core.spark.store.ledger.records import reading

        found: dict[int, Commit] = {}
        for commit in reading(self._commits):
            found |= dict.fromkeys(commit.ticks, commit)
        return found

    def came_late(self, name: str) -> bool:
        """Whether some tick has read rows of an earlier one."""
        return any(read.late for _, _, read in self._all_reads(name))


@dataclass(frozen=True, slots=True)
class _Part:
    """Ticks whose rows are read together."""

    first: int
    last: int
    version: int | None


def without(rows: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The rows that are left when the others are taken away, each as often as it is there."""
    owed = Counter(map(canonical, others))
    left = []
    for row in rows:
        form = canonical(row)
        if owed[form]:
            owed[form] -= 1
        else:
            left.append(row)
    return left


def rows_where(table: pa.Table, item: ItemType, where: Where) -> list[Any]:
    """The items of the rows of an output that have the values."""
    import pyarrow.dataset as ds

    from hydro_core.spark.inputs.reading import condition_of
    from hydro_core.spark.pipeline.rows import items_of_columns

    forms = {path: {canonical(v): v for v in known.values} for path, known in where.items()}
    within = condition_of(WantedRows("", (forms,), 0), table.schema, item)
    found = table if within is None else ds.dataset(table).to_table(filter=within)
    items = items_of_columns(found, item)
    tests = [(path, known.forms) for path, known in where.items()]
    return [item for item in items if meets(item, tests)]
