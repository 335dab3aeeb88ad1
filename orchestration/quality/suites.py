"""The suites of a flow: its laws, derived from the plan, and what its author expects of the
outputs.

A law speaks of facts, one row per state table, that a tick gathers in one pass over what it wrote:
how many rows there were, came and are, and the sums of their hashes. Bags are equal when both
agree, up to a collision of hash sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import Expect

if TYPE_CHECKING:
    import pandas as pd

    from .library import gx


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


TICK = "tick"
"""The column of an output that tells its ticks; each is judged by itself where that matters."""
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
    from .library import gx, gxe

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
    from .library import gx

    return gx.ExpectationSuite(
        name=f"{flow}.{output}",
        expectations=[e for expect in expected for e in _expectations(expect)],
    )


def declared_checks(expected: Iterable[Expect]) -> dict[str, str]:
    """The checks that `output_suite` will report, name to what it says.

    It needs no Great Expectations, so definitions load without them.
    """
    return {
        check_name(kind, expect.column): says
        for expect in expected
        for kind, says in _kinds(expect).items()
    }


def check_name(kind: str, column: str) -> str:
    """The name of the asset check for one kind of expectation on one column."""
    return f"{column}_{kind}"


def _kinds(expect: Expect) -> dict[str, str]:
    """What is expected of a column, in words."""
    column, kinds = f"`{expect.column}`", {}
    if expect.not_null:
        kinds["not_null"] = f"{column} is never null"
    if expect.unique:
        kinds["unique"] = f"{column} is unique within a tick"
    bounds = [
        *([f"at least {expect.at_least}"] if expect.at_least is not None else []),
        *([f"at most {expect.at_most}"] if expect.at_most is not None else []),
    ]
    if bounds:
        kinds["between"] = f"{column} is {' and '.join(bounds)}"
    if expect.one_of:
        kinds["one_of"] = f"{column} is one of {', '.join(map(str, expect.one_of))}"
    if expect.matches is not None:
        kinds["matches"] = f"{column} matches {expect.matches}"
    return kinds


def _expectations(expect: Expect) -> list[Any]:
    from .library import gxe

    column = expect.column
    made: dict[str, Callable[..., Any]] = {
        "not_null": partial(gxe.ExpectColumnValuesToNotBeNull, column=column),
        "unique": partial(
            gxe.ExpectCompoundColumnsToBeUnique,
            column_list=[TICK, column],
            ignore_row_if="any_value_is_missing",
        ),
        "between": partial(
            gxe.ExpectColumnValuesToBeBetween,
            column=column,
            min_value=expect.at_least,
            max_value=expect.at_most,
        ),
        "one_of": partial(
            gxe.ExpectColumnValuesToBeInSet, column=column, value_set=list(expect.one_of)
        ),
        "matches": partial(
            gxe.ExpectColumnValuesToMatchRegex, column=column, regex=expect.matches or ""
        ),
    }
    return [
        made[kind](
            meta={
                "check": check_name(kind, column),
                "says": says,
                "severity": expect.severity,
            }
        )
        for kind, says in _kinds(expect).items()
    ]
