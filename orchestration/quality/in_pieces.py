"""What is expected of an output, judged on rows that are too many to be held at once.

What holds of each row is judged piece by piece, and the verdicts are added up. Whether a column is
unique shows in no piece: executors tell which values stand there more than once, and how often; of
these some are judged, so that what a verdict says of them is said as of few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hydro_core.project.flow_asset import Expect

from .suites import TICK, check_name, declared_checks
from .validate import ROWS, Verdict, added_up, in_words, validate

if TYPE_CHECKING:
    import pandas as pd

    from hydro_core.spark.store.delta.write import WrittenRows

    from .library import gx

_REPEATED = 5
"""So many of the values that stand there more than once are judged, and quoted."""

SuiteOf = Callable[[Sequence[Expect]], "gx.ExpectationSuite"]


def validate_in_pieces(
    suite_of: SuiteOf,
    expected: Sequence[Expect],
    shown: WrittenRows,
    session: Callable[[], Any],
) -> tuple[Verdict, ...]:
    """The verdicts on rows that executors wrote, as `validate` gives them.

    Args:
        suite_of: gives the suite of some expectations.
        expected: what is expected of the output.
        shown: its rows.
        session: gives the Spark that wrote them.
    """
    says, found = declared_checks(expected), dict[str, Verdict]()
    columns = dict.fromkeys((TICK, *(expect.column for expect in expected)))
    there = [column for column in columns if column in shown.columns]
    suite = suite_of([replace(expect, unique=False) for expect in expected])
    for piece in shown.pieces(there):
        for verdict in validate(suite, piece.to_pandas()):
            before, known = found.get(verdict.check), says[verdict.check]
            found[verdict.check] = verdict if before is None else added_up(before, verdict, known)
    for expect in expected:
        if expect.unique:
            name = check_name("unique", expect.column)
            one = suite_of([Expect(expect.column, unique=True, severity=expect.severity)])
            found[name] = _unique(one, expect.column, shown, session, says[name])
    return tuple(found[name] for name in says if name in found)


def _unique(
    suite: gx.ExpectationSuite,
    column: str,
    shown: WrittenRows,
    session: Callable[[], Any],
    says: str,
) -> Verdict:
    if column not in shown.columns:
        (verdict,) = validate(suite, _frame({TICK: []}))
        return verdict
    from hydro_core.spark.store.outputs.repeated_values import repeated

    told = repeated(shown.frame(session()), TICK, column, _REPEATED)
    some = [one for one in told.some for _ in range(2)]
    frame = _frame({TICK: [tick for tick, _ in some], column: [value for _, value in some]})
    (verdict,) = validate(suite, frame)
    counts = {"element_count": shown.rows, "unexpected_count": told.rows}
    seen: Mapping[str, Any] = {**verdict.seen, **counts}
    if ROWS in seen:
        # Each stands there twice.
        seen = {**seen, ROWS: list({str(row): row for row in seen[ROWS]}.values())}
    return replace(verdict, seen=dict(seen), says=in_words(says, seen, passed=verdict.passed))


def _frame(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)
