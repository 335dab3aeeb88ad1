"""Random programs that order the rows of keys: over histories, windows, running results and joins.

The pieces are those of `keyed_histories`, and `over` and `top` with all their functions. Nulls and
ties are frequent in what rows are ordered by, late rows and retractions too: values are few.
"""

from __future__ import annotations

from itertools import product

from tests.laws.keyed_histories import BY_KEY, OVER_TIME, PER_ITEM, TWO, KeyedHistory, keyed_history

KEYS = ('by="k", ', 'by=["k", "m"], ', 'by="m", ', "by=lambda r: (r.m or 0) % 2, ", "")
ORDERS = (
    'order="v"', 'order="v", descending=True', 'order=["v", "m"]', 'order="m"',
    'order=["m", "k"], descending=True', 'order="k"', 'order="k", descending=True',
    "order=lambda r: (r.v or 0) % 2",
)  # fmt: skip
FUNCTIONS = (
    "row_number()", "rank()", "dense_rank()", "ntile(2)",
    'lag("m")', 'lag("v", 2, default=7)', 'lag(lambda r: (r.v or 0) + 1)', 'lag("m", 0)',
    'lead("m")', 'lead("v", 2, default=-1)',
    'running(sum("m"))', 'running(sum("v"), peers=True)', "running(count())",
    'running(count_distinct("m", "v"))', 'running(max_by("m", "v"))', 'running(last("m"))',
    'running(min("v"), peers=True)', 'running(first("m"), peers=True)',
    'running(count_if(lambda r: r.v == 1))',
    'rolling(sum("m"), rows=2)', 'rolling(first("m"), rows=2)', 'rolling(max("v"), rows=3)',
    'rolling(sum("m"), within=1)', "rolling(count(), within=0)", 'rolling(last("m"), within=1)',
    'whole(sum("m"))', 'whole(last("m"))', 'whole(count_distinct("v"))', "whole(count())",
)  # fmt: skip
"""Those that give a number of the type of `v`."""
OTHERS = (
    ("percent_rank()", "int(r.n * 60)"),
    ("cume_dist()", "int(r.n * 60)"),
    ("session(gap=1)", "0 if r.n is None else 1"),
    ("session(gap=0)", "0 if r.n is None else 1"),
    ('running(collect_list("m"))', "len(r.n)"),
    ('rolling(collect_list("m"), rows=2)', "0 if len(r.n) == 0 else r.n[0]"),
    ('rolling(avg("m"), rows=3)', "int((r.n or 0) * 60)"),
)
NUMBERED = 'over({key}{order}, n={f}) -> map(lambda r: {{"k": r.k, "m": r.m, "v": {n}}})'
OVER = (
    *(
        NUMBERED.format(key=key, order=order, f=f, n="r.n")
        for key, order, f in product(KEYS, ORDERS, FUNCTIONS)
    ),
    *(
        NUMBERED.format(key=key, order=order, f=f, n=n)
        for key, order, (f, n) in product(KEYS, ORDERS, OTHERS * 2)
    ),
)
SESSIONS = tuple(
    f'over({key}{order}, n=session(gap=1)) -> map(lambda r: {{"k": r.k, "m": r.m, "v": r.n}})'
    for key, order in product(KEYS, ORDERS[:2] + ORDERS[3:4])
)
TOP = tuple(
    f"top({n}, {key}{order}{ties})"
    for n, key, order, ties in product((0, 1, 1, 2, 2, 3), KEYS, ORDERS, ("", ", ties=True"))
)
SEVERAL = tuple(
    f'over({key}{order}, a=lag("v"), b=running(sum("m")), c=rank(), d=rolling(count(), within=1), '
    f'e=session(gap=1)) -> map(lambda r: {{"k": r.k, "m": r.b, "v": (r.a or 0) + r.c + r.d}})'
    for key, order in product(KEYS, ORDERS[:2] + ORDERS[3:4])
)
STEP = "lambda acc, r: (acc * 2 + (r.v or 0)) % 5"
NEXT = 'lambda a, b: {"k": b.k, "m": b.m, "v": ((a.v or 0) * 2 - (b.v or 0)) % 5}'
ROW_OF_STEP = 'map(lambda r: {"k": r.k, "m": r.m, "v": r.value})'
SORTED = tuple(
    f"{sort} -> {of_sorted}"
    for sort, of_sorted in product(
        (
            "sort()", "sort_by_key(lambda r: r.v)", "sort_by_key(lambda r: r.m, descending=True)",
            "sort_by_key(lambda r: r.v, descending=True) -> filter(lambda r: r.m != 1)",
        ),
        (
            'limit(2, by="k")', "limit(1)", 'unique_keyed(by="m")',
            f'scan_keyed(0, {STEP}, by=["k", "m"]) -> {ROW_OF_STEP}',
            f'fold_keyed(1, {STEP}, by=["k", "m"]) -> {ROW_OF_STEP}',
            f'reduce_keyed({NEXT}, by="k")',
        ),
    )
)  # fmt: skip
"""Those of sorted streams, which plans take for the ones of keys."""
KINDS = (OVER_TIME, BY_KEY, PER_ITEM, TWO, OVER, OVER, SESSIONS, TOP, TOP, SEVERAL, SORTED)


def ordered_history(seed: int) -> KeyedHistory:
    """The program of a seed, with ticks that meet it."""
    for attempt in range(20):
        made = keyed_history(seed * 20 + attempt, kinds=KINDS)
        if any(f"{word}(" in made.text for word in ("over", "top", "sort", "sort_by_key")):
            return made
    raise ValueError(f"no program of {seed} orders rows by key")
