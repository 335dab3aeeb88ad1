"""The page of the rules, made from the tables that the optimizer uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hydro_core.optimize.rule import Line
from hydro_core.optimize.rules import aggregates, algebra, facts, ordered

GROUPS: tuple[tuple[str, Sequence[Line]], ...] = (
    ("Time", algebra.STATE),
    ("What grows", algebra.GROWING),
    ("What is empty", algebra.EMPTY),
    ("Distinct items", algebra.UNIQUE),
    ("Identities", algebra.IDENTITIES),
    ("Order that nobody looks at", algebra.BAGS),
    ("What is made of sorted streams", ordered.IN_ORDER),
    ("Running results", (*aggregates.RUNNING, *ordered.ONE_KEY, *aggregates.BY_HAND)),
    ("Results that go on by changes", aggregates.MOVING),
    ("Orders of joins", algebra.ORDERS),
    ("Matches in a history", facts.MATCHES),
    ("Filters", facts.FILTERS),
)
DERIVED: tuple[Line, ...] = (
    (
        "*op*-split, -left, -right",
        "`(op (chain (prev ?a) ?b)) => (chain (op (prev ?a)) (op ?b))`",
        "linear in this input",
    ),
    (
        "*op*-before",
        "`(op (prev ?a)) => (prev (op ?a))`",
        "time-invariant, and nothing of nothing",
    ),
    ("growing-*op*", "`(op ?a)` grows where `?a` does", "monotone, time-invariant, stateless"),
    ("*op*-idempotent", "`(op (op ?a)) => (op ?a)`", "idempotent"),
    ("*op*-window", "`(op (window ?n ?a)) => (window ?n (op ?a))`", "linear in its only input"),
    ("bag-*op*", "`(bag (op! ?a)) => (op (bag ?a))`", "keeps the order of its input"),
    (
        "delta-*op*",
        "`(delta (op ?a ?n)) => (op (delta ?a) ?n)` where `?n` grows",
        "keeps what has no match (`difference`, `anti_join`), or an item or not (`filter`)",
    ),
    (
        "*op*-distinct",
        "`(op ?a (unique ?b)) => (op ?a ?b)`",
        "keeps what has no match (`difference`, `anti_join`)",
    ),
    (
        "*op*-of-itself",
        "`(op ?a ?a)` is empty",
        "keeps what has no match (`difference`, `anti_join`)",
    ),
    ("*op*-empty", "`(op ?a) => ?a` where `?a` is empty", "gives no items but its first input's"),
    (
        "*op*-empty-left, -right",
        "`(op ?a ?b) => ?b`, or `?a`, where the other is empty",
        "a sum, or keeps what has no match",
    ),
    (
        "empty-*op*",
        "`(op ?a)` is empty where `?a` is",
        "linear in this input, or nothing of nothing",
    ),
    (
        "loop:*x*-goes-on",
        "`x => (persist (step:x …))` where all inputs grow",
        "a cycle inside a tick through one `unique` that filters, maps, adds up and joins",
    ),
)


def page() -> str:
    """The page in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Rules"
    yield ""
    yield (
        "Made from the optimizer's tables by `make docs`. `?a` is any stream, `!` marks an operator"
        " on ordered streams, and `bag` forgets an order. Unmarked rules hold on bags."
        " Every rule is tested on random ticks; those that speak of counts are proved for three"
        " ticks. A plan never calls a function on items before the program does."
    )
    for title, lines in GROUPS:
        yield from ("", f"## {title}", "", "| rule | | because |", "|---|---|---|")
        for name, text, because, *when in lines:
            condition = f" when `{'`, `'.join(when)}`" if when else ""
            yield f"| {name} | `{text}`{condition} | {because} |"
    yield from ("", "## Derived from the catalogue", "")
    yield from ("| rule | | for operators that are |", "|---|---|---|")
    for name, text, column in DERIVED:
        yield f"| {name} | {text} | {column} |"
