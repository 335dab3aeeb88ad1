"""The facts of a tick, gathered in one pass over what it wrote: counts, and sums of the hashes of
rows.

A hash sum is that of a bag: it does not depend on the order of the rows, and sums of bags are sums
of hash sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.spark.frames.row_hashes import row_hashes

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
            before_rows, before_keys = 0, 0
        elif known is not None:
            before_rows, before_keys = known["rows"], int(known["keys"])
        else:
            before_rows, before_keys, _ = measure_all(prepared.read_before(spec.name), spec)
        batch_rows, batch_keys, _ = measure_all(written.pieces(), spec)
        written_rows, written_keys, back = measure_all(prepared.read_back(spec.name), spec)
        facts.append(
            TableFacts(
                table=slot,
                before_rows=before_rows,
                batch_rows=batch_rows,
                written_rows=written_rows,
                after_rows=written_rows if spec.bound else prepared.stored_rows(spec.name),
                before_keys=before_keys,
                batch_keys=batch_keys,
                written_keys=written_keys,
                after_keys=(before_keys + written_keys) % _MODULUS,
                declared_type=_type(spec.arrow_schema),
                stored_type=_type(back),
            )
        )
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
    before_rows, before_keys, _ = old
    written_rows, written_keys, _ = new
    after_rows, after_keys, stored = all_rows
    batch_rows = int(known.get("batch_rows", commit.rows[spec.name]))
    return TableFacts(
        table=slot,
        before_rows=before_rows,
        batch_rows=batch_rows,
        written_rows=written_rows,
        after_rows=after_rows,
        before_keys=before_keys,
        batch_keys=int(known["batch_keys"]),
        written_keys=written_keys,
        after_keys=after_keys,
        declared_type=_type(spec.arrow_schema),
        stored_type=_type(stored),
    )


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


def _type(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
