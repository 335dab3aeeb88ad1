"""Running suites on the rows of a tick: Great Expectations' own results, grouped by check."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from .suites import TICK

if TYPE_CHECKING:
    import pandas as pd

    from .library import ValidationResult, gx

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
