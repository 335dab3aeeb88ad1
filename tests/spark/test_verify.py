"""A pipeline is judged by its ledger: whatever is missing or changed in its directory is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError
from hydro_core.files import parquet
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.copies import copy_pipeline, verify
from hydro_core.spark.pipeline.rework import correction
from hydro_core.spark.pipeline.rows import rows_at
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger
from hydro_core.types.ddl import parse_ddl
from tests.spark.pipelines import SETTINGS, Crash, batch, contents, crash_at, opened
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


@pytest.fixture(scope="module")
def three_ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("three") / "pipeline"
    for tick, bound in enumerate((100, 0, 100)):
        pipeline = opened(directory, settings=SETTINGS.with_(small_write_rows=bound))
        pipeline.run_tick(tick, batch(tick))
    return directory


@pytest.fixture
def committed(three_ticks: Path, tmp_path: Path) -> Path:
    """A pipeline with three committed ticks, of the test's own."""
    return Path(shutil.copytree(three_ticks, tmp_path / "pipeline"))


OUTPUT = "outputs/notify"


def test_a_whole_pipeline_has_no_problems(committed: Path) -> None:
    found = verify(committed)
    assert found.problems == found.notes == ()
    files = [f for f in committed.rglob("*.parquet") if "_ledger" not in f.parts]
    assert (found.last, found.tables, found.files) == (2, len(opened(committed).tables), len(files))
    assert found.rows == sum(table.rows for table in opened(committed).store.tables.values())
    assert found.bytes == sum(file.stat().st_size for file in files)


def test_nothing_is_whole(tmp_path: Path) -> None:
    assert verify(tmp_path / "nothing").last == -1
    assert verify(tmp_path / "nothing").problems == ()


@pytest.mark.parametrize("how", ["compact", "rewind", "ahead", "rework"])
def test_what_maintenance_leaves_is_whole(committed: Path, how: str) -> None:
    pipeline = opened(committed)
    match how:
        case "compact":
            pipeline.compact(keep_hours=0)
        case "rewind":
            pipeline.rewind(0)
        case "ahead":
            pipeline.step = crash_at("tables")
            with pytest.raises(Crash):
                pipeline.run_tick(3, batch(3))
        case "rework":
            with correction(pipeline, 1) as rework:
                for tick in (1, 2):
                    rework.staging.run_tick(tick, batch(tick, messages=5))
                rework.replace()
    found = verify(committed)
    assert found.problems == ()
    assert bool(found.notes) == (how == "ahead")
    if how == "ahead":
        assert "ahead of the ledger" in found.notes[0]


# `delta` of what comes and goes keeps the last tick only.
LAST_ONLY = """
messages = source("user string, text string")
messages -> window(2) -> aggregate(by="user", n=count()) -> sort() -> enumerate() -> delta() -> out
"""


@pytest.mark.parametrize("how", ["range", "rework"])
def test_a_table_of_the_last_tick_is_counted_in_ranges_too(tmp_path: Path, how: str) -> None:
    pipeline = opened(tmp_path / "pipeline", LAST_ONLY)
    ticks = [{"messages": batch(tick, messages=3 + tick)["messages"]} for tick in range(4)]
    if how == "range":
        pipeline.run_tick(0, ticks[0])
        rows = pa.concat_tables(tick["messages"] for tick in ticks[1:])
        numbers = pa.array([t for t in (1, 2, 3) for _ in range(3 + t)], pa.int64())
        item = parse_ddl("user string, text string")
        pipeline.run_range(1, 3, {"messages": batch_of("messages", rows, item, numbers)})
    else:
        for tick, rows in enumerate(ticks):
            pipeline.run_tick(tick, rows)
        with correction(pipeline, 1) as rework:
            for tick in range(rework.first, 4):
                rework.staging.run_tick(tick, ticks[tick])
            rework.replace()
    assert verify(pipeline.directory).problems == ()
    (table,) = (s.name for s in pipeline.state_tables.values() if s.form is Form.VALUES)
    commit = pipeline.ledger.last
    assert commit is not None
    assert len(commit.ticks) > 1
    wrong = {**commit.rows, table: commit.rows[table] + 1}
    _set_last(pipeline.directory, rows=list(wrong.items()))
    (problem,) = verify(pipeline.directory).problems
    assert f"{table} has {commit.rows[table]:,} rows of ticks" in problem


def _lose_file(table: Path) -> str:
    file = next(iter(sorted(table.glob("*.parquet"))))
    file.unlink()
    return f"has lost its file {file.name}"


def _cut_file(table: Path) -> str:
    file = next(iter(sorted(table.glob("*.parquet"))))
    file.write_bytes(file.read_bytes()[:-1])
    return f"the file {file} has {file.stat().st_size:,} bytes"


def _damage_file(table: Path) -> str:
    """The data is overwritten, the footer and the size stay."""
    file = next(iter(sorted(table.glob("*.parquet"))))
    old = file.read_bytes()
    file.write_bytes(old[:4] + b"\xff" * 60 + old[64:])
    return f"the file {file} cannot be read"


def _lose_table(table: Path) -> str:
    shutil.rmtree(table)
    return f"the table {table} is missing; the ledger has it at version"


def _lose_version(table: Path) -> str:
    version = DeltaTable(table).version()
    (table / "_delta_log" / f"{version:020}.json").unlink()
    return f"the table {table} ends at version {version - 1}, the ledger at {version}"


def _lose_log(table: Path) -> str:
    shutil.rmtree(table / "_delta_log")
    return f"the table {table} cannot be read"


def _fewer_rows(table: Path) -> str:
    """Another file of the same size and with other rows, as its log has it, too."""
    log = sorted((table / "_delta_log").glob("*.json"))
    file = next(iter(sorted(table.glob("*.parquet"))))
    rows = pq.ParquetFile(file).read()
    size = file.stat().st_size
    pq.write_table(rows.slice(1), file)
    for entry in log:
        text = entry.read_text()
        if file.name in text:
            text = text.replace(f'"size":{size}', f'"size":{file.stat().st_size}')
            text = text.replace(
                f'\\"numRecords\\":{rows.num_rows}', f'\\"numRecords\\":{rows.num_rows - 1}'
            )
            entry.write_text(text)
    return f"the table {table} has {rows.num_rows - 1:,} rows of tick"


def _empty_entry(table: Path) -> str:
    """The entry of the log that has the rows of the first tick says nothing any more."""
    for entry in sorted((table / "_delta_log").glob("*.json")):
        if '"add"' in entry.read_text():
            entry.write_text("")
            break
    return f"the table {table} has 0 rows of tick 0, the ledger"


BREAKS: tuple[Callable[[Path], str], ...] = (
    *(_lose_file, _cut_file, _damage_file, _lose_table, _lose_version, _lose_log, _fewer_rows),
    _empty_entry,
)


@pytest.mark.parametrize(("breaks", "table"), alternately_slow(BREAKS, ["output", "state"]))
def test_what_is_missing_or_changed_is_named(
    committed: Path, breaks: Callable[[Path], str], table: str
) -> None:
    pipeline = opened(committed)
    name = OUTPUT if table == "output" else pipeline.state_tables["messages"].name
    if breaks is _empty_entry:
        # What checks know of a table tells that nothing of it leaves.
        known = {"tables": {name: {"rows": 0, "keys": "0"}}}
        _set_last(committed, checks=json.dumps(known))
    said = breaks(committed / name)
    (problem,) = verify(committed).problems
    assert said in problem
    if breaks is _damage_file and table == "output":
        # Only who reads a file finds damage within it.
        for file in (committed / name).glob("*.parquet"):
            file.write_bytes(file.read_bytes()[:4] + b"\xff" * 60 + file.read_bytes()[64:])
        said = "cannot be read"
    with pytest.raises(DataError) as caught:
        rows_at(opened(committed), "notify" if table == "output" else "messages", 2)
    if breaks is not _lose_version:
        assert said in str(caught.value)
    with pytest.raises(DataError, match="cannot be copied"):
        copy_pipeline(committed, committed.parent / "copy")


@pytest.mark.parametrize("limit", [None, 0, 1, 1000])
def test_to_show_rows_of_a_tick_no_file_of_other_ticks_is_opened(
    committed: Path, limit: int | None
) -> None:
    whole = list(rows_at(opened(committed), "notify", 2).rows)
    files = opened(committed).store.tables[OUTPUT].files()
    for file in files:
        if not file.may_hold(2, 2):
            file.path.write_bytes(b"\0" * file.size)
    assert 0 < sum(file.may_hold(2, 2) for file in files) < len(files)
    found = rows_at(opened(committed), "notify", 2, limit)
    assert list(found.rows) == whole[:limit]
    assert found.total == len(whole) > 1


@pytest.mark.parametrize("piece", [1, 2, 1000])
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 10])
def test_the_first_rows_are_the_same_in_any_pieces(
    committed: Path, monkeypatch: pytest.MonkeyPatch, piece: int, limit: int | None
) -> None:
    whole = list(rows_at(opened(committed), "notify", 2).rows)
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", piece)
    found = rows_at(opened(committed), "notify", 2, limit)
    assert (list(found.rows), found.total) == (whole[:limit], len(whole))


@pytest.mark.parametrize("is_wrong", [False, True])
def test_files_of_several_ticks_are_judged_by_their_ticks(committed: Path, is_wrong: bool) -> None:
    commit = opened(committed).ledger.refresh()
    if is_wrong:
        _set_last(committed, rows=list({**commit.rows, OUTPUT: 99}.items()))
    opened(committed).compact(keep_hours=0)
    assert len(opened(committed).store.tables[OUTPUT].files()) == 1
    if is_wrong:
        with pytest.raises(DataError, match="rows of tick 2, the ledger 99"):
            rows_at(opened(committed), "notify", 2)
    else:
        assert rows_at(opened(committed), "notify", 2).total == commit.rows[OUTPUT]


def test_rows_of_the_ledger_that_are_lost_are_named(committed: Path) -> None:
    ledger = Ledger(committed)
    kept = [c for c in pa.Table.to_pylist(_rows_of(committed)) if c["sequence"] != 1]
    schema = _rows_of(committed).schema
    write_deltalake(committed / LEDGER, pa.Table.from_pylist(kept, schema), mode="overwrite")
    assert ledger.exists
    (problem,) = verify(committed).problems
    assert "has lost row 1" in problem


def _set_last(directory: Path, **columns: Any) -> None:
    """Changes what the last row of the ledger says."""
    kept, schema = _rows_of(directory).to_pylist(), _rows_of(directory).schema
    max(kept, key=lambda row: row["sequence"]).update(columns)
    write_deltalake(directory / LEDGER, pa.Table.from_pylist(kept, schema), mode="overwrite")


def _rows_of(directory: Path) -> pa.Table:
    table: pa.Table = DeltaTable(directory / LEDGER).to_pyarrow_table()
    return table


def test_tables_without_a_ledger_are_named(committed: Path) -> None:
    shutil.rmtree(committed / LEDGER)
    (problem,) = verify(committed).problems
    assert "has tables but no ledger" in problem


def test_a_copy_is_as_of_the_commit_and_goes_on_by_itself(committed: Path, tmp_path: Path) -> None:
    pipeline = opened(committed)
    before = contents(pipeline)
    with pipeline.prepare(3, 3, batch(3)) as prepared:
        prepared.write()
        found = copy_pipeline(committed, tmp_path / "copy")
        prepared.commit()
    assert found.last == 2
    copy = opened(tmp_path / "copy")
    assert contents(copy) == before
    assert verify(tmp_path / "copy").problems == ()
    copy.run_tick(3, batch(3))
    assert contents(copy) == contents(pipeline)
    copy.rewind(0)
    assert contents(pipeline) != contents(copy)
