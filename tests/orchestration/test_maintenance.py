"""After every maintenance command, the next tick runs in Dagster, and its laws are judged."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.ledger.lock import WriterLock
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.instance.opening import open_instance
from hydrotick.quality.judge import measure
from hydrotick.quality.suites import PERSIST
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import Run, contents, opened, reason, serve

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

TICKS = 4


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    flow, runner = opened(tmp_path_factory.mktemp("expected"))
    with dg.DagsterInstance.ephemeral() as found:
        assert Run(flow, runner, found)(0, TICKS - 1).success
    return contents(flow, runner)


def compact_twice(pipeline: Pipeline) -> None:
    pipeline.compact(keep_hours=0)
    pipeline.compact()


MAINTENANCE: Mapping[str, Callable[[Pipeline], object]] = {
    "compact": lambda pipeline: pipeline.compact(),
    "compact, keep nothing": lambda pipeline: pipeline.compact(keep_hours=0),
    "compact twice": compact_twice,
    "rewind": lambda pipeline: pipeline.rewind(0),
    "rewind to before the first": lambda pipeline: pipeline.rewind(-1),
}


@pytest.mark.parametrize("command", MAINTENANCE)
def test_ticks_run_after_it(
    tmp_path: Path,
    instance: dg.DagsterInstance,
    expected: Mapping[str, list[str]],
    command: str,
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0).success
    assert run(1).success
    MAINTENANCE[command](runner.pipeline(flow))
    assert verify(runner.directory(flow), measure).problems == ()
    for tick in range(runner.next_tick(flow), TICKS):
        result = run(tick)
        assert result.success
        assert not run.failed(result)
        assert len(run.checks(result)) == 13
    assert verify(runner.directory(flow), measure).problems == ()
    assert contents(flow, runner) == expected


def test_a_row_that_is_lost_after_it_fails_its_law(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0).success
    pipeline = runner.pipeline(flow)
    pipeline.compact()
    append = StoredTable.append
    monkeypatch.setattr(StoredTable, "append", lambda table, rows: append(table, rows.slice(1)))
    result = run(1)
    assert not result.success
    assert f"payments_state:{PERSIST}" in run.failed(result)
    assert runner.next_tick(flow) == 1


def test_a_pipeline_that_ran_without_checks_goes_on_with_them(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Commits of the API carry no facts; those before a tick are then taken from the tables."""
    flow, runner = opened(tmp_path)
    rows = pa.table({"user": ["ann", "bob"], "amount": [1, 2]})
    runner.pipeline(flow).run_tick(0, {"payments": rows})
    run = Run(flow, runner, instance)
    result = run(1)
    assert result.success
    assert not run.failed(result)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FlowAsset, TickRunner]:
    """The flow, two of whose ticks have run as `backfill` runs them, as that of the commands."""
    flow, runner = opened(tmp_path)
    list(run_ticks(flow, runner, 1, lambda _: None))
    monkeypatch.setenv("HYDROTICK_HOME", str(tmp_path))
    serve(monkeypatch, [flow])
    return flow, runner


def recorded(flow: FlowAsset, runner: TickRunner) -> dict[str, int]:
    """How many ticks Dagster has of each asset, and how many runs."""
    with open_instance(runner.project.dagster_home) as instance:
        keys = [asset_key(flow, asset) for asset in ("state/payments", "totals", "before")]
        found = {key.path[-1]: len(instance.get_materialized_partitions(key)) for key in keys}
        return {**found, "runs": instance.get_runs_count()}


def test_a_flow_starts_over_in_both_memories(
    project: tuple[FlowAsset, TickRunner],
    expected: Mapping[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow, runner = project
    directory = runner.directory(flow)
    before = recorded(flow, runner)
    assert before == {"payments_state": 2, "totals": 2, "before": 2, "runs": 2}

    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    assert main(["reset", "small"]) == 1
    said = capsys.readouterr().out
    assert f"{directory}: 2 committed ticks" in said
    assert "Dagster's records of" in said
    assert "Nothing was removed" in said
    assert recorded(flow, runner) == before

    with WriterLock(directory):
        assert main(["reset", "small", "--yes"]) == 1
    assert "another writer" in capsys.readouterr().err
    assert (recorded(flow, runner), runner.next_tick(flow)) == (before, 2)

    assert main(["reset", "small", "--yes"]) == 0
    assert not directory.exists()
    assert list(directory.parent.iterdir()) == []
    assert set(recorded(flow, runner).values()) == {0}
    assert main(["reset", "small", "--yes"]) == 0
    assert "nothing to remove" in capsys.readouterr().out
    # A process that has worked on the pipeline before goes on with the new one.
    list(run_ticks(flow, runner, TICKS - 1, lambda _: None))
    assert contents(flow, runner) == expected
    assert recorded(flow, runner)["totals"] == TICKS


def test_a_pipeline_that_is_lost_is_refused_in_words(
    project: tuple[FlowAsset, TickRunner],
    tmp_path: Path,
    expected: Mapping[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    flow, runner = project
    directory = runner.directory(flow)
    directory.rename(tmp_path / "elsewhere")
    said = "Dagster has 2 ticks of `small`, the last one 2026-01-02, but there is no ledger in"
    assert main(["backfill", "small", "--to", "2026-01-03"]) == 1
    problem = capsys.readouterr().err
    assert said in problem
    assert "hydrotick reset small" in problem
    with open_instance(runner.project.dagster_home) as instance:
        result = Run(flow, runner, instance)(0)
        assert not result.success
        assert said in reason(result)
    assert not directory.exists()
    (tmp_path / "elsewhere").rename(directory)
    list(run_ticks(flow, runner, TICKS - 1, lambda _: None))
    assert contents(flow, runner) == expected


def test_copies_and_verification_on_the_command_line(
    project: tuple[FlowAsset, TickRunner],
    tmp_path: Path,
    expected: Mapping[str, list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    flow, runner = project
    assert main(["status", "--verify"]) == 0
    assert "small: whole: " in capsys.readouterr().out
    assert main(["copy", "small", str(tmp_path / "copy")]) == 0
    assert "small: copied up to tick 2026-01-02" in capsys.readouterr().out
    assert main(["copy", "small", str(tmp_path / "copy")]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["compact", "small", "--keep-hours", "-2"]) == 1
    assert "kept for -2 hours" in capsys.readouterr().err

    directory = runner.directory(flow)
    state = runner.pipeline(flow).state_tables["payments"].name
    with _changed(directory / state):
        assert main(["status", "--verify"]) == 1
        assert f"{state} has other values than those that were committed" in capsys.readouterr().out
    assert main(["status", "--verify"]) == 0
    log = runner.pipeline(flow).state_tables["running_aggregate_1"].name
    for entry, shown, said in (
        (_first_rows(directory / "outputs/totals"), "totals", "totals has 0 rows of tick 0, the"),
        (_first_rows(directory / log), "running_aggregate_1", f"{log} has other values"),
        (next(directory.glob("deployments/*/plan.json")), "", "is not what was written"),
    ):
        content = entry.read_bytes()
        entry.write_bytes(b"")
        capsys.readouterr()
        assert main(["status", "--verify"]) == 1
        assert said in capsys.readouterr().out
        if shown:
            assert main(["show", "small", shown]) == 1
            assert said in capsys.readouterr().err
        entry.write_bytes(content)
    assert main(["status", "--verify"]) == 0
    lost = next((directory / "outputs/totals").glob("*.parquet"))
    lost.unlink()
    assert main(["status", "small", "--verify"]) == 1
    assert f"outputs/totals has lost its file {lost.name}" in capsys.readouterr().out
    shutil.rmtree(directory)
    (tmp_path / "copy" / "small").rename(directory)
    assert main(["status", "small", "--verify"]) == 0
    list(run_ticks(flow, runner, TICKS - 1, lambda _: None))
    assert contents(flow, runner) == expected


def _first_rows(table: Path) -> Path:
    """The entry of a log that has the files of the first tick."""
    entries = sorted((table / "_delta_log").glob("*.json"))
    return next(entry for entry in entries if '"add"' in entry.read_text(encoding="utf-8"))


@contextmanager
def _changed(table: Path) -> Iterator[None]:
    """Within it, somebody has changed a value of a table, and its log so that it fits."""
    # A table that each tick replaces has files of earlier ticks beside the one that is read.
    file = Path(DeltaTable(table).file_uris()[0])
    kept = {path: path.read_bytes() for path in (file, *table.glob("_delta_log/*.json"))}
    rows = pq.ParquetFile(file).read()
    items = [{**item, "amount": item["amount"] + 1} for item in rows["item"].to_pylist()]
    place = rows.column_names.index("item")
    changed = rows.set_column(place, "item", pa.array(items, rows.schema.field("item").type))
    pq.write_table(changed, file)
    sizes = f'"size":{len(kept[file])}', f'"size":{file.stat().st_size}'
    for path in kept.keys() - {file}:
        if file.name in (text := kept[path].decode()):
            path.write_text(text.replace(*sizes), encoding="utf-8")
    try:
        yield
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
