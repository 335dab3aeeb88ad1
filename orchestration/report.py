"""How a tick ended, for Dagster's records and for people: verdicts, rows and tables by asset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from assets.spec import FlowAsset
from orchestration.quality.suites import LAW_CHECKS, declared_checks
from orchestration.quality.validate import Verdict
from orchestration.ticks import Window

if TYPE_CHECKING:
    import pyarrow as pa

    from hydro_core.spark.batches import Batch
    from hydro_core.spark.ledger import Commit, InputRead
    from hydro_core.spark.pipeline import Pipeline
    from hydro_core.spark.pipeline_prepared import Prepared
    from hydro_core.spark.store_schema import TableSpec
    from hydro_core.spark.store_write import Written

Verdicts = Sequence[tuple[str, Verdict]]
"""What was found, with the asset that it is about: "state/NAME", or an output's name."""


@dataclass(frozen=True, slots=True)
class TickReport:
    """How a tick ended; `problem` says why it was not committed.

    `judged`: if it was not, whether its program or data are at fault, and not what it runs on.
    """

    window: Window
    committed: bool
    problem: str = ""
    verdicts: Verdicts = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows that the tick added, by asset; inputs as "landing/NAME"."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Where the table of each asset is."""
    judged: bool = True
    empty: tuple[str, ...] = ()
    """The inputs of which no row is of the tick."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the UI shows of the tick as a whole."""
        read = {name: rows for name, rows in self.rows.items() if name.startswith("landing/")}
        total = {"rows read": sum(read.values())} if read else {}
        missing = {"inputs without rows": ", ".join(self.empty)} if self.empty else {}
        return {"tick": self.window.tick, **total, **read, **missing}

    def metadata_of(self, asset: str) -> dict[str, Any]:
        """What the UI shows of one asset of the tick."""
        if asset not in self.tables:
            return self.metadata
        return {
            "tick": self.window.tick,
            "dagster/row_count": self.rows.get(asset, 0),
            "dagster/table_name": self.tables[asset],
            **({"inputs without rows": ", ".join(self.empty)} if self.empty else {}),
        }


def asset_of(spec: TableSpec) -> str:
    """The name of the asset that a table is."""
    return f"state/{spec.of}" if spec.role == "state" else spec.of


def reports_of(
    windows: Sequence[Window],
    prepared: Prepared,
    batches: Mapping[str, Batch],
    verdicts: Verdicts,
    pipeline: Pipeline,
) -> list[TickReport]:
    """The reports of ticks that were judged together; none is committed if a verdict is broken."""
    broken = [(asset, verdict) for asset, verdict in verdicts if verdict.stops]
    counted = {asset_of(w.spec): _by_tick(w) for w in prepared.written.values()}
    counted |= {f"landing/{name}": _arrived(batch) for name, batch in batches.items()}
    tables = _tables(pipeline)
    return [
        TickReport(
            window,
            committed=not broken,
            problem=_problem(broken) if broken else "",
            verdicts=verdicts,
            rows={asset: counts[window.tick] for asset, counts in counted.items()},
            tables=tables,
            empty=_empty([batch.read for batch in batches.values()], window),
        )
        for window in windows
    ]


def report_of_committed(
    flow: FlowAsset, pipeline: Pipeline, window: Window, commit: Commit
) -> TickReport:
    """The report of a tick that is committed, from the ledger and, within a range, the tables."""
    rows = {asset_of(spec): _stored(pipeline, spec, commit, window) for spec in pipeline.tables}
    if len(commit.ticks) == 1:
        rows |= {f"landing/{read.name}": read.rows or 0 for read in commit.inputs}
    verdicts = [
        (asset, Verdict(check, passed=True, says=_says(flow, asset, check)))
        for asset, checks in commit.checks.get("passed", {}).items()
        for check in checks
    ]
    return TickReport(
        window, True, "", verdicts, rows, _tables(pipeline), empty=_empty(commit.inputs, window)
    )


def _empty(reads: Iterable[InputRead], window: Window) -> tuple[str, ...]:
    return tuple(read.name for read in reads if window.tick in read.empty)


def checks_passed(verdicts: Verdicts) -> dict[str, list[str]]:
    """The checks that passed by asset, as the ledger keeps them."""
    found: dict[str, list[str]] = {}
    for asset, verdict in verdicts:
        if verdict.passed:
            found.setdefault(asset, []).append(verdict.check)
    return found


def _by_tick(written: Written) -> Counter[int]:
    column = written.spec.tick
    if written.table is not None:
        return _count(written.table[column])
    files = [pq.ParquetFile(file).read(columns=[column]) for file in written.files]
    return sum((_count(file[column]) for file in files), Counter())


def _arrived(batch: Batch) -> Counter[int]:
    if batch.is_small:
        return _count(batch.rows["t"])
    return Counter()


def _count(ticks: pa.ChunkedArray) -> Counter[int]:
    return Counter({part["values"]: part["counts"] for part in ticks.value_counts().to_pylist()})


def _stored(pipeline: Pipeline, spec: TableSpec, commit: Commit, window: Window) -> int:
    if len(commit.ticks) == 1:
        return commit.rows.get(spec.name, 0)
    return pipeline.store.arrow(spec.name, window.tick, window.tick).num_rows


def _tables(pipeline: Pipeline) -> dict[str, str]:
    return {asset_of(spec): str(pipeline.directory / spec.name) for spec in pipeline.tables}


def _says(flow: FlowAsset, asset: str, check: str) -> str:
    known = {**LAW_CHECKS, **declared_checks(flow.expect.get(asset, ()))}
    return known.get(check, check)


def _problem(broken: Verdicts) -> str:
    said = "; ".join(f"`{asset}`: {v.check} ({v.says})" for asset, v in broken)
    number = "a check" if len(broken) == 1 else f"{len(broken)} checks"
    return f"{number} failed, so nothing of it is committed: {said}"
