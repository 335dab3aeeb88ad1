"""Checks of a flow, judged by Great Expectations: laws, expectations, landings, quarantine.

A law speaks of facts, one row per state table, that a tick gathers in one pass over what it wrote:
how many rows there were, came and are, and the sums of their hashes. Bags are equal when both
agree, up to a collision of hash sums. What is expected of an output speaks of counts: so many rows
break a check. Both are counted exactly before they are judged, as no frame holds all values as the
language has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import Expect, FlowAsset
from hydro_core.project.quarantine import quarantined_inputs
from hydro_core.types.item import QUARANTINE

from ..flows.late_arrivals import UNCHANGED, LateArrivals
from ..project.shape import FlowShape

if TYPE_CHECKING:
    import pandas as pd

    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import PreparedRange

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


CheckKind = Literal["not_null", "unique", "between", "one_of", "matches"]
"""Kinds of expectations of a column."""
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


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    kind: CheckKind
    expect: Expect
    says: str


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """How many rows were judged by a check, how many break it, and some of these, as texts; or why
    it cannot be judged.
    """

    rows: int = 0
    broken: int = 0
    some: tuple[Mapping[str, str], ...] = ()
    problem: str = ""

    def and_of(self, other: CheckFacts) -> CheckFacts:
        some = (*self.some, *other.some)[:MOST_ROWS]
        return CheckFacts(self.rows + other.rows, self.broken + other.broken, some)


def checks_of_columns(expected: Iterable[Expect]) -> list[Check]:
    """The checks that are expected, each with a name of its own: the second of a kind and a column
    is counted.
    """
    counts, found = Counter[str](), []
    for expect in expected:
        for kind, says in _kinds(expect).items():
            name = f"{expect.column}_{kind}"
            counts[name] += 1
            number = f"_{counts[name]}" if counts[name] > 1 else ""
            found.append(Check(f"{name}{number}", kind, expect, says))
    return found


def declared_checks(expected: Iterable[Expect]) -> dict[str, str]:
    """The checks that `output_suite` will report, name to what it says.

    It needs no Great Expectations, so definitions load without them.
    """
    return {check.name: check.says for check in checks_of_columns(expected)}


def _kinds(expect: Expect) -> dict[CheckKind, str]:
    column, kinds = f"`{expect.column}`", dict[CheckKind, str]()
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


def output_suite(flow: str, output: str, expected: Iterable[Expect]) -> gx.ExpectationSuite:
    from .library import gx, gxe

    return gx.ExpectationSuite(
        name=f"{flow}.{output}",
        expectations=[
            gxe.ExpectColumnValuesToBeInSet(
                column=check.name, value_set=[0], meta={"check": check.name, "says": check.says}
            )
            for check in checks_of_columns(expected)
        ],
    )


_OUTPUT = "output"
ROWS = "rows that break it"
"""Where a verdict has them in what was seen."""
MOST_ROWS = 5
"""So many of the rows that break a check are quoted."""


CURE = (
    "repair what has landed, the program, or what `expect` says in its asset (`severity: warn` "
    "lets ticks pass), and run it again"
)
"""Help where rows are not as the asset expects."""


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
        """True if the tick may not be committed."""
        return not self.passed and self.severity == "error"


def judge_counts(
    flow: str, output: str, expected: Sequence[Expect], facts: Mapping[str, CheckFacts]
) -> tuple[Verdict, ...]:
    """A verdict for each check of an output, by the facts of its name."""
    import pandas as pd

    # What could not be judged has not passed, and is no number of rows.
    counts = {name: [-1 if of.problem else of.broken] for name, of in facts.items()}
    frame = pd.DataFrame({_OUTPUT: [output], **counts})
    judged = validate_rows(output_suite(flow, output, expected), frame, _OUTPUT).get(output, ())
    verdicts = {verdict.check: verdict for verdict in judged}
    return tuple(
        _verdict(verdicts[check.name], facts[check.name], check.expect.severity)
        for check in checks_of_columns(expected)
    )


def _verdict(verdict: Verdict, facts: CheckFacts, severity: str) -> Verdict:
    if facts.problem:
        says = verdict.says if verdict.passed else f"{verdict.says}; {facts.problem}"
        return replace(verdict, says=says, seen={"problem": facts.problem}, severity=severity)
    seen: dict[str, Any] = {"element_count": facts.rows, "unexpected_count": facts.broken}
    if facts.some:
        seen[ROWS] = [dict(row) for row in facts.some]
    says = verdict.says
    if not verdict.passed:
        named = ", ".join(f"{name} {value}" for name, value in facts.some[0].items())
        of = f"{facts.broken:,} of {facts.rows:,} row(s)"
        says = f"{says}; {of} are otherwise, such as {named}"
    return replace(verdict, says=says, seen=seen, severity=severity)


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
    for one, meta in _results(suite, frame, subject):
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
    suite: gx.ExpectationSuite, frame: pd.DataFrame, index: str
) -> Iterator[tuple[ValidationResult, dict[str, str]]]:
    if not suite.expectations:
        return
    form = {"result_format": "COMPLETE", "unexpected_index_column_names": [index]}
    batch = _batch_definition().get_batch({"dataframe": frame})
    for one in batch.validate(suite, result_format=form).results:
        yield one, one.expectation_config.meta or {}


def _compared(one: ValidationResult, row: Mapping[Hashable, Any]) -> dict[str, Any]:
    config = one.expectation_config
    names = [v for key, v in config.kwargs.items() if "column" in key] if config else []
    return {name: row[name] for name in (*names, "problem") if name in row}


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


NO_WRONG_ROWS = "no_wrong_rows"
WARNS: Mapping[str, str] = {NO_WRONG_ROWS: "no row of the tick is in quarantine"}


def quarantine_verdicts(
    flow: FlowAsset, key: str, rows: Mapping[str, int]
) -> Iterator[tuple[str, Verdict]]:
    """Verdict on a tick's quarantine, by the rows that each asset got with it."""
    found = rows.get(QUARANTINE)
    if found is not None:
        shown = f"hydrotick show {flow.name} {QUARANTINE} --tick {key}"
        seen = {"rows in quarantine": found, "show them": shown} if found else {}
        yield QUARANTINE, _landing_verdict(NO_WRONG_ROWS, not found, seen)


def refuse_more(flow: FlowAsset, pipeline: Pipeline, prepared: PreparedRange) -> None:
    """Refuses ticks of which more rows are wrong than the asset has put in quarantine.

    Raises:
        DataError: which tick is the first, how many rows it has, and the first of them (code
            `input`, or `runtime` where a function failed).
    """
    if QUARANTINE not in prepared.outputs or not prepared.outputs[QUARANTINE].rows:
        return
    shown = prepared.shown(QUARANTINE, lambda: pipeline.spark)

    def rows() -> Iterator[tuple[tuple[int, str], Mapping[str, Any]]]:
        """Each with the tick and the input that it counts for; "": a function fails on it."""
        for piece in shown.pieces():
            for row in piece.to_pylist():
                yield (row[TICK], row["source"] if row["source"] in flow.inputs else ""), row

    inputs = quarantined_inputs(flow)
    in_all = flow.on_error.quarantine if flow.on_error else 0
    for of, found in sorted(Counter(of for of, _ in rows()).items()):
        tick, source = of
        allowed = inputs.get(source, 0) if source else in_all
        if found <= allowed:
            continue
        rows_of = (row for at, row in rows() if at == of)
        first = min(f"{row['place']}: {row['reason']}; the row: {row['row']}" for row in rows_of)
        whose = (
            f"of the input `{source}` do not fit" if source else "are such that a function fails"
        )
        raise DataError.of(
            "input" if source else "runtime",
            f"{found:,} row(s) {whose} in {flow.ticks.calendar.window(tick).key}, and at most "
            f"{allowed:,} may be in quarantine; the first: {first}",
            help=f"mend them, or let `on_error` allow more: `{{quarantine: {found}}}`",
        )


EQUALS = "equals_program"
SAYS = "for some keys it is what the program gives, run over all that is landed"


def checks_of(
    flow: FlowAsset, shape: FlowShape, sampled: Collection[str]
) -> dict[str, Mapping[str, str]]:
    """The checks of each asset that has some, each with what it says.

    Args:
        sampled: the outputs that are judged by a few keys.
    """
    laws = {f"state/{state.name}": LAW_CHECKS for state in shape.states}
    expected = {
        output.name: {
            **declared_checks(flow.expect.get(output.name, ())),
            **({EQUALS: SAYS} if output.name in sampled else {}),
            **(WARNS if output.name == QUARANTINE else {}),
        }
        for output in shape.outputs
    }
    found = {**laws, **expected, **landed_checks(flow)}
    return {asset: checks for asset, checks in found.items() if checks}


ROWS_LANDED = "rows_landed"
NO_LATE_ROWS = "no_late_rows"
ROWS_STAND = "committed_rows_stand"
_SAYS = {
    **WARNS,
    ROWS_LANDED: "some row of the input is of the tick",
    NO_LATE_ROWS: "no row came for an earlier tick, which was committed without it",
    ROWS_STAND: "no row of a committed tick was removed or rewritten where it landed",
}


def landed_checks(flow: FlowAsset) -> dict[str, Mapping[str, str]]:
    """The checks of each landing, by its asset; of one that arrives whole not whether a tick has
    any rows.
    """
    return {
        f"landing/{name}": {
            check: says
            for check, says in _SAYS.items()
            if check not in WARNS and (check != ROWS_LANDED or landing.column is not None)
        }
        for name, landing in flow.landings.items()
    }


def landed_verdicts(
    flow: FlowAsset, empty: Collection[str], found: Mapping[str, LateArrivals]
) -> Iterator[tuple[str, Verdict]]:
    """What the checks find of a tick.

    Args:
        empty: those that had no row of the tick.
        found: what was noticed of the others.
    """
    for name, landing in flow.landings.items():
        asset, one = f"landing/{name}", found.get(name, UNCHANGED)
        if landing.column is not None:
            yield asset, _landing_verdict(ROWS_LANDED, name not in empty, {})
        late = {"late rows": one.rows, "late rows are of": one.says_late} if one.late else {}
        yield asset, _landing_verdict(NO_LATE_ROWS, not one.late, late)
        cure = f"hydrotick correct {flow.name} --from {one.first}"
        changed = {"changed ticks": one.says_changed, "cure": cure} if one.changed else {}
        yield asset, _landing_verdict(ROWS_STAND, not one.changed, changed)


def _landing_verdict(check: str, passed: bool, seen: dict[str, Any]) -> Verdict:
    return Verdict(check, passed=passed, says=_SAYS[check], seen=seen, severity="warn")
