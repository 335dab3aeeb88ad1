"""The commands about ticks, and about what is deployed: an entry for each."""

from __future__ import annotations

from functools import partial

from hydro_core.cli.command import FORMAT, Command, Word, number_of

FLOW = Word("FLOW", "a flow of the project")
YES = Word("--yes", "do not ask")
_DEPLOYED = (
    Word(
        "--compare",
        "also run the last N ticks with the new program, and say how their outputs differ",
        "N",
        type=number_of("ticks"),
    ),
    Word("--from-now", "what has no landed past to be computed from starts empty"),
    Word("--forward-only", "changed outputs keep their past as it is", instead="past"),
    Word(
        "--from",
        "the first tick of changed outputs to restate",
        "KEY",
        dest="first",
        instead="past",
    ),
)

_UNWELL = (
    "a flow is stopped or wrongly declared, or waits for rows that are gone, or it is not known "
    "which of its ticks may run, or the last try of its next tick failed, or more ticks than "
    "--max-open are open"
)

of_ticks = partial(Command, about="Ticks")
of_what_is_deployed = partial(Command, about="What is deployed")

COMMANDS = (
    of_ticks(
        "backfill",
        "Runs the open ticks of a flow, in order, as Dagster runs in this process.",
        "hydrotick.cli.backfill:backfill",
        writes=True,
        arguments=(
            FLOW,
            Word(
                "--from",
                "a committed tick: those from it on are computed again first, as `correct` does it",
                "KEY",
                dest="first",
            ),
            Word("--to", "the last tick (default: the last one that may run)", "KEY"),
            YES,
            FORMAT,
        ),
        examples=("backfill totals", "backfill totals --to 2026-01-31"),
    ),
    of_ticks(
        "correct",
        "Computes committed ticks of a flow again, from what is landed now, in one commit.",
        "hydrotick.cli.backfill:correct",
        writes=True,
        arguments=(
            FLOW,
            Word("--from", "the first tick to correct", "KEY", dest="first", required=True),
            YES,
            FORMAT,
        ),
        examples=("correct totals --from 2026-01-31",),
    ),
    of_ticks(
        "accept",
        "Accepts what came or changed for committed ticks: late rows arrive with the next tick.",
        "hydrotick.cli.late_status:accept",
        writes=True,
        arguments=(FLOW, YES, FORMAT),
        examples=("accept totals",),
    ),
    of_ticks(
        "status",
        "Shows how far every flow is: committed ticks, what is open, runs, failed, and comes next.",
        "hydrotick.cli.status:status",
        arguments=(
            Word("FLOW", "one flow", optional=True),
            FORMAT,
            Word("--max-open", "exit with 1 if more than N ticks of a flow are open", "N", int),
            Word(
                "--verify",
                "read all tables instead, and compare them with the ledger: exit with 1 unless "
                "they are whole",
            ),
        ),
        examples=("status", "status totals --verify", "status --format json --max-open 2"),
        ends=(
            (0, "every flow goes on"),
            (1, _UNWELL),
        ),
    ),
    of_ticks(
        "metrics",
        "Prints how flows and the worker are, in the text format of Prometheus.",
        "hydrotick.cli.metrics:metrics",
        arguments=(),
        examples=("metrics",),
    ),
    of_ticks(
        "show",
        "Shows the rows of an output, or of a state, as of a committed tick.",
        "hydrotick.cli.show:show",
        arguments=(
            FLOW,
            Word("OUTPUT", "an output, or a state", dest="name"),
            Word("--tick", "the tick (default: the last committed one)", "KEY"),
            Word("--limit", "show at most N rows", "N", number_of("rows", least=0)),
            FORMAT,
        ),
        examples=("show totals totals --tick 2026-01-31 --limit 20",),
    ),
    of_ticks(
        "why",
        "Shows which landed rows, of which ticks, a row of an output comes from.",
        "hydrotick.cli.why:why",
        arguments=(
            FLOW,
            Word("OUTPUT", "an output of the flow"),
            Word(
                "--where",
                "the value that the row has in a column; `null` is null, and a text between double "
                "quotes is that text (repeatable)",
                "COLUMN=VALUE",
                repeated=True,
                required=True,
            ),
            Word("--tick", "the tick (default: the last committed one)", "KEY"),
            Word("--limit", "show at most N rows of each (20)", "N", number_of("rows"), default=20),
            Word(
                "--seconds",
                "try so long which of the rows that can matter do (20)",
                "N",
                float,
                default=20.0,
            ),
            FORMAT,
        ),
        examples=("why totals totals --where user=ann",),
    ),
    of_what_is_deployed(
        "plan",
        "Shows what deploying the program of a flow as it is now would do; nothing is done.",
        "hydrotick.cli.deploy:plan",
        arguments=(FLOW, *_DEPLOYED, FORMAT),
        examples=("plan totals --compare 7",),
        ends=(
            (0, "nothing is to be deployed, or it goes on as it was"),
            (1, "the program cannot be deployed"),
            (3, "deploying it would change something"),
        ),
    ),
    of_what_is_deployed(
        "deploy",
        "Deploys the program of a flow as it is now: shows what that does, asks, and does it.",
        "hydrotick.cli.deploy:deploy",
        writes=True,
        arguments=(FLOW, *_DEPLOYED, YES, FORMAT),
        examples=("deploy totals",),
    ),
    of_what_is_deployed(
        "rollback",
        "Goes back to the deployment before, and computes the ticks since then by its program.",
        "hydrotick.cli.deploy:rollback",
        writes=True,
        arguments=(FLOW, YES, FORMAT),
        examples=("rollback totals",),
    ),
)
