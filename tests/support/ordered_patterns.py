"""Random arguments of what goes by the order of a key's rows, on rows `k, v`."""

from __future__ import annotations

from random import Random

from hydro_core.catalog.ordered import OVER, with_tails
from hydro_core.catalog.spec import Aggregate, Args, OverFunction
from hydro_core.functions.tree import Fn
from hydro_core.lang.resolve import parse
from hydro_core.optimize.rules.ordered import of_one_key
from hydro_core.types.ddl import parse_ddl

FUNCTIONS = (
    (("n", OverFunction("row_number")), ("b", OverFunction("lag", ("k", 2, None)))),
    (
        ("r", OverFunction("rank")),
        ("m", OverFunction("running", (Aggregate("avg", ("v",)), False))),
    ),
    (
        ("d", OverFunction("dense_rank")),
        ("s", OverFunction("session", (1,))),
        ("t", OverFunction("rolling", (Aggregate("sum", ("v",)), 3, None))),
    ),
)


def top_arguments(rng: Random, by: tuple[str, ...] | None) -> dict[str, object]:
    """Those of `top`."""
    return {
        "n": rng.randint(0, 2),
        "by": by,
        "order": rng.choice((("v",), ("v", "k"))),
        "descending": rng.random() < 0.5,
        "ties": rng.random() < 0.5,
    }


def over_arguments(rng: Random) -> Args:
    """Those of `over`, of functions that go on from the last rows."""
    given = {a.name: a.default for a in OVER.args}
    given |= {"by": ("k",), "order": ("v",), "functions": rng.choice(FUNCTIONS)}
    return Args(tuple(given.items()))


def with_tails_of(rng: Random) -> list[Args]:
    """Those, with those of what goes on, and of what a program sees of it."""
    args, row = over_arguments(rng), parse_ddl("k long, v long")
    found = with_tails(args, row, OVER.result(args, (row,)))
    assert found is not None
    return [args, *found]


def first_of(rng: Random, fact: str, rule: str) -> list[Args]:
    """Those of what takes the first rows of a sorted stream, of the sort, and of `top`."""
    by = ("k",) if fact == "first_of_key" else None
    single = "single" in rule or "unique" in rule
    n, down = 1 if single else rng.randint(0, 3), rng.random() < 0.5
    taker = Args((("by", by),)) if "unique" in rule else Args((("n", n), ("by", by)))
    if "by-key" not in rule:
        order: object = rng.choice((("k", "v"), _fn("lambda x: x")))
        given = Args((("n", n), ("by", by), ("order", order), ("descending", False)))
        return [taker, Args(), given.with_(ties=False)]
    fn = _fn(rng.choice(("lambda r: r.v", "lambda r: -(r.v or 0)", "lambda k, v: (k or 0) % 2")))
    top = (("n", n), ("by", by), ("order", fn), ("descending", down), ("ties", False))
    return [taker, Args((("f", fn), ("descending", down))), Args(top)]


OF_ORDER = ("tails", "first_of_key", "first_of_all", "steps_in_order", "one_key")
"""What is known of arguments that go by an order."""


def known_of_order(rng: Random, fact: str, rule: str) -> list[Args]:
    """Arguments of which such a fact is true."""
    if fact == "tails":
        return with_tails_of(rng)
    if fact == "one_key":
        return one_key_of(rng)
    return steps_in_order(rng, rule) if fact == "steps_in_order" else first_of(rng, fact, rule)


def one_key_of(rng: Random) -> list[Args]:
    """Those of `over` without a key, and of what it is by one."""
    args, row = over_arguments(rng).with_(by=None), parse_ddl("k long, v long")
    found = of_one_key(args, row, OVER.result(args, (row,)))
    assert found is not None
    return list(found)


STEPS = ("lambda acc, v: acc * 2 - v", "lambda acc, v: v - acc", "lambda acc, v: max(acc, v) + 1")


def steps_in_order(rng: Random, name: str) -> list[Args]:
    """Those of a fold, a scan or a reduction of sorted pairs, of the sort, and of what is both."""
    step = (("f", _fn(rng.choice(STEPS))), ("by", None))
    start = () if "reduce" in name else (("init", rng.randint(0, 3)),)
    by_key = name.endswith("-by-key") or rng.random() < 0.5
    order: object = _fn(rng.choice(("lambda x: x[1]", "lambda k, v: (k - v) % 3")))
    down = rng.random() < 0.5
    if name.endswith("-sort") or not by_key:
        order, down = _fn("lambda x: x"), False
    both = Args((*start, *step, ("order", order), ("descending", down)))
    return [Args((*start, *step)), Args((("f", order), ("descending", down))), both]


def _fn(text: str) -> Fn:
    graph = parse(f"a -> map({text}) -> out")
    fn: Fn = graph.named("map")[0].args["f"]
    return fn
