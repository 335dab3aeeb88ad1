"""Which outputs that serve are of two programs: their earlier ticks are as another one left them.

A deployment that keeps a part of the past says so in its commit. Whoever takes a stored output for
what the program that serves makes of every tick has to ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hydro_core.spark.store.ledger.commit import Commit

SEAMS = "seams"
"""What a commit calls, among what it keeps for others, the outputs that it has restated, with the
first tick of each that it has; 0: all.
"""


def seams(commits: Iterable[Commit]) -> Mapping[str, int]:
    """Of the tables that are of two programs as the last of these commits leaves them, the first
    tick that is of the program that serves.

    Args:
        commits: all up to that one, in their order.
    """
    found: dict[str, int] = {}
    left: dict[str, Mapping[str, int]] = {}
    plan = ""
    for commit in commits:
        if commit.plan != plan and commit.back:
            found = dict(left.get(commit.plan, {}))
        elif commit.plan != plan:
            found = {**found, **commit.checks.get(SEAMS, {})}
        if commit.ticks and (commit.plan == plan or commit.back):
            # Ticks that were computed again are of one program.
            found = {name: min(tick, commit.first) for name, tick in found.items()}
        plan, left[commit.plan] = commit.plan, found
    return {name: tick for name, tick in found.items() if tick > 0}


def last_seam(commits: Iterable[Commit]) -> int:
    """The first tick from which on all logs of outputs are of the program that serves.

    A log tells what each tick changes of the tick before, so that no tick up to a seam can be
    computed again unless all are.

    Args:
        commits: all up to the one that left the tables.
    """
    commits = list(commits)
    tables = commits[-1].tables if commits else {}
    logs = (t for name, t in seams(commits).items() if tables.get(name, {}).get("kind") == "G")
    return max(logs, default=-1)
