"""TPC-H's queries, each as a program and as SQL, over orders and lines that only come and over
dimensions that are corrected: of each customer, part or supplier the latest version counts.

A program's one output is what the query asks for, as a table that is kept up to date: all of it, in
no order. What a reader sees first of it (`ORDER BY … LIMIT`) is `FIRST`, to be put behind.
"""

from __future__ import annotations

from pathlib import Path

QUERIES = Path(__file__).parent / "queries"
NAMES = tuple(f"q{number:02}" for number in range(1, 23))

FIRST = {
    "q02": "sort_by_key(lambda r: (-r.s_acctbal, r.n_name, r.s_name, r.p_partkey)) -> limit(100)",
    "q03": "sort_by_key(lambda r: (-r.revenue, r.o_orderdate)) -> limit(10)",
    "q10": "sort_by_key(lambda r: -r.revenue) -> limit(20)",
    "q18": "sort_by_key(lambda r: (-r.o_totalprice, r.o_orderdate)) -> limit(100)",
    "q21": "sort_by_key(lambda r: (-r.numwait, r.s_name)) -> limit(100)",
}
"""What is read first of a query, where TPC-H says so; equal rows by all their columns."""

SMALL: dict[str, dict[str, str]] = {
    "q02": {"= 15": "= 5", "EUROPE": "ASIA"},
    "q08": {"ECONOMY ANODIZED STEEL": "STANDARD PLATED TIN", "BRAZIL": "UNITED STATES"},
    "q11": {"0.0001": "0.004"},
    "q17": {"Brand#23": "Brand#32", "MED BOX": "LG PKG"},
    "q18": {"300": "230"},
    "q20": {"forest": "s"},
    "q21": {"SAUDI ARABIA": "CHINA"},
}
"""Other parameters of queries, for data of which TPC-H's own find next to nothing."""


def program(name: str, *, small: bool = False) -> str:
    """The program of a query."""
    return _with_parameters(name, (QUERIES / f"{name}.hydro").read_text("utf-8"), small)


def first_of(name: str, *, small: bool = False) -> str:
    """The program of a query with what is read first of its output, in order."""
    text, _, output = program(name, small=small).rstrip().rpartition(" -> ")
    return f"{text} -> {FIRST[name]} -> {output}\n"


def sql(name: str, *, small: bool = False) -> str:
    """The same query as SQL that both DuckDB and Spark read."""
    return _with_parameters(name, (QUERIES / f"{name}.sql").read_text("utf-8"), small)


def _with_parameters(name: str, text: str, small: bool) -> str:
    for own, other in SMALL.get(name, {}).items() if small else ():
        text = text.replace(own, other)
    return text
