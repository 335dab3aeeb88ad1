"""Random programs that keep results by key over what came before, with ticks that meet it.

Rows `k, m, v` flow through histories, windows and the tick before into results by key, joins and
first sights, and what changes there is read again. Keys are of every type, those of the two inputs
of types that differ; nulls, NaNs and both zeros are among them, and come back in later ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.errors import HydroError
from hydro_core.ir.graph import Graph
from hydro_core.lang.resolve import parse
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import Array, Decimal, ItemType, Row, Tuple

Tick = dict[str, list[Any]]

KEYS = (
    ("long", "long"),
    ("long", "long"),
    ("integer", "long"),
    ("byte", "short"),
    ("long", "double"),
    ("double", "double"),
    ("float", "double"),
    ("string", "string"),
    ("boolean", "boolean"),
    ("date", "date"),
    ("timestamp", "timestamp"),
    ("decimal(6,2)", "decimal(6,2)"),
    ("decimal(6,2)", "decimal(9,3)"),
    ("decimal(6,2)", "integer"),
    ("binary", "binary"),
    ("struct<x: long, y: string>", "struct<x: long, y: string>"),
    ("struct<x: integer, y: struct<z: double>>", "struct<x: long, y: struct<z: double>>"),
    ("struct<x: long, y: string>", "struct<y: string, x: long>"),
    ("(long, string)", "(integer, string)"),
    ("array<long>", "array<long>"),
    ("struct<x: array<long>, y: long>", "struct<x: array<long>, y: long>"),
)
"""The types of `k` in both inputs."""

VALUES: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "string": ("a", "A", "\U0001f600", "\uffff", ""),
    "date": ("2024-02-29", "1969-12-31", "0001-01-01"),
    "timestamp": ("2024-02-29T01:02:03.000004Z", "1969-12-31T23:59:59Z"),
    "double": (0.0, -0.0, float("nan"), 1.0, 2.5),
    "float": (0.0, -0.0, float("nan"), 1.0, 2.5),
    "binary": ("", "YQ==", "YWI="),
}

ROW = 'map(lambda k, v: {"k": k, "m": v, "v": v})'
COMMANDS = 'sort() -> map(lambda r: ("delete" if r.v == 0 else "persist", r.k, r.v))'
FOLDS = (
    f"fold_keyed(0, lambda s, v: s + v, commutative=True) -> {ROW}",
    f"fold_keyed(1, lambda s, v: (s + v * v) % 3, commutative=True) -> {ROW}",
    f"reduce_keyed(lambda x, y: max(x, y), commutative=True) -> {ROW}",
    f"reduce_keyed(lambda x, y: (x + y) % 2, commutative=True) -> {ROW}",
    f"sort() -> scan_keyed(0, lambda s, v: (s * 2 + v) % 5) -> {ROW}",
    f"sort() -> fold_keyed(0, lambda s, v: (s * 2 + v) % 5) -> {ROW}",
)
OVER_TIME = (
    "persist()", "persist()", "persist()", "window(2)", "window(3)", "prev()", "old()", "delta()",
    'changes() -> map(lambda n, r: {"k": r.k, "m": r.m, "v": n})',
)  # fmt: skip
BY_KEY = (
    "unique()",
    'aggregate(by=["k", "m"], v=sum("v"))',
    'aggregate(by="k", m=max("v"), v=count())',
    'aggregate(by="k", m=count_distinct("v"), v=min("m"))',
    'aggregate(by="k", m=median("v"), v=count()) -> with_columns(m=lambda r: r.v)',
    'aggregate(by="m", k=max("k"), v=count()) -> select("k", "m", "v")',
    'aggregate(by="v", k=max_by("k", "m"), m=count()) -> select("k", "m", "v")',
    'latest(by="k", order=["v", "m"])',
    'latest(by=["k", "m"], order="v")',
    'sort() -> limit(1, by="k")',
    'sort_by_key(lambda r: -(r.v or 0)) -> limit(2, by=["m", "k"])',
    *(f"map(lambda r: (r.k, r.v or 0)) -> {fold}" for fold in FOLDS),
    *(
        f"map(lambda r: ((r.k, r.m), r.v or 0)) -> {fold}"
        ' -> map(lambda r: {"k": r.k[0], "m": r.k[1], "v": r.v})'
        for fold in FOLDS[:2]
    ),
    f"map(lambda r: ((r.m or 0) % 2, r.v or 0)) -> {FOLDS[0]}",
    f"{COMMANDS} -> persist_mut_keyed() -> {ROW}",
)
PER_ITEM = (
    "filter(lambda r: r.v != 1)",
    "filter(lambda r: r.k is not None)",
    "with_columns(m=lambda r: (r.m or 0) % 2)",
    "with_columns(m=lambda r: r.v, v=lambda r: r.m)",
    'map(lambda r: {"k": r.k, "m": r.m, "v": (r.v or 0) + 1})',
    'flat_map(lambda r: [r, {"k": r.k, "m": 1, "v": r.v}])',
)
TWO = (
    "union({b})",
    "difference(neg={b})",
    "anti_join(neg={b})",
    *(f'join(right={{b}}, on={on}, how="{how}", suffix="_r")' for on in ('"k"', '["k", "m"]')
      for how in ("inner", "left", "right", "outer", "semi", "anti")),
    "cross(right={b}) -> map(lambda p, q: p if p.m == q.m else q)",
)  # fmt: skip
KINDS = (OVER_TIME, BY_KEY, BY_KEY, PER_ITEM, TWO, TWO)
"""What a step may be, each as likely as the others."""
READS = ("", "delta()", "delta()", "changes()", "prev()")
LAST = (
    'aggregate(by="k", m=median("v"), n=count_distinct("m"), all=collect_list("v"))',
    'aggregate(by=["k", "m"], set=collect_set("v"), first=min("v"))',
    'aggregate(by="k", n=count(), mean=avg("v"))',
    "aggregate(n=count(), s=sum('v'))",
    'select("k") -> unique()',
)
MOST = 60
"""Streams that may have more items are not multiplied."""


@dataclass(frozen=True)
class KeyedHistory:
    """A program, the types of its inputs, and its ticks."""

    text: str
    schemas: dict[str, str]
    ticks: list[Tick]

    def __str__(self) -> str:
        return "\n".join([str(self.schemas), self.text, *map(str, self.ticks)])


def keyed_history(
    seed: int, steps: int = 5, ticks: int = 5, kinds: Sequence[Sequence[str]] = KINDS
) -> KeyedHistory:
    """The program of a seed: about so many steps and ticks, the steps of these kinds."""
    rng = Random(seed)
    schemas = {n: f"k {k}, m long, v long" for n, k in zip("ab", rng.choice(KEYS), strict=True)}
    maker = _Maker(rng, schemas, kinds)
    for _ in range(rng.randint(2, steps)):
        maker.step()
    maker.outputs()
    used = {name: text for name, text in schemas.items() if name in maker.used}
    items = {name: parse_ddl(text) for name, text in used.items()}
    few = {name: _rows(rng, item) for name, item in items.items()}
    made = [
        {
            name: [rng.choice(rows) for _ in range(rng.choice((0, 1, 2, 3)))]
            for name, rows in few.items()
        }
        for _ in range(ticks)
    ]
    return KeyedHistory("\n".join(maker.lines) + "\n", used, made)


class _Maker:
    """Adds statements as long as they have types."""

    def __init__(
        self, rng: Random, schemas: dict[str, str], kinds: Sequence[Sequence[str]]
    ) -> None:
        self._rng, self._kinds = rng, kinds
        self._items = {name: parse_ddl(text) for name, text in schemas.items()}
        self._sizes = {"a": 3, "b": 3, "ha": 12, "hb": 12}
        self.lines = ["ha = a -> persist()", "hb = b -> persist()"]
        self._read: set[str] = set()

    @property
    def used(self) -> set[str]:
        return set(self._compiled([]).typed.inputs)

    def step(self) -> None:
        """A statement more."""
        for _ in range(20):
            names = list(self._sizes)
            # The younger a stream, the likelier it goes on: programs become deep, not wide.
            left, right = self._rng.choice(names[-4:]), self._rng.choice(names)
            text = self._rng.choice(self._rng.choice(self._kinds))
            size = self._sizes[left] * (5 if text == "persist()" else 1)
            if "{b}" in text:
                multiplied = "cross" in text or ("join" in text and "suffix" in text)
                size = (
                    size * self._sizes[right] // (1 if "cross" in text else 3)
                    if multiplied
                    else size + self._sizes[right]
                )
            if size > MOST * 4:
                continue
            name = f"s{len(names)}"
            made = self._made(name, left, text, right)
            if self._adds(made, f'{name} -> sink("end")'):
                self._sizes[name] = size
                self._read |= {left, right} if "{b}" in text else {left}
                return

    def _made(self, name: str, left: str, text: str, right: str) -> list[str]:
        before = []
        if text.startswith("anti_join"):
            keyed = "map(lambda r: ((r.k, r.m), r.v))"
            before = [f"{name}n = {right} -> map(lambda r: (r.k, r.m))"]
            back = 'map(lambda r: {"k": r[0][0], "m": r[0][1], "v": r[1]})'
            return [*before, f"{name} = {left} -> {keyed} -> anti_join(neg={name}n) -> {back}"]
        if "suffix" in text and "semi" not in text and "anti" not in text:
            other = self._rng.choice(("r.v_r", "r.v", "(r.v or 0) + (r.v_r or 0)"))
            text += f' -> map(lambda r: {{{{"k": r.k, "m": r.m, "v": {other}}}}})'
        else:
            text = text if "{b}" in text else text.replace("{", "{{").replace("}", "}}")
        return [f"{name} = {left} -> {text.format(b=right)}"]

    def outputs(self) -> None:
        """What nobody reads is an output, in some form."""
        ends = [name for name in self._sizes if name not in self._read][-3:]
        for n, name in enumerate([*ends, *self._rng.sample(sorted(self._sizes), 1)]):
            last, read = self._rng.choice(("", *LAST)), self._rng.choice(READS)
            for parts in ((name, last, read), (name, read), (name,)):
                if self._adds([" -> ".join([*filter(None, parts), f'sink("out{n}")'])]):
                    break

    def _adds(self, lines: list[str], *end: str) -> bool:
        try:
            self._compiled([*lines, *end])
        except HydroError:
            return False
        self.lines += lines
        return True

    def _compiled(self, lines: list[str]) -> CompiledProgram:
        graph: Graph = parse("\n".join([*self.lines, *lines]) + "\n")
        return compile_graph(graph, {n: self._items[n] for n in graph.sources})


def _rows(rng: Random, item: ItemType) -> list[Any]:
    """A few rows of an input; keys are few, so that they come back."""
    assert isinstance(item, Row)
    key = item.fields[0].type
    keys = [_value(rng, key) for _ in range(rng.randint(2, 5))]
    return [
        {"k": rng.choice(keys), "m": rng.choice((None, 0, 1)), "v": rng.choice((None, 0, 1, 2))}
        for _ in range(8)
    ]


def _value(rng: Random, item: ItemType) -> Any:
    if rng.random() < 0.2:
        return None
    match item:
        case Row(fields):
            return {f.name: _value(rng, f.type) for f in fields}
        case Tuple(parts):
            return [_value(rng, part) for part in parts]
        case Array(of):
            return [_value(rng, of) for _ in range(rng.randint(0, 2))]
        case Decimal():
            return rng.choice(("0.00", "1.00", "2.50"))
        case _:
            return rng.choice(VALUES.get(str(item), (0, 1, 2)))
