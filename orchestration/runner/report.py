"""How a tick ended, for Dagster's records and for people: verdicts, rows and tables by asset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.functions.reruns import RerunCount, says
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.item import QUARANTINE

from ..flows.late_arrivals import LateArrivals, LateEvents, kept_events, noticed_at
from ..instance.run_tags import CORRECT, CORRECT_TAG
from ..quality.changed import CorrectionResult
from ..quality.suites import CURE, LAW_CHECKS, ROWS, Verdict, declared_checks

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import PreparedRange
    from hydro_core.spark.store.delta.write import WrittenRows
    from hydro_core.spark.store.ledger.records import Commit, InputRead
    from hydro_core.spark.store.schema import TableSpec

    from ..quality.judge import TickVerdicts

Verdicts = Sequence[tuple[str, Verdict]]
"""What was found, with the asset that it is about: "state/NAME", or an output's name."""


@dataclass(frozen=True, slots=True)
class TickReport:
    """How a tick ended; `problem` says why it was not committed, and `cure` what to do.

    `judged`: if it was not, whether the next try would fail, too: nothing that passes is at fault.
    """

    window: TickWindow
    committed: bool
    problem: str = ""
    cure: str = ""
    verdicts: Verdicts = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows that the tick added, by asset; inputs as "landing/NAME"."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Rows that the table of each asset has with the tick, where that is known."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the files of each asset's table with the tick, where that is known."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Where the table of each asset is."""
    judged: bool = True
    again: str = ""
    """Says so where the tick had been committed before, and this run computed nothing."""
    commit: int | None = None
    """The commit that made the tick, by its number in the ledger."""
    seconds: float | None = None
    """How long that took, for all its ticks together."""
    corrected: CorrectionResult | None = None
    """The correction by which the tick has been computed again, with others."""
    empty: tuple[str, ...] = ()
    """The inputs of which no row is of the tick."""
    noticed: Mapping[str, LateArrivals] = field(default_factory=dict)
    """What inputs got that is of no tick, or of committed ones: late rows arrived with this one."""
    events: Mapping[str, LateEvents] = field(default_factory=dict)
    """The inputs of which rows are of events from before the tick's window."""
    ran_again: tuple[RerunCount, ...] = ()
    """The functions for which the tick's range ran again in Python."""

    @property
    def was_read(self) -> bool:
        """Whether the tick got as far as reading its inputs."""
        return self.committed or any(asset.startswith("landing/") for asset in self.rows)

    @property
    def failure(self) -> str:
        """Why the tick was not committed, and the cure, for a person."""
        named = "" if self.window.key in self.problem else f"{self.window.key}: "
        cure = f"\nhelp: {self.cure}" if self.cure else ""
        return f"{named}{self.problem}{cure}"

    @property
    def metadata(self) -> dict[str, Any]:
        """What the UI shows of the tick as a whole."""
        read = {name: rows for name, rows in self.rows.items() if name.startswith("landing/")}
        total = {"rows read": sum(read.values())} if read else {}
        late = {
            f"{name}: {what}": value
            for of in (self.noticed, self.events)
            for name, one in of.items()
            for what, value in one.metadata.items()
        }
        wrong = {"rows in quarantine": self.rows[QUARANTINE]} if QUARANTINE in self.rows else {}
        return {**self._about(""), **total, **read, **late, **wrong}

    def warnings(self, flow: str) -> Iterator[str]:
        """What a person should know of the rows that were read."""
        for name in self.empty:
            yield f"{self.window.key}: no row of the input `{name}` is of it"
        yield from self.notices(flow)
        if self.committed and self.rows.get(QUARANTINE):
            yield (
                f"{self.window.key}: {self.rows[QUARANTINE]:,} row(s) are in quarantine; to see "
                f"them: `hydrotick show {flow} {QUARANTINE} --tick {self.window.key}`"
            )
        if self.ran_again:
            yield f"{self.window.key}: {says(self.ran_again)}"

    def notices(self, flow: str) -> Iterator[str]:
        """What was noticed of the inputs' rows that are of no tick, or of committed ones."""
        for name, one in self.noticed.items():
            if one.early:
                yield (
                    f"{self.window.key}: {one.early:,} row(s) of `{name}` are from before it, the "
                    "first tick, and left out: an earlier `start` takes them in"
                )
            if one.late:
                yield f"{self.window.key}: late rows of `{name}` arrived with it: {one.says_late}"
            if one.changed:
                yield (
                    f"{self.window.key}: rows of `{name}` have changed where they landed, after "
                    f"their ticks were committed: {one.says_changed}; to compute these again: "
                    f"`hydrotick correct {flow} --from {one.first}`"
                )

    def metadata_of(self, asset: str) -> dict[str, Any]:
        """What the UI shows of one asset of the tick."""
        if asset not in self.tables:
            return self.metadata
        total = {"dagster/row_count": self.totals[asset]} if asset in self.totals else {}
        return {
            **self._about(asset),
            **total,
            **({"dagster/partition_row_count": self.rows[asset]} if asset in self.rows else {}),
            **({"bytes": self.sizes[asset]} if asset in self.sizes else {}),
            **({} if self.seconds is None else {"seconds": round(self.seconds, 3)}),
            "dagster/table_name": self.tables[asset],
        }

    def _about(self, asset: str) -> dict[str, Any]:
        """The tick and the commit, and what is to be known of them."""
        again = [str(one) for one in self.ran_again]
        return {
            "tick": self.window.key,
            "tick number": self.window.tick,
            **({} if self.commit is None else {"commit": self.commit}),
            **({} if self.corrected is None else self.corrected.metadata_of(asset)),
            **({"note": self.again} if self.again else {}),
            **({"inputs without rows": ", ".join(self.empty)} if self.empty else {}),
            **({"ran again in Python": "; ".join(again)} if again else {}),
        }


def asset_of(spec: TableSpec) -> str:
    return f"state/{spec.of}" if spec.role == "state" else spec.of


def reports_of(
    flow: FlowAsset,
    windows: Sequence[TickWindow],
    prepared: PreparedRange,
    batches: Mapping[str, Batch],
    judged: TickVerdicts,
    pipeline: Pipeline,
) -> list[TickReport]:
    """The reports of ticks that were judged together; none is committed if a verdict is broken."""
    reads, calendar = [batch.read for batch in batches.values()], flow.ticks.calendar
    broken = [(asset, verdict) for asset, verdict in judged.verdicts if verdict.stops]
    said = "; ".join(f"`{asset}`: {v.check} ({v.says})" for asset, v in broken)
    number = "a check" if len(broken) == 1 else f"{len(broken)} checks"
    ticks = [window.tick for window in windows]
    counted = {asset_of(w.spec): _by_tick(w) for w in prepared.written.values()}
    counted |= {f"landing/{name}": _arrived(batch, windows) for name, batch in batches.items()}
    growth = {asset_of(w.spec): _growth(w) for w in prepared.written.values()}
    totals = {
        asset_of(w.spec): _totals(w, prepared, ticks, growth[asset_of(w.spec)])
        for w in prepared.written.values()
    }

    def verdict_of(asset: str, verdict: Verdict, tick: int) -> Verdict:
        if len(windows) == 1 or not verdict.passed:
            return verdict
        shown = judged.rows.get(asset, Counter())[tick]
        total = totals[asset].get(tick)
        return replace(verdict, seen=_seen_of(verdict, shown, growth[asset][tick], total))

    return [
        TickReport(
            window,
            committed=not broken,
            problem=f"{number} failed, so nothing of it is committed: {said}" if broken else "",
            cure=CURE if broken and all(ROWS in verdict.seen for _, verdict in broken) else "",
            verdicts=[(asset, verdict_of(asset, v, window.tick)) for asset, v in judged.verdicts],
            rows={
                asset: counts[window.tick]
                for asset, counts in counted.items()
                if asset not in totals or window.tick in totals[asset]
            },
            totals={a: found[window.tick] for a, found in totals.items() if window.tick in found},
            tables=tables_of(pipeline),
            empty=_empty(reads, window),
            noticed=noticed_at(calendar, reads, is_first=window == windows[0]),
        )
        for window in windows
    ]


def committed(
    reports: Sequence[TickReport], commit: Commit, pipeline: Pipeline
) -> Iterator[TickReport]:
    """The reports of ticks whose commit is made: the tables are as the last of them leaves them."""
    for report in reports:
        sizes = sizes_of(pipeline) if report is reports[-1] else {}
        yield replace(
            report,
            commit=commit.sequence,
            seconds=seconds_of(commit),
            sizes=sizes,
            ran_again=commit.ran_again,
        )


def report_of_error(window: TickWindow, error: HydroError, *, judged: bool) -> TickReport:
    """The report of a tick that was not committed because of an error."""
    problems = [diagnostic.says() for diagnostic in error.diagnostics]
    cures = dict.fromkeys(d.help for d in error.diagnostics if d.help)
    return TickReport(window, False, "\n\n".join(problems), "; ".join(cures), judged=judged)


def report_of_committed(
    flow: FlowAsset, pipeline: Pipeline, window: TickWindow, commit: Commit
) -> TickReport:
    """The report of a tick that is committed, from the ledger and, within a range, the tables."""
    rows = {asset_of(spec): _stored(pipeline, spec, commit, window) for spec in pipeline.tables}
    if len(commit.ticks) == 1:
        rows |= {f"landing/{read.name}": read.rows or 0 for read in commit.inputs}
    verdicts = []
    for asset, checks in commit.checks.get("passed", {}).items():
        says = {**LAW_CHECKS, **declared_checks(flow.expect.get(asset, ()))}
        verdicts += [(asset, Verdict(name, True, says.get(name, name))) for name in checks]
    last = pipeline.ledger.last_tick == window.tick
    specs = pipeline.tables if last else ()
    return TickReport(
        window,
        committed=True,
        verdicts=verdicts,
        rows=rows,
        totals={asset_of(spec): pipeline.store.row_count(spec.name) for spec in specs},
        tables=tables_of(pipeline),
        again=f"{window.key} was committed on {commit.committed:%Y-%m-%d at %H:%M} UTC: "
        "this run computed nothing, it recorded what is there. To compute it and the ticks after "
        f"it from what is landed now, launch it with the tag `{CORRECT_TAG}` = `{CORRECT}`, or run "
        f"`hydrotick correct {flow.name} --from {window.key}`",
        commit=commit.sequence,
        seconds=seconds_of(commit),
        sizes=sizes_of(pipeline) if last else {},
        empty=_empty(commit.inputs, window),
        noticed=noticed_at(
            flow.ticks.calendar, commit.inputs, is_first=window.tick == commit.first
        ),
        events=kept_events(commit, window.tick),
        ran_again=commit.ran_again,
    )


def _empty(reads: Iterable[InputRead], window: TickWindow) -> tuple[str, ...]:
    return tuple(read.name for read in reads if window.tick in read.empty)


def checks_passed(verdicts: Verdicts) -> dict[str, list[str]]:
    """The checks that passed by asset, as the ledger keeps them."""
    found: dict[str, list[str]] = {}
    for asset, verdict in verdicts:
        if verdict.passed:
            found.setdefault(asset, []).append(verdict.check)
    return found


def _by_tick(written: WrittenRows) -> Counter[int]:
    tick, found = written.spec.tick, Counter[int]()
    for piece in written.pieces([tick]):
        found.update(_count(piece[tick]))
    return found


def _seen_of(verdict: Verdict, shown: int, grown: int, total: int | None) -> dict[str, Any]:
    """What was seen of one tick of a range that passed: what holds of a range, holds of its ticks.

    Its hash sums are those of the range alone.
    """
    # A table that each tick replaces has the rows of the last alone.
    added = None if total is None else grown
    rows = {
        "element_count": shown,
        "batch_rows": added,
        "written_rows": added,
        "after_rows": total,
        "expected_rows": total,
    }
    seen = {name: rows.get(name, value) for name, value in verdict.seen.items()}
    return {k: v for k, v in seen.items() if v is not None and not k.endswith("_keys")}


def _totals(
    written: WrittenRows, prepared: PreparedRange, ticks: Sequence[int], growth: Counter[int]
) -> dict[int, int]:
    """How many rows the table has with each tick of a range, as far as that can be told."""
    spec = written.spec
    total = prepared.stored_rows(spec.name)
    if spec.form.stored == "last":
        return {ticks[-1]: total}
    found = {}
    for tick in reversed(ticks):
        found[tick] = total
        total -= growth[tick]
    return found


def _growth(written: WrittenRows) -> Counter[int]:
    """By how many rows each tick makes the table longer: of a log, what its changes sum up to."""
    spec = written.spec
    if not spec.is_log:
        return _by_tick(written)
    found = Counter[int]()
    for rows in written.pieces([spec.tick, spec.count_column]):
        sums = rows.group_by(spec.tick).aggregate([(spec.count_column, "sum")])
        found.update(_numbers(sums[spec.tick], sums[f"{spec.count_column}_sum"]))
    return found


def _arrived(batch: Batch, windows: Sequence[TickWindow]) -> Counter[int]:
    """How many rows each tick read of an input."""
    if isinstance(batch.rows, pa.Table):
        return _count(batch.rows["t"])
    if len(windows) == 1 and batch.read.rows is not None:
        return Counter({windows[0].tick: batch.read.rows})
    return Counter({row["t"]: row["count"] for row in batch.rows.groupBy("t").count().collect()})


def _count(ticks: pa.ChunkedArray[Any]) -> Counter[int]:
    return _numbers(*ticks.value_counts().flatten())


def _numbers(
    ticks: pa.ChunkedArray[Any] | pa.Array[Any], of: pa.ChunkedArray[Any] | pa.Array[Any]
) -> Counter[int]:
    """Ticks with a number of each, neither of them null."""
    return Counter(dict(zip(ticks.to_numpy().tolist(), of.to_numpy().tolist(), strict=True)))


def _stored(pipeline: Pipeline, spec: TableSpec, commit: Commit, window: TickWindow) -> int:
    if len(commit.ticks) == 1:
        return commit.rows.get(spec.name, 0)
    return sum(p.num_rows for p in pipeline.store.pieces(spec.name, window.tick, window.tick))


def tables_of(pipeline: Pipeline) -> dict[str, str]:
    return {asset_of(spec): str(pipeline.directory / spec.name) for spec in pipeline.tables}


def sizes_of(pipeline: Pipeline) -> dict[str, int]:
    """The bytes of each asset's table as it stands: of the files that it names."""
    return {asset_of(spec): pipeline.store.size(spec.name) for spec in pipeline.tables}


def seconds_of(commit: Commit) -> float:
    """How long a commit took, from when it looked at its inputs."""
    return (commit.committed - commit.started).total_seconds()
