"""What a tick that touches 1,000 keys reads of a state of ten million, laid out by key or not.

The rows are `(user, n, spent)`, in files as the store writes them, in no order; or by hash bucket
of the key, as many buckets as files, so that the buckets of a tick's keys say which files they can
be in; or sorted by the key itself, so that the files' least and greatest keys say it. The keys of a
tick are any, or the newest, as users are that have just come. All give the same rows; what differs
is the files, their bytes and rows, and the time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import Meter, Ratio, note, parser_of, report, session

AS_IT_IS = "in no order"
FILES_AS_IT_IS = 16


@dataclass(frozen=True)
class Layout:
    """Files of the state, and which of them a tick reads."""

    files: list[Path]
    wanted: Callable[[np.ndarray], set[int]]
    """The places of the files that may have rows of the keys."""

    def read(self, spark: SparkSession, keys: np.ndarray) -> tuple[DataFrame, list[Path]]:
        """The rows of the keys, and the files that are read for them."""
        files = [self.files[place] for place in sorted(self.wanted(keys))]
        schema = "user long, n long, spent long"
        rows = spark.read.schema(schema).parquet(*map(str, files))
        wanted = spark.createDataFrame(pa.table({"user": keys}))
        return rows.join(F.broadcast(wanted), "user", "left_semi"), files


def written(folder: Path, keys: np.ndarray, places: np.ndarray, count: int) -> list[Path]:
    """Files with the rows of the keys, each with those of its place, in their order."""
    folder.mkdir()
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(count + 1))
    files = []
    for place in range(count):
        mine = keys[order[bounds[place] : bounds[place + 1]]]
        files.append(folder / f"{place:05}.parquet")
        pq.write_table(pa.table({"user": mine, "n": mine % 97, "spent": mine % 9973}), files[-1])
    return files


def layouts(root: Path, keys: np.ndarray, buckets: list[int]) -> dict[str, Layout]:
    """Each layout of the same rows, by its name."""
    rng = np.random.default_rng(2)
    every = set(range(FILES_AS_IT_IS))
    anywhere = rng.integers(0, FILES_AS_IT_IS, len(keys))
    files = written(root / "plain", keys, anywhere, FILES_AS_IT_IS)
    found = {AS_IT_IS: Layout(files, lambda _: every)}
    by_key = (keys * 64 // len(keys)).astype(np.int64)
    files = written(root / "sorted", keys, by_key, 64)
    found["sorted by key, 64 files"] = Layout(
        files, lambda wanted: set((wanted * 64 // len(keys)).tolist())
    )
    # One function of keys is as good as another for which files are read; this one is quick here.
    scattered = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    for count in buckets:
        places = (scattered % np.uint64(count)).astype(np.int64)
        files = written(root / f"b{count}", keys, places, count)
        found[f"{count:,} hash buckets"] = Layout(
            files, lambda wanted, places=places: set(places[wanted].tolist())
        )
    return found


def main() -> int:
    """Measures all, and says how each is to the state as it is stored."""
    parser = parser_of("key_buckets", __doc__)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--touched", type=int, default=1_000)
    parser.add_argument("--buckets", type=int, nargs="*", default=[64, 256, 4096])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    spark, _ = session(asked.memory)
    rng = np.random.default_rng(1)
    rows = []
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        found = layouts(Path(scratch), np.arange(asked.keys), asked.buckets)
        note("the state is there")
        ticks = {
            "any": [rng.choice(asked.keys, asked.touched, False) for _ in range(asked.rounds + 1)],
            "the newest": [np.arange(asked.keys)[-asked.touched :]] * (asked.rounds + 1),
        }
        for which, of in ticks.items():

            def tick(name: str, number: int, of: list[np.ndarray] = of) -> None:
                frame, _ = found[name].read(spark, of[number])
                if frame.toArrow().num_rows != asked.touched:
                    sys.exit(f"{name}: rows are missing")

            meter = Meter(spark, asked.seconds)
            variants = {name: (lambda n, name=name: tick(name, n)) for name in found}
            runs = meter.alternate(variants, range(asked.rounds + 1), 1)
            whole = runs[AS_IT_IS]
            for name, layout in found.items():
                _, files = layout.read(spark, of[0])
                rows.append(
                    {
                        "keys of the tick": which,
                        "state": name,
                        "files read": len(files),
                        "of": len(layout.files),
                        "MB": sum(file.stat().st_size for file in files) / 1e6,
                        "rows read": sum(pq.read_metadata(file).num_rows for file in files),
                        "s": runs[name].seconds,
                        "cpu, s": runs[name].cpu,
                        "cpu / in no order": runs[name].cpu / whole.cpu,
                    }
                )
    ratios = [
        Ratio(f"{row['state']}, {row['keys of the tick']} keys: cpu", row["cpu / in no order"])
        for row in rows
        if row["state"] != AS_IT_IS
    ]
    report(f"{asked.touched} of {asked.keys} keys", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
