"""Random programs that hold state in every way the optimizer knows, on pairs of small numbers, and
ticks for them.
"""

from __future__ import annotations

from random import Random

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import HydroError

PAIR = "(long, long)"
INPUTS = ("a", "b", "c")
MAPS = (
    "lambda x: (x[1], x[0])",
    "lambda x: (x[0], x[1] % 2)",
    "lambda x: (0, x[0] + x[1])",
    "lambda x: (x[0], 1)",
)
FILTERS = ("lambda x: x[0] != 1", "lambda x: x[1] > 0", "lambda x: x[0] == x[1]")
SUM = "lambda s, v: s + v"
ROW = 'map(lambda k, v: {"k": k, "v": v})'
UNARY = (
    "map({map})",
    "map({map})",
    "filter({filter})",
    "filter({filter})",
    "flat_map(lambda x: [x, (x[1], x[0])] if x[0] else [])",
    "unique()",
    "unique()",
    "persist()",
    "persist()",
    "persist()",
    "old()",
    "prev()",
    "delta()",
    "window(2)",
    "identity()",
    "sort()",
    "sort() -> limit(2)",
    "sort() -> enumerate() -> map(lambda i, x: (i, x[1]))",
    "fold_keyed(0, {sum}, commutative=True)",
    "fold_keyed(0, {sum}, commutative=True)",
    "reduce_keyed(lambda x, y: max(x, y), commutative=True)",
    "reduce(lambda x, y: (x[0] + y[0], max(x[1], y[1])), commutative=True)",
    "fold(0, lambda s, x: s + x[1], commutative=True) -> map(lambda s: (s, s))",
    (
        "{row} -> fold_keyed({{'n': 0}}, lambda s, r: {{'n': s.n + r.v}}, by='k', commutative=True)"
        " -> map(lambda r: (r.k, r.n))"
    ),
    '{row} -> latest(by="k", order="v") -> map(lambda r: (r.k, r.v))',
    (
        '{row} -> aggregate(by="k", n=count(), s=sum("v"), m=max("v"))'
        " -> map(lambda r: (r.k, r.n + r.s - r.m))"
    ),
    '{row} -> aggregate(n=count(), m=min("v")) -> map(lambda r: (r.n, r.m))',
    '{row} -> aggregate(by="k", n=count("v"), m=avg("v")) -> map(lambda r: (r.n, int(r.m)))',
    (
        '{row} -> aggregate(by="k", m=max_by("k", "v"), d=count_distinct("v"))'
        " -> map(lambda r: (r.m, r.d))"
    ),
    (
        'window(2) -> {row} -> aggregate(by="k", s=sum("v"), n=count()) -> delta()'
        " -> map(lambda r: (r.k, r.s))"
    ),
    'window(3) -> {row} -> aggregate(s=sum("v"), m=avg("v")) -> map(lambda r: (r.s, 1))',
    "changes() -> map(lambda n, x: (n, x[1]))",
    "changes() -> map(lambda n, x: (n, x[0]))",
)
BINARY = (
    "{a} -> join(right={b}) -> map(lambda k, p: (k, p[1]))",
    "{a} -> join(right={b}) -> map(lambda k, p: (p[0], p[1]))",
    "{a} -> cross(right={b}) -> map(lambda p, q: (p[0], q[1]))",
    "{a} -> join(right={b}, how='semi')",
    "{a} -> join(right={b}, how='anti')",
    "{a} -> join(right={b}, how='left') -> map(lambda k, p: (k, p[1] if p[1] else 0))",
    "{a} -> join(right={b}, how='left') -> changes() -> map(lambda n, x: (n, x[0]))",
    "{a} -> join(right={b}, how='right') -> delta() -> map(lambda k, p: (k, p[0] or 0))",
    "{a} -> join(right={b}, how='outer') -> delta() -> map(lambda k, p: (k, p[1] or 0))",
    "{a} -> join(right={b}, how='semi') -> delta()",
    "{a} -> union({b})",
    "{a} -> union({b})",
    "{a} -> chain(right={b})",
    "{a} -> difference(neg={b})",
    "{a} -> difference(neg={b})",
)


def typed_program(rng: Random, size: int) -> tuple[str, CompiledProgram]:
    """A program of about `size` statements that has types: of those that `rng` makes, the first."""
    refused = []
    for _ in range(20):
        text = program(rng, size)
        try:
            return text, compile_text(text)
        except HydroError as error:
            refused.append(str(error))
    raise AssertionError("hardly any random program has types:\n" + "\n".join(refused))


def program(rng: Random, size: int) -> str:
    """A program of about `size` statements, which need not have types."""
    lines, streams = [], []
    for name in INPUTS:
        lines.append(f'{name} = source("{PAIR}")')
        streams += [name, name]
        if rng.random() < 0.7:
            lines.append(f"{name}p = {name} -> persist()")
            streams += [f"{name}p"] * 3
    if rng.random() < 0.2:
        lines.append(f"z = union(); {rng.choice(INPUTS)} -> z; z -> {_chain(rng)} -> prev() -> z")
        streams.append("z")
    if rng.random() < 0.25:
        lines += _loop(rng, rng.choice(streams), rng.choice(streams))
        streams.append("r")
    for number in range(size):
        name = f"s{number}"
        lines.append(f"{name} = {_statement(rng, streams)}")
        streams += [name] * 3
    for number in range(rng.randint(1, 3)):
        end = rng.choice(streams[-9:])
        last = rng.choice(("", "-> delta()", "-> delta()", "-> delta()", "-> unique() -> delta()"))
        lines.append(f'{end} {last} -> sink("out{number}")')
    return "\n".join(lines) + "\n"


def monotone(rng: Random, depth: int) -> str:
    """A pipeline over histories that only grows."""
    if depth == 0:
        return f"{rng.choice(INPUTS)}p"
    kind = rng.random()
    inner = monotone(rng, depth - 1)
    if kind < 0.3:
        return f"{inner} -> {_format(rng, rng.choice(UNARY[:4]))}"
    return inner


def ticks(rng: Random, count: int, most: int = 3) -> list[dict[str, list[tuple[int, int]]]]:
    """Batches of a few ticks."""
    return [
        {
            name: [(rng.randint(0, 2), rng.randint(0, 2)) for _ in range(rng.randint(0, most))]
            for name in INPUTS
        }
        for _ in range(count)
    ]


def _chain(rng: Random) -> str:
    return _format(rng, rng.choice(("identity()", "map({map})", "filter({filter})", "unique()")))


def _loop(rng: Random, base: str, edges: str) -> list[str]:
    return [
        "r = union() -> unique()",
        f"{base} -> r",
        f"r -> join(right={edges}) -> map(lambda k, p: (p[1], p[0])) -> r",
    ]


def _statement(rng: Random, streams: list[str]) -> str:
    if rng.random() < 0.45:
        text = rng.choice(BINARY)
        return text.format(a=rng.choice(streams), b=rng.choice(streams))
    return f"{rng.choice(streams)} -> {_format(rng, rng.choice(UNARY))}"


def _format(rng: Random, text: str) -> str:
    return text.format(map=rng.choice(MAPS), filter=rng.choice(FILTERS), sum=SUM, row=ROW)
