"""Every operator in a few small forms, over a handful of item types: what random programs and the laws are made of.

A template is one step of a pipeline: streams of some kinds in, a stream of a kind out. Its text is what stands after
the first input (`{b}` is the second one), and its functions are total: nulls, negative numbers and all.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = {
    "long": "long",
    "text": "string",
    "pair": "(long, long)",
    "named": "(string, long)",
    "row": "k string, v long, w long",
    "array": "array<long>",
}
"""The kinds of streams by their schemas."""


@dataclass(frozen=True)
class Template:
    op: str
    takes: tuple[str, ...]
    text: str
    gives: str
    order: str = "keeps"
    """keeps, gives or loses; the first input's."""
    needs: bool = False
    """Every input must be ordered."""
    grows: int = 1
    """How much larger the output may be: 2 for twice, 0 for the product of both inputs."""
    exact: bool = True
    """The operator stands alone: its catalogue columns can be checked on the template."""


def _one(op: str, kinds: str, text: str, gives: str | None = None, **more: object) -> list[Template]:
    return [Template(op, (kind,), text, gives or kind, **more) for kind in kinds.split()]  # type: ignore[arg-type]


def _two(op: str, kinds: str, text: str, gives: str, **more: object) -> list[Template]:
    return [Template(op, tuple(kinds.split()), text, gives, **more)]  # type: ignore[arg-type]


ALL = "long text pair named row"
_ADD = "(a or 0) + (b or 0)"

ITEMWISE = [
    *_one("identity", ALL, "identity()"),
    *_one("next_stratum", ALL, "next_stratum()"),
    *_one("tee", ALL, "tee()"),
    *_one("map", "long", "map(lambda x: ((x or 0) * 3 + 1) % 17)"),
    *_one("map", "long", "map(lambda x: None if x == 1 else x)"),
    *_one("map", "long", "map(lambda x: (x, (x or 0) % 3))", "pair"),
    *_one("map", "long", 'map(lambda x: (("a" if x % 2 == 0 else "b") if x is not None else None, x))', "named"),
    *_one("map", "long", 'map(lambda x: {"k": "a" if (x or 0) > 1 else None, "v": x, "w": (x or 0) % 2})', "row"),
    *_one("map", "long", "map(lambda x: [x, (x or 0) + 1])", "array"),
    *_one("map", "text", 'map(lambda s: (s or "z") + "x" if (s or "") < "b" else "a")'),
    *_one("map", "text", "map(lambda s: (s, len(s or '')))", "named"),
    *_one("map", "pair", "map(lambda a, b: (b, a))"),
    *_one("map", "pair", "map(lambda x: x[0])", "long"),
    *_one("map", "named", "map(lambda k, v: k)", "text"),
    *_one("map", "named", 'map(lambda x: {"k": x._1, "v": x[1], "w": 0})', "row"),
    *_one("map", "row", "map(lambda r: (r.v, r.w))", "pair"),
    *_one("map", "row", 'map(lambda r: (r["k"], r.w))', "named"),
    *_one("filter", "long", "filter(lambda x: x is None or x % 2 == 0)"),
    *_one("filter", "long", "filter(lambda x: x)"),
    *_one("filter", "text", 'filter(lambda s: s != "a")'),
    *_one("filter", "pair", "filter(lambda a, b: a != b)"),
    *_one("filter", "named", 'filter(lambda k, v: (v or 0) >= 0)'),
    *_one("filter", "row", 'filter(lambda r: r.k != "a")'),
    *_one("filter_map", "long", "filter_map(lambda x: None if x is None or x > 2 else x + 1)"),
    *_one("filter_map", "pair", "filter_map(lambda a, b: a if (b or 0) > 0 else None)", "long"),
    *_one("inspect", "long", "inspect(lambda x: x)"),
    *_one("inspect", "named", "inspect(lambda k, v: (v, k))"),
    *_one("flat_map", "long", "flat_map(lambda x: [x, (x or 0) % 4])", grows=2),
    *_one("flat_map", "pair", "flat_map(lambda a, b: (b, a))", "long", grows=2),
    *_one("flat_map", "text", "flat_map(lambda s: list(s or ''))", grows=2),
    *_one("flatten", "array", "flatten()", "long", grows=2),
    *_one("select", "row", 'select("k", "w", v=lambda r: (r.v or 0) % 7) -> select("k", "v", "w")', exact=False),
    *_one("select", "row", 'select("k", v=lambda r: r.w, w=lambda r: r.v)'),
    *_one("with_columns", "row", 'with_columns(w=lambda r: r.v, k=lambda k, v, w: k)'),
    *_one("with_columns", "row", 'with_columns(x=lambda r: (r.v or 0) + 1) -> drop("x")', exact=False),
    *_one("rename", "row", 'rename(v="w", w="v") -> select("k", "v", "w")', exact=False),
    *_one("drop", "row", 'drop("w") -> with_columns(w=lambda r: 1)', exact=False),
]
COMBINE = [
    *(t for kind in ALL.split() for t in _two("union", f"{kind} {kind}", "union({b})", kind, order="loses", grows=2)),
    *(t for kind in ALL.split() for t in _two("chain", f"{kind} {kind}", "chain(right={b})", kind, order="loses", grows=2)),
    *_two("chain", "long long", "chain(right={b})", "long", order="keeps", needs=True, grows=2),
    *_two("cross", "long long", "cross(right={b})", "pair", order="loses", grows=0),
    *_two("cross", "text long", "cross(right={b})", "named", order="loses", grows=0),
    *_two("cross", "named row", "cross(right={b}) -> map(lambda x, r: (x[0], r.v))", "named", order="loses", grows=0, exact=False),
    *_two("cross_singleton", "long single", "cross_singleton(single={b})", "pair"),
    *_two("cross_singleton", "text single", "cross_singleton(single={b})", "named"),
    *(
        t
        for how in ("inner", "left", "right", "outer")
        for t in (
            *_two("join", "pair pair", f'join(right={{b}}, how="{how}") -> map(lambda k, vw: (vw[1], vw[0]))', "pair", order="loses", grows=0, exact=False),
            *_two("join", "row row", f'join(right={{b}}, on="k", how="{how}", suffix="_r") -> select("k", v=lambda r: r.v_r, w=lambda r: r.w)', "row", order="loses", grows=0, exact=False),
            *_two("join", "row row", f'join(right={{b}}, on=["v", "k"], how="{how}", suffix="_r") -> select("k", "v", w=lambda r: r.w_r)', "row", order="loses", grows=0, exact=False),
        )
    ),
    *_two("join", "named named", 'join(right={b}) -> map(lambda k, vw: (k, (vw[0] or 0) - (vw[1] or 0)))', "named", order="loses", grows=0, exact=False),
    *_two("join", "pair pair", 'join(right={b}, how="semi")', "pair", order="loses"),
    *_two("join", "named named", 'join(right={b}, how="anti")', "named", order="loses"),
    *_two("join", "row row", 'join(right={b}, on="k", how="semi")', "row", order="loses"),
    *_two("join", "row row", 'join(right={b}, on=["k", "w"], how="anti")', "row", order="loses"),
    *_two("zip", "long long", "zip(right={b})", "pair", order="gives", needs=True),
    *_two("zip", "text long", "zip(right={b})", "named", order="gives", needs=True),
    *_two("zip_longest", "long long", "zip_longest(right={b})", "pair", order="gives", needs=True),
    *_two("anti_join", "pair long", "anti_join(neg={b})", "pair"),
    *_two("anti_join", "named text", "anti_join(neg={b})", "named"),
    *(t for kind in ALL.split() for t in _two("difference", f"{kind} {kind}", "difference(neg={b})", kind)),
]
ORDER = [
    *_one("sort", ALL, "sort()", order="gives"),
    *_one("sort_by_key", "long", "sort_by_key(lambda x: -(x or 0))", order="gives"),
    *_one("sort_by_key", "text", "sort_by_key(lambda s: len(s or ''), descending=True)", order="gives"),
    *_one("sort_by_key", "pair", "sort_by_key(lambda a, b: (b, a), descending=True)", order="gives"),
    *_one("sort_by_key", "row", "sort_by_key(lambda r: r.v)", order="gives"),
    *_one("limit", ALL, "limit(2)", needs=True),
    *_one("limit", "row", 'limit(1, by="k")', needs=True),
    *_one("limit", "row", 'limit(2, by=["w", "k"])', needs=True),
    *_one("enumerate", "long", "enumerate()", "pair", needs=True),
    *_one("scan", "long", "scan(0, lambda acc, x: (acc * 2 + (x or 0)) % 101)", needs=True),
    *_one("scan", "text", 'scan((0, ""), lambda acc, x: (acc[0] + 1, x)) -> map(lambda n, s: (s, n))', "named", needs=True, exact=False),
    *_one("scan_keyed", "named", "scan_keyed(0, lambda acc, v: acc + (v or 0))", needs=True),
    *_one("scan_keyed", "row", 'scan_keyed(0, lambda acc, r: acc * 2 + (r.v or 0), by="k") -> map(lambda r: (r.k, r.value))', "named", needs=True, exact=False),
    *_one("unique_keyed", "pair named", "unique_keyed()", needs=True),
    *_one("unique_keyed", "row", 'unique_keyed(by=["v", "w"])', needs=True),
]
GROUP = [
    *_one("unique", ALL, "unique()"),
    *_one("fold", "long", "fold(0, lambda acc, x: acc + (x or 0), commutative=True)", order="loses"),
    *_one("fold", "text", "fold('', lambda acc, s: max(acc, s or ''), commutative=True, idempotent=True)", order="loses"),
    *_one("fold", "named", "fold((0, 0), lambda acc, k, v: (acc[0] + 1, max(acc[1], v or 0)), commutative=True)", "pair", order="loses"),
    *_one("reduce", "long", "reduce(lambda a, b: " + _ADD + ", commutative=True, associative=True)", order="loses"),
    *_one("reduce", "long", "sort() -> reduce(lambda a, b: ((a or 0) * 2 + (b or 0)) % 101)", order="loses", exact=False),
    *_one("fold_keyed", "named pair", "fold_keyed(0, lambda acc, v: acc + (v or 0), commutative=True)", order="loses"),
    *_one("fold_keyed", "row", 'fold_keyed({"v": 0, "w": 0}, lambda acc, r: {"v": acc.v + 1, "w": max(acc.w, r.v or 0)}, by="k", commutative=True)', order="loses"),
    *_one("fold_keyed", "row", 'fold_keyed(0, lambda acc, r: acc + (r.v or 0), by=["k", "w"], commutative=True) -> map(lambda r: (r.k, r.value))', "named", order="loses", exact=False),
    *_one("reduce_keyed", "named pair", "reduce_keyed(lambda a, b: " + _ADD + ", commutative=True)", order="loses"),
    *_one("reduce_keyed", "row", 'reduce_keyed(lambda x, y: {"k": x.k, "v": (x.v or 0) + (y.v or 0), "w": 0}, by="k", commutative=True) -> map(lambda r: (r.k, r.v))', "named", order="loses", exact=False),
    *_one("latest", "row", 'latest(by="k", order="v")', order="loses"),
    *_one("latest", "row", 'latest(by=["k", "w"], order=lambda r: -(r.v or 0))', order="loses"),
    *_one("latest", "row", 'latest(by="w", order=["v", "k"])', order="loses"),
    *_one("aggregate", "row", 'aggregate(by="k", v=sum("v"), w=count())', order="loses"),
    *_one("aggregate", "row", 'aggregate(by="k", v=max("v"), w=min(lambda r: r.w))', order="loses"),
    *_one("aggregate", "row", 'aggregate(by=["k", "w"], v=count_distinct("v", "k")) -> select("k", "v", "w")', order="loses", exact=False),
    *_one("aggregate", "row", 'aggregate(k=max_by("k", "v"), v=count("v"), w=count_if(lambda r: (r.v or 0) > 0))', order="loses"),
    *_one("aggregate", "row", 'aggregate(by="k", n=collect_list("v"), m=collect_set("w")) -> flat_map(lambda r: r.n)', "long", order="loses", exact=False),
]
STATE = [
    *_one("persist", ALL, "persist()", order="loses", grows=3),
    *_one("old", ALL, "old()", order="loses", grows=3),
    *_one("window", ALL, "window(2)", order="loses", grows=2),
    *_one("window", "long", "window(1)", order="loses"),
    *_one("prev", ALL, "prev()"),
    *_one("delta", ALL, "delta()", order="loses"),
    *_one("changes", "long", "changes()", "pair", order="loses", grows=2),
    *_one("changes", "text", "changes() -> map(lambda n, s: (s, n))", "named", order="loses", grows=2, exact=False),
    *_one("persist_mut", "long", 'map(lambda x: ("delete" if (x or 0) % 3 == 0 else "persist", x)) -> persist_mut()', order="loses", needs=True, grows=3, exact=False),
    *_one("persist_mut_keyed", "named", 'map(lambda k, v: ("delete", k, None) if (v or 0) < 0 else ("persist", k, v)) -> persist_mut_keyed()', order="loses", needs=True, grows=3, exact=False),
]
TEMPLATES = [*ITEMWISE, *COMBINE, *ORDER, *GROUP, *STATE]

CYCLES = [
    # text, kind; `{s}` is the stream, `{a}` what flows in, `{b}` a second stream of the kind
    ("long", "{s} = union() -> unique()\n{a} -> {s}\n{s} -> map(lambda x: ((x or 0) * 2 + 1) % 13) -> {s}", {"union", "unique", "map"}),
    ("long", "{s} = union()\n{a} -> {s}\n{s} -> filter(lambda x: (x or 0) > 0) -> map(lambda x: x // 2) -> {s}", {"union", "filter", "map"}),
    ("long", "{s} = union() -> unique()\n{a} -> {s}\n{s} -> persist() -> map(lambda x: min((x or 0) + 2, 9)) -> {s}", {"union", "unique", "persist", "map"}),
    ("pair", "{s} = union() -> unique()\n{a} -> {s}\n{s}j = join()\n{s} -> map(lambda a, b: (b, a)) -> [0]{s}j\n{b} -> [1]{s}j\n{s}j -> map(lambda k, vw: vw) -> {s}", {"union", "unique", "map", "join"}),
    ("pair", "{s} = union() -> unique()\n{a} -> {s}\n{s}j = join()\n{s} -> map(lambda a, b: (b, a)) -> [0]{s}j\n{s} -> [1]{s}j\n{s}j -> map(lambda k, vw: vw) -> {s}", {"union", "unique", "map", "join"}),
    ("pair", "{s} = union() -> unique()\n{a} -> {s}\n{s} -> map(lambda a, b: (b, a)) -> join(right={b}, how=\"semi\") -> {s}", {"union", "unique", "map", "join"}),
    ("row", "{s} = union() -> unique()\n{a} -> {s}\n{s} -> window(2) -> with_columns(v=lambda r: (r.v or 0) // 2) -> {s}", {"union", "unique", "window", "with_columns"}),
    ("long", "{s} = union()\n{a} -> {s}\n{s}p = {s} -> partition(lambda x: \"go\" if (x or 0) > 1 else \"stop\", [\"go\", \"stop\"])\n{s}p[go] -> map(lambda x: x - 2) -> {s}\n{s}p[stop] -> null()", {"union", "partition", "map", "null"}),
    ("long", "{s} = union()\n{a} -> {s}\n{s}c = cross()\n{s} -> [0]{s}c\n{s} -> [1]{s}c\n{s}c -> map(lambda x, y: abs(x or 0) + abs(y or 0) + 1) -> filter(lambda x: x < 4) -> {s}", {"union", "cross", "map", "filter"}),
    # through prev and old
    ("long", "{s} = union()\n{a} -> {s}\n{s} -> prev() -> filter(lambda x: (x or 0) % 2 == 0) -> {s}", {"union", "prev", "filter"}),
    ("long", "{s} = difference()\n{a} -> unique() -> [pos]{s}\n{s} -> old() -> [neg]{s}", {"difference", "unique", "old"}),
    ("named", "{s} = union() -> reduce_keyed(lambda a, b: (a or 0) + (b or 0), commutative=True)\n{a} -> {s}\n{s} -> prev() -> {s}", {"union", "reduce_keyed", "prev"}),
    ("row", "{s} = union() -> latest(by=\"k\", order=\"v\")\n{a} -> {s}\n{s} -> prev() -> {s}", {"union", "latest", "prev"}),
]
"""Cycles: the kind of the stream, the text, and the operators in it."""
