"""The suites of a flow: its laws, derived from the plan, and what its author expects of the
outputs.

A law speaks of facts, one row per state table, that a tick gathers in one pass over what it wrote:
how many rows there were, came and are, and the sums of their hashes. Bags are equal when both
agree, up to a collision of hash sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from assets.spec import Expect

if TYPE_CHECKING:
    import great_expectations as gx
    import pandas as pd


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What one tick did to one table: row counts and hash sums (modulo 2**64) before, of the batch,
    and after.

    `batch_*` is what the tick computed, `written_*` what was read back of it, `after_*` what the
    table holds.
    """

    table: str
    before_rows: int
    batch_rows: int
    written_rows: int
    after_rows: int
    before_keys: int
    batch_keys: int
    written_keys: int
    after_keys: int
    declared_type: str
    stored_type: str


@dataclass(frozen=True, slots=True)
class Law:
    """Two columns of the facts that must agree in every row, and the check that says so."""

    check: str
    left: str
    right: str
    says: str


PERSIST = "persist_is_old_plus_new"
DELTA = "delta_of_persist_is_batch"
TYPES = "types"
LAWS = (
    Law(PERSIST, "after_rows", "expected_rows", "persist_t = old_t + new_t, by counts"),
    Law(PERSIST, "after_keys", "expected_keys", "persist_t = old_t + new_t, by keys"),
    Law(DELTA, "written_rows", "batch_rows", "delta(persist x) = x, by counts"),
    Law(DELTA, "written_keys", "batch_keys", "delta(persist x) = x, by keys"),
    Law(
        TYPES,
        "stored_type",
        "declared_type",
        "what is stored has the type that the program declares",
    ),
)
LAW_CHECKS: Mapping[str, str] = {
    PERSIST: "persist_t = old_t + new_t, by counts and keys",
    DELTA: "delta(persist x) = x, by counts and keys",
    TYPES: "what is stored has the type that the program declares",
}


def laws_frame(facts: Iterable[TableFacts]) -> pd.DataFrame:
    """The facts as the frame that `laws_suite` judges, a row per table; hash sums as text, they
    exceed a double.
    """
    import pandas as pd

    rows = []
    for fact in facts:
        row: dict[str, Any] = asdict(fact)
        row["expected_rows"] = fact.before_rows + fact.batch_rows
        row["expected_keys"] = (fact.before_keys + fact.batch_keys) % 2**64
        for name in ("before_keys", "batch_keys", "written_keys", "after_keys", "expected_keys"):
            row[name] = f"{row[name] % 2**64:016x}"
        rows.append(row)
    return pd.DataFrame(rows)


def laws_suite(flow: str) -> gx.ExpectationSuite:
    """The suite of a flow's state tables over `laws_frame`; each expectation's meta names its
    check.
    """
    import great_expectations as gx
    import great_expectations.expectations as gxe

    return gx.ExpectationSuite(
        name=f"{flow}.laws",
        expectations=[
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A=law.left, column_B=law.right, meta={"check": law.check, "says": law.says}
            )
            for law in LAWS
        ],
    )


def output_suite(flow: str, output: str, expected: Iterable[Expect]) -> gx.ExpectationSuite:
    """The suite of what the author expects of `output`, over the rows that one tick adds to it."""
    import great_expectations as gx

    return gx.ExpectationSuite(
        name=f"{flow}.{output}",
        expectations=[e for expect in expected for e in _expectations(expect)],
    )


def _expectations(expect: Expect) -> list[Any]:
    import great_expectations.expectations as gxe

    column = expect.column
    found: list[Any] = []
    if expect.not_null:
        found.append(
            gxe.ExpectColumnValuesToNotBeNull(column=column, meta=_meta("not_null", column))
        )
    if expect.unique:
        found.append(gxe.ExpectColumnValuesToBeUnique(column=column, meta=_meta("unique", column)))
    if expect.at_least is not None or expect.at_most is not None:
        found.append(
            gxe.ExpectColumnValuesToBeBetween(
                column=column,
                min_value=expect.at_least,
                max_value=expect.at_most,
                meta=_meta("between", column),
            )
        )
    if expect.one_of:
        found.append(
            gxe.ExpectColumnValuesToBeInSet(
                column=column, value_set=list(expect.one_of), meta=_meta("one_of", column)
            )
        )
    if expect.matches is not None:
        found.append(
            gxe.ExpectColumnValuesToMatchRegex(
                column=column, regex=expect.matches, meta=_meta("matches", column)
            )
        )
    return found


def _meta(kind: str, column: str) -> dict[str, str]:
    return {"check": check_name(kind, column), "says": f"{column}: {kind.replace('_', ' ')}"}


def check_name(kind: str, column: str) -> str:
    """The name of the asset check for one kind of expectation on one column."""
    return f"{column}_{kind}"


def declared_checks(expected: Iterable[Expect]) -> dict[str, str]:
    """The checks that `output_suite` will report, name to description, without importing Great
    Expectations.
    """
    kinds: dict[str, str] = {}
    for expect in expected:
        has = {
            "not_null": expect.not_null,
            "unique": expect.unique,
            "between": expect.at_least is not None or expect.at_most is not None,
            "one_of": bool(expect.one_of),
            "matches": expect.matches is not None,
        }
        for kind, wanted in has.items():
            if wanted:
                kinds[check_name(kind, expect.column)] = (
                    f"{expect.column}: {kind.replace('_', ' ')}"
                )
    return kinds
