"""The suites of a flow: its laws, derived from the plan, and what its author expects of the
outputs; and running them on the rows of a tick: Great Expectations' own results, by check.

A law speaks of facts, one row per state table, that a tick gathers in one pass over what it wrote:
how many rows there were, came and are, and the sums of their hashes. Bags are equal when both
agree, up to a collision of hash sums.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import Expect

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from .library import ValidationResult, gx


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


_SHOWN = 5
"""How many of the rows that break a check a verdict quotes."""
ROWS = "rows that break it"
"""Where a verdict has them in what was seen."""


CURE = (
    "repair what has landed, the program, or what `expect` says in its asset (`severity: warn` "
    "lets ticks pass), and run it again"
)
"""What helps where rows are not as the asset expects."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check found on one subject: `passed`, and for a person what was expected and what
    was seen. Only one of the `severity` "error" stops a tick.
    """

    check: str
    passed: bool
    says: str
    seen: dict[str, Any] = field(default_factory=dict)
    severity: str = "error"

    @property
    def stops(self) -> bool:
        """Whether the tick may not be committed."""
        return not self.passed and self.severity == "error"


def as_frame(rows: pa.Table) -> pd.DataFrame:
    """The rows as the library judges them: whole numbers stay whole beside nulls, where pandas
    would have doubles, of which those beyond 2**53 are not all told apart.
    """
    return rows.to_pandas(integer_object_nulls=True)


def validate(suite: gx.ExpectationSuite, frame: pd.DataFrame) -> tuple[Verdict, ...]:
    """Judges `frame` by `suite`: a verdict per check name, in the order of the suite.

    An expectation that cannot be evaluated (a missing column, say) fails its check and says why.
    """
    found: dict[str, Verdict] = {}
    for one, meta in _results(suite, frame):
        severity = meta.get("severity", "error")
        passed, seen = bool(one.success), _seen(one, frame)
        says = in_words(meta["says"], seen, passed=passed)
        found[meta["check"]] = Verdict(meta["check"], passed, says, seen, severity)
    return tuple(found.values())


def in_words(says: str, seen: Mapping[str, Any], *, passed: bool) -> str:
    """What a verdict says, by what is expected and what was seen: also which rows break it."""
    if passed:
        return says
    if not seen.get(ROWS):
        return f"{says}; {seen['problem']}" if "problem" in seen else says
    named = ", ".join(f"{name} {value}" for name, value in seen[ROWS][0].items())
    of = f"{seen['unexpected_count']:,} of {seen['element_count']:,} row(s)"
    return f"{says}; {of} are otherwise, such as {named}"


def added_up(first: Verdict, second: Verdict, says: str) -> Verdict:
    """The verdict on rows of which a part was judged before another; `says` is what is expected."""
    passed = first.passed and second.passed
    seen = {**first.seen, **second.seen}
    for name in ("element_count", "unexpected_count"):
        if name in first.seen and name in second.seen:
            seen[name] = first.seen[name] + second.seen[name]
    rows = [*first.seen.get(ROWS, ()), *second.seen.get(ROWS, ())]
    if rows:
        seen[ROWS] = rows[:_SHOWN]
    return Verdict(first.check, passed, in_words(says, seen, passed=passed), seen, first.severity)


def validate_rows(
    suite: gx.ExpectationSuite, frame: pd.DataFrame, subject: str
) -> dict[str, tuple[Verdict, ...]]:
    """Judges each row of `frame` by `suite` in one run: the verdicts of each value of the column
    `subject`.
    """
    if frame.empty:
        return {}
    found: dict[str, dict[str, Verdict]] = {name: {} for name in frame[subject]}
    facts = {row[subject]: row for row in frame.to_dict("records")}
    for one, meta in _results(suite, frame, index=subject):
        broken = {
            row[subject]: row for row in (one.result or {}).get("unexpected_index_list") or ()
        }
        problem = _error(one)
        for name, verdicts in found.items():
            passed = name not in broken and problem is None
            seen = _compared(one, facts[name] if problem is None else {"problem": problem})
            verdict = Verdict(meta["check"], passed, meta["says"], seen)
            before = verdicts.get(verdict.check)
            verdicts[verdict.check] = verdict if before is None else _both(before, verdict)
    return {name: tuple(verdicts.values()) for name, verdicts in found.items()}


def _results(
    suite: gx.ExpectationSuite, frame: pd.DataFrame, index: str | None = None
) -> Iterator[tuple[ValidationResult, dict[str, str]]]:
    if not suite.expectations:
        return
    form: Any = "SUMMARY"
    if index:
        form = {"result_format": "COMPLETE", "unexpected_index_column_names": [index]}
    batch = _batch_definition().get_batch({"dataframe": frame})
    for one in batch.validate(suite, result_format=form).results:
        yield one, one.expectation_config.meta or {}


def _compared(one: ValidationResult, row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Of a row what an expectation compares in it."""
    config = one.expectation_config
    names = [v for key, v in config.kwargs.items() if "column" in key] if config else []
    return {name: row[name] for name in (*names, "problem") if name in row}


def _seen(one: ValidationResult, frame: pd.DataFrame) -> dict[str, Any]:
    problem = _error(one)
    if problem is not None:
        return {"problem": problem}
    result = one.result or {}
    seen = {k: result[k] for k in ("element_count", "unexpected_count") if k in result}
    places = result.get("partial_unexpected_index_list")
    if places:
        # Which tick it is, is said beside.
        rows = frame.loc[places[:_SHOWN]].drop(columns=TICK, errors="ignore").to_dict("records")
        seen[ROWS] = [
            {str(n): "null" if value is None else str(value) for n, value in row.items()}
            for row in rows
        ]
    return seen


def _error(one: ValidationResult) -> str | None:
    """Why an expectation could not be evaluated; Great Expectations nests it by metric or gives it
    flat.
    """
    info = one.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    messages = {
        e.get("exception_message")
        for e in entries
        if isinstance(e, dict) and e.get("raised_exception")
    }
    return "; ".join(sorted(str(m) for m in messages)) or None


def _both(first: Verdict, second: Verdict) -> Verdict:
    """Two expectations of one check; what is said of it is said of the first that is broken."""
    broken = first if not first.passed else second
    return Verdict(
        first.check, first.passed and second.passed, broken.says, {**first.seen, **second.seen}
    )


@cache
def _batch_definition() -> Any:
    from .library import ProgressBarsConfig, gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    source = context.data_sources.add_pandas("tick")
    return source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("rows")
