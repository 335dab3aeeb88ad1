"""Random programs about keys: keys of several fields and of functions of fields, literals that meet
inputs, functional dependencies, joins of every kind, and feedback.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import HydroError

INPUTS = ("a", "b", "c")
SUM = "fold_keyed(0, lambda s, v: s + v, commutative=True)"
UNARY = (
    "map(lambda x: (x[1], x[0]))",
    "map(lambda x: (x[0] % 2, x[1]))",
    "map(lambda x: (x[0] % 2, x[1] % 2))",
    "map(lambda x: (x[0], x[0]))",
    "map(lambda x: (x[0], 1))",
    "map(lambda x: (x[0] if x[1] > 0 else x[1], x[1]))",
    "map(lambda x: (x[0], x[1] + 1) if x[1] > 1 else (x[0], 0))",
    "filter_map(lambda x: (x[1], x[0] % 2) if x[0] > 0 else None)",
    "flat_map(lambda x: [x, (x[0], x[1] % 2)])",
    "filter(lambda x: x[1] > 0)",
    SUM,
    SUM,
    "reduce_keyed(lambda x, y: max(x, y), commutative=True)",
    "sort() -> unique_keyed()",
    "sort() -> scan_keyed(0, lambda s, v: s + v)",
    f"map(lambda x: ((x[0], x[1]), x[1])) -> {SUM} -> map(lambda k, v: (k[0], v))",
    f"map(lambda x: ((x[0], x[1] % 2), 1)) -> {SUM} -> map(lambda k, v: (k[1], v))",
    (
        'map(lambda x: {"k": x[0], "m": x[1]}) -> aggregate(by=["k", "m"], n=count())'
        " -> map(lambda r: (r.m, r.n))"
    ),
    (
        'map(lambda x: {"k": x[0], "m": x[1]}) -> sort() -> limit(1, by="k")'
        " -> map(lambda r: (r.k, r.m))"
    ),
    (
        'map(lambda x: {"k": x[0], "m": x[1]}) -> with_columns(k=lambda r: r.k % 2)'
        ' -> latest(by="k", order="m") -> map(lambda r: (r.k, r.m))'
    ),
    (
        "sort() -> map(lambda x: ('persist' if x[1] > 0 else 'delete', x[0], x[1]))"
        " -> persist_mut_keyed()"
    ),
    "unique()",
    "delta()",
    "changes() -> map(lambda n, x: (x[0], n))",
    "persist()",
    "window(2)",
    "prev()",
)
_PAIRS = "map(lambda k, p: (k, (p[0] or 0) + (p[1] or 0)))"
BINARY = (
    f"{{a}} -> join(right={{b}}) -> {_PAIRS}",
    "{a} -> join(right={b}) -> map(lambda k, p: (p[0], p[1]))",
    *(f"{{a}} -> join(right={{b}}, how='{how}') -> {_PAIRS}" for how in ("left", "right", "outer")),
    "{a} -> join(right={b}, how='semi')",
    "{a} -> join(right={b}, how='anti')",
    "{a} -> union({b})",
    "{a} -> union({b})",
    "{a} -> chain(right={b})",
    "{a} -> difference(neg={b})",
    "{a} -> anti_join(neg={b}k)",
    "{a} -> cross(right={b}) -> map(lambda p, q: (p[0], q[1]))",
)
LITERAL = "z = source_iter([(0, 1), (1, 0), (2, 2), (3, 3)])"


def keyed_program(rng: Random, size: int) -> tuple[str, CompiledProgram]:
    """A program of about `size` statements that has types: of those that `rng` makes, the first."""
    for _ in range(20):
        text = _program(rng, size)
        try:
            return text, compile_text(text)
        except HydroError:
            continue
    raise AssertionError(f"hardly any random program has types:\n{text}")


def ticks(rng: Random, text: str, count: int, most: int = 5) -> list[dict[str, list[Any]]]:
    """Batches of a few ticks that keep to what the program's sources declare."""
    return [
        {
            name: [
                _item(rng, f"{name} = {DETERMINED}" in text) for _ in range(rng.randint(0, most))
            ]
            for name in INPUTS
        }
        for _ in range(count)
    ]


PLAIN = 'source("(long, long)")'
DETERMINED = 'source("(long, long)", fds={"0": "1"})'


def _item(rng: Random, determined: bool) -> list[int]:
    first = rng.randint(0, 3)
    return [first, first * 2 % 3 if determined else rng.randint(0, 3)]


def _program(rng: Random, size: int) -> str:
    lines, streams = [], []
    for name in INPUTS[: rng.randint(1, 3)]:
        lines.append(f"{name} = {DETERMINED if rng.random() < 0.2 else PLAIN}")
        streams += [name, name]
    if rng.random() < 0.4:
        lines.append(LITERAL)
        streams.append("z")
    if rng.random() < 0.1:
        lines.append("t = tick() -> map(lambda r: (r.tick, r.tick % 2))")
        streams.append("t")
    if rng.random() < 0.25:
        back = rng.choice((*UNARY[:2], "filter(lambda x: x[1] < 2)", "unique()"))
        lines.append(f"y = union(); {rng.choice(streams)} -> y; y -> {back} -> prev() -> y")
        streams.append("y")
    for number in range(size):
        name = f"s{number}"
        text = rng.choice(BINARY) if rng.random() < 0.4 else "{a} -> " + _escaped(rng.choice(UNARY))
        left, right = rng.choice(streams), rng.choice(streams)
        if "{b}k" in text:
            lines.append(f"{name}k = {right} -> map(lambda x: x[0])")
            text = text.replace("{b}k", f"{name}k")
        lines.append(f"{name} = {text.format(a=left, b=right)}")
        streams += [name] * 3
    outputs = rng.randint(1, 2)
    lines += [f'{rng.choice(streams[-3:])} -> sink("out{n}")' for n in range(outputs)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
