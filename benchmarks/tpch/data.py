"""TPC-H's data as ticks: orders and lines come a share in each tick, and dimensions are corrected
again and again; some lines come a tick late, some customers, parts and suppliers after what names
them.

A correction is a row with the key of one, the attributes of another and a higher version. One in
five comes late: after the correction that is to count.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.judged import Ticks

KEYS = {
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "nation": ("n_nationkey",),
    "region": ("r_regionkey",),
}
"""The dimensions, by their keys."""
VERSIONS = {name: keys[0].partition("_")[0] + "_version" for name, keys in KEYS.items()}
FACTS = ("orders", "lineitem")
LATE = ("customer", "part", "supplier")
"""Dimensions of which some rows come after what names them."""
NOBODY = np.zeros(0, np.int64)


def made(scale: float, directory: Path) -> dict[str, pa.Table]:
    """TPC-H's tables at a scale factor, made by `tpchgen-cli` if they are not in the directory."""
    if not directory.exists():
        command = Path(sys.executable).parent / "tpchgen-cli"
        told = [command, "parquet", "-s", str(scale), "--output-dir", directory]
        subprocess.run(list(map(str, told)), check=True, capture_output=True)
    found = {name: _plain(pq.read_table(directory / f"{name}.parquet")) for name in (*FACTS, *KEYS)}
    return found | {"partsupp": _once(found["partsupp"])}


def _once(offers: pa.Table) -> pa.Table:
    """One offer of a supplier for a part: at small scale factors TPC-H makes some of them twice."""
    part, supplier = (offers[key].to_numpy() for key in KEYS["partsupp"])
    _, first = np.unique(part * (supplier.max() + 1) + supplier, return_index=True)
    return offers.take(np.sort(first))


def newest(name: str, of: str) -> str:
    """SQL for a dimension's rows that count, of all rows of `of` that have come."""
    keys = ", ".join(KEYS[name])
    number = f"row_number() OVER (PARTITION BY {keys} ORDER BY {VERSIONS[name]} DESC)"
    return f"SELECT * FROM (SELECT *, {number} AS newest FROM {of}) WHERE newest = 1"


def _plain(table: pa.Table) -> pa.Table:
    """The same with texts as all engines read them."""
    of = [pa.string() if pa.types.is_string_view(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema([f.with_type(t) for f, t in zip(table.schema, of, strict=True)]))


def as_ticks(
    tables: Mapping[str, pa.Table],
    shares: np.ndarray,
    corrections: Mapping[str, np.ndarray],
    late: float = 0,
) -> Ticks:
    """The tables cut into ticks, the same each time.

    Args:
        tables: TPC-H's.
        shares: of the orders, those that each tick brings.
        corrections: of dimensions, the tick of each correction.
        late: how many lines come a tick after their order, and half as many customers, parts and
            suppliers after the first tick; a share of all.
    """
    rng, last = np.random.default_rng(22), len(shares) - 1
    of_order = np.repeat(np.arange(last + 1), _counts(shares, tables["orders"].num_rows))
    keys = tables["orders"]["o_orderkey"].to_numpy()
    places = np.searchsorted(keys, tables["lineitem"]["l_orderkey"].to_numpy())
    # orders have their keys in order
    waits = rng.random(len(places)) < late
    ticks = {"orders": of_order, "lineitem": np.minimum(of_order[places] + waits, last)}
    found = {name: _in_order(tables[name], ticks[name]) for name in FACTS}
    for name in KEYS:
        first = np.zeros(tables[name].num_rows, np.int64)
        if name in LATE:
            waits = rng.random(len(first)) < late / 2
            first[waits] = rng.integers(0, last + 1, waits.sum())
        found[name] = _corrected(name, tables[name], first, corrections.get(name, NOBODY), rng)
    return Ticks(found, last + 1)


def _counts(shares: np.ndarray, rows: int) -> np.ndarray:
    ends = np.rint(np.cumsum(shares) / shares.sum() * rows).astype(int)
    return np.diff(ends, prepend=0)


def _corrected(
    name: str, table: pa.Table, first: np.ndarray, ticks: np.ndarray, rng: np.random.Generator
) -> pa.Table:
    """A dimension: its rows, by the ticks in which they come first, and its corrections."""
    rows = table.num_rows
    # so few are corrected that some are more than once
    whose = rng.integers(0, min(rows, max(rows // 10, 40)), len(ticks))
    like = rng.integers(0, rows, len(ticks))
    again = table.take(whose)
    for place, column in enumerate(table.column_names):
        if column not in KEYS[name]:
            again = again.set_column(place, table.schema.field(column), table[column].take(like))
    told = ticks - np.where(rng.random(len(ticks)) < 0.2, 2.5, 0)
    versions = 1 + np.argsort(np.argsort(told, kind="stable"), kind="stable")
    of = pa.array(np.concatenate([np.zeros(rows, np.int64), versions]))
    whole = pa.concat_tables([table, again]).append_column(VERSIONS[name], of)
    return _in_order(whole, np.concatenate([first, ticks]))


def _in_order(table: pa.Table, ticks: np.ndarray) -> pa.Table:
    order = np.argsort(ticks, kind="stable")
    return table.take(order).append_column("tick", pa.array(ticks[order].astype(np.int64)))
