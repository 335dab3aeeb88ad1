"""Which outputs are of two programs follows from the ledger alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hydro_core.spark.store.ledger.records import SEAMS, Commit, last_seam, seams

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {"log": {"kind": "G"}, "rows": {"kind": "E"}}


def _made(
    *rows: tuple[str, int, int] | tuple[str, int, int, dict[str, int] | bool],
) -> list[Commit]:
    """Commits of a program, with their ticks, and the seams that they made or that they go back."""
    made = []
    for number, (plan, first, last, *more) in enumerate(rows):
        (seam,) = more or ({},)
        checks = {} if isinstance(seam, bool) else {SEAMS: seam}
        back = seam is True
        made.append(
            Commit(
                number,
                first,
                last,
                plan,
                {},
                {},
                started=NOW,
                committed=NOW,
                checks=checks,
                tables=KINDS,
                back=back,
            )
        )
    return made


BEGUN = (("a", 0, 2), ("a", 3, 3))
SEAM = {"log": 2, "rows": 2}


@pytest.mark.parametrize(
    ("commits", "wanted"),
    [
        (BEGUN, {}),
        ((*BEGUN, ("b", 2, 3, SEAM)), SEAM),
        ((*BEGUN, ("b", 2, 3, SEAM), ("b", 4, 9)), SEAM),
        ((*BEGUN, ("b", 2, 3, SEAM), ("b", 1, 3)), {"log": 1, "rows": 1}),
        ((*BEGUN, ("b", 2, 3, SEAM), ("b", 0, 3)), {}),
        # Another program restates the one of them, and keeps the other.
        ((*BEGUN, ("b", 2, 3, SEAM), ("c", 0, 3, {"rows": 0})), {"log": 2}),
        ((*BEGUN, ("b", 2, 3, SEAM), ("a", 4, 3, True)), {}),
        ((*BEGUN, ("b", 2, 3, SEAM), ("c", 0, 3, {"rows": 0}), ("b", 4, 3, True)), SEAM),
        ((*BEGUN, ("b", 2, 3, SEAM), ("c", 4, 3), ("b", 0, 3, True)), {}),
        # Nothing runs, and rows of each tick stay as they are.
        ((*BEGUN, ("b", 4, 3, {"rows": 4})), {"rows": 4}),
    ],
)
def test_what_is_of_two_programs(
    commits: tuple[tuple[str, int, int]], wanted: dict[str, int]
) -> None:
    assert seams(_made(*commits)) == wanted


def test_only_logs_cannot_begin_before_theirs() -> None:
    assert last_seam(_made(*BEGUN, ("b", 4, 3, {"rows": 4, "log": 2}))) == 2
    assert last_seam(_made(*BEGUN, ("b", 4, 3, {"rows": 4}))) == -1
    assert last_seam([]) == -1
