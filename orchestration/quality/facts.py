"""The facts of a tick, gathered in one pass over what it wrote: counts, and sums of the hashes of
rows.

A hash sum is that of a bag: it does not depend on the order of the rows, and sums of bags are sums
of hash sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.spark.store.outputs.shown_rows import shown_of

from .suites import TableFacts

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import Prepared
    from hydro_core.spark.store.ledger.commit import Commit
    from hydro_core.spark.store.schema import TableSpec

_MODULUS = 2**64


def key_sum(rows: pa.Table, count: str | None = None) -> int:
    """The sum of the hashes of all rows, modulo 2**64: their order does not count; each as often as
    the column `count` says.
    """
    import numpy as np

    if count is None:
        return int(row_hashes(rows).sum(dtype=np.uint64)) % _MODULUS
    hashes = row_hashes(rows.drop_columns([count])) * rows[count].to_numpy().astype(np.uint64)
    return int(hashes.sum(dtype=np.uint64)) % _MODULUS


def measure(rows: pa.Table, spec: TableSpec) -> tuple[int, int]:
    """How many rows there are, and the sum of their hashes.

    Changes count as the rows that they add and take away, in whichever tick: so both are the same
    when a log has been summed up.
    """
    if not spec.is_log:
        return rows.num_rows, key_sum(rows)
    counts = pc.sum(rows[spec.count_column]).as_py() or 0
    return counts, key_sum(rows.drop_columns([spec.tick]), spec.count_column)


def measure_all(pieces: Iterable[pa.Table], spec: TableSpec) -> tuple[int, int, pa.Schema]:
    """The same of rows that come in pieces, of which there is at least one; and their columns."""
    rows, keys, schema = 0, 0, spec.arrow_schema
    for piece in pieces:
        more, sum_ = measure(piece, spec)
        rows, keys, schema = rows + more, (keys + sum_) % _MODULUS, piece.schema
    return rows, keys, schema


def state_facts(prepared: Prepared, before: Commit | None) -> list[TableFacts]:
    """What a range that is written but not committed did to each state table that grows.

    `before` is the commit of the tick before; what it does not tell of a table, the table tells.
    """
    recorded: Mapping[str, Any] = {} if before is None else before.checks.get("tables", {})
    facts = []
    for slot, written in prepared.state.items():
        spec = written.spec
        known = recorded.get(spec.name)
        if spec.form.stored == "last" or spec.bound is not None:
            old = 0, 0
        elif known is not None:
            old = known["rows"], int(known["keys"])
        else:
            old = measure_all(prepared.read_before(spec.name), spec)[:2]
        batch = measure_all(shown_of(written).pieces(), spec)[:2]
        rows, keys, back = measure_all(prepared.read_back(spec.name), spec)
        after = rows if spec.bound else prepared.stored_rows(spec.name)
        measured = (old, batch, (rows, keys), (after, (old[1] + keys) % _MODULUS))
        facts.append(_facts_of(slot, measured, (spec.arrow_schema, back)))
    return facts


def committed_facts(pipeline: Pipeline, tick: int, slot: str) -> TableFacts | None:
    """The facts of a committed tick, worked out anew from the whole table; None where none were
    kept, or where a log has been summed up since.
    """
    specs = {spec.of: spec for spec in pipeline.tables if spec.role == "state"}
    commit = pipeline.ledger.commit_of(tick)
    spec = specs.get(slot)
    if commit is None or spec is None or spec.name not in commit.checks.get("tables", {}):
        return None
    if spec.is_log and pipeline.store.tables[spec.name].summed_to() >= commit.first:
        return None
    known = commit.checks["tables"][spec.name]
    parts = (0, commit.first - 1), (commit.first, commit.last), (0, commit.last)
    old, new, all_rows = (measure_all(pipeline.store.pieces(spec.name, *p), spec) for p in parts)
    if spec.form.stored == "last":
        old, all_rows = (0, 0, spec.arrow_schema), new
    batch = int(known.get("batch_rows", commit.rows[spec.name])), int(known["batch_keys"])
    measured = (old[:2], batch, new[:2], all_rows[:2])
    return _facts_of(slot, measured, (spec.arrow_schema, all_rows[2]))


def _facts_of(
    slot: str, measured: Sequence[tuple[int, int]], types: tuple[pa.Schema, pa.Schema]
) -> TableFacts:
    """The facts of a table by rows and hash sums: before, of the batch, as written, and after."""
    rows, keys = zip(*measured, strict=True)
    declared, stored = (", ".join(f"{of.name} {of.type}" for of in schema) for schema in types)
    columns: list[Any] = [slot, *rows, *keys, declared, stored]
    return TableFacts(*columns)


def kept(facts: list[TableFacts], specs: Mapping[str, TableSpec]) -> dict[str, dict[str, Any]]:
    """What the ledger keeps of the facts, for the next tick and for checks of what is committed."""
    return {
        specs[fact.table].name: {
            "rows": fact.after_rows,
            "keys": str(fact.after_keys),
            "batch_rows": fact.batch_rows,
            "batch_keys": str(fact.batch_keys),
        }
        for fact in facts
        if specs[fact.table].bound is None
    }


def kept_of_all(commits: Sequence[Commit]) -> dict[str, dict[str, Any]]:
    """What the ledger keeps of the facts of commits that become one: of the batches, their sum."""
    found: dict[str, dict[str, Any]] = {}
    for commit in commits:
        for name, known in commit.checks.get("tables", {}).items():
            found[name], before = known, found.get(name)
            if before is not None and not commit.replaces(name):
                keys = int(before["batch_keys"]) + int(known["batch_keys"])
                rows = before["batch_rows"] + known["batch_rows"]
                found[name] = {**known, "batch_rows": rows, "batch_keys": str(keys % _MODULUS)}
    return found
