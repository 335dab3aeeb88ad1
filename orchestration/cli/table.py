"""Commands about projects, ticks, deployments and tables: an entry for each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hydro_core.cli.command import FORMAT, Command, Word, number_of
from hydro_core.cli.table import ENGINE, PARAM, SCHEMA, of_a_program, of_a_project
from hydro_core.lang.source import FORMS

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

TICK_COMMANDS = (
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
        "hydrotick.cli.status:accept",
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
        "hydrotick.cli.worker:metrics",
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
        "hydrotick.cli.show:why",
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


PROJECT_COMMANDS = (
    of_a_project(
        "init",
        "Makes a project that runs: a flow with its program, sample data and a test.",
        "hydrotick.cli.init:init",
        needs="nothing",
        arguments=(
            Word("DIR", "a new or an empty folder", dest="directory"),
            Word("--flow", "its flow (totals)", "NAME", default="totals"),
            Word(
                "--storage",
                "a folder in a store, such as s3://bucket/shop, for tables, ledgers and what lands",
                "URL",
            ),
            FORMAT,
        ),
        examples=("init shop",),
    ),
    of_a_project(
        "test",
        "Runs the tests of the project's flows: ticks in, outputs out, as they are written.",
        "hydrotick.flow_tests:test",
        arguments=(
            Word("FLOW", "one flow (default: all)", optional=True),
            ENGINE,
            FORMAT,
        ),
        examples=("test", "test totals --engine spark"),
    ),
    of_a_project(
        "land",
        "Lands the data that a flow of this project brings with it.",
        "hydrotick.cli.init:land",
        writes=True,
        arguments=(FLOW, FORMAT),
        examples=("land flights",),
    ),
    of_a_project(
        "dev",
        "Opens the Dagster UI with its daemon, on this machine only.",
        "hydrotick.cli.dev:dev",
        writes=True,
        arguments=(Word("--port", "the UI's port (3000)", "N", type=int, default=3000),),
        examples=("dev",),
    ),
    of_a_project(
        "worker",
        "Runs ticks for Dagster's runs in processes that stay, whatever launches these.",
        "hydrotick.cli.worker:worker",
        writes=True,
        arguments=(
            Word("--flows", "so many flows run at a time (2)", "N", type=number_of("flows")),
            Word(
                "--listen",
                "is asked there, too; other machines need the token in HYDROTICK_WORKER_TOKEN",
                "HOST:PORT",
            ),
            Word(
                "--metrics",
                "tells metrics for Prometheus there, at /metrics; HOST is 127.0.0.1 where it is "
                "left out",
                "[HOST:]PORT",
            ),
            Word("--status", "how the worker is, and ends", instead="worker"),
            Word(
                "--drain",
                "the worker ends what goes on, takes no more, and ends; this waits for nothing",
                instead="worker",
            ),
            FORMAT,
        ),
        examples=("worker --flows 4", "worker --status"),
    ),
    of_a_project(
        "demo",
        "Runs the first days of the NYC flights of 2013 through Dagster, Spark and Delta.",
        "hydrotick.cli.backfill:demo",
        writes=True,
        arguments=(
            Word("--days", "how many days of 2013, from 1 to 365 (7)", "N", type=int, default=7),
        ),
        examples=("demo --days 31",),
    ),
    of_a_project(
        "docs",
        "Writes what flows are as a small site: program, plan, columns, state, cost, checks.",
        "hydrotick.site.command:docs",
        arguments=(
            Word("FLOW", "the flow (default: all of them)", optional=True),
            Word("--out", "where (site)", "DIR", default="site"),
            FORMAT,
        ),
        examples=("docs --out site",),
    ),
    of_a_project(
        "doctor",
        "Looks whether all that ticks need is there: settings, rights, stores, clocks, Spark.",
        "hydrotick.cli.doctor:doctor",
        arguments=(
            Word("--no-spark", "do not start Spark, nor ask its executors"),
            FORMAT,
        ),
        examples=("doctor",),
    ),
    of_a_project(
        "completion",
        "Prints the script by which a shell completes commands, options, flows and outputs.",
        "hydrotick.cli.completion:completion",
        needs="nothing",
        more="In bash: `source <(hydrotick completion bash)`; in zsh the same with `zsh`; in fish: "
        "`hydrotick completion fish | source`.",
        arguments=(Word("SHELL", "which shell", choices=("bash", "zsh", "fish")),),
        examples=("completion bash",),
    ),
    of_a_project(
        "complete",
        "Prints what the last of some words after `hydrotick` can become: what shells ask.",
        "hydrotick.cli.completion:complete",
        needs="nothing",
        arguments=(Word("WORDS", "the words up to the cursor; the last may be empty", rest=True),),
        examples=("complete status --fo",),
    ),
    of_a_program(
        "simulate",
        "Runs a program on random ticks in ways that must not matter, and shows the least that "
        "does.",
        "hydrotick.cli.simulate:simulate",
        more="What the program gives tick by tick, as it is written, is compared with its "
        "optimized plan, with the rows of each tick in another order, and with pipelines on Spark "
        "whose ticks are cut into ranges and whose process ends in the middle of a commit.",
        arguments=(
            Word("FILE", f"{FORMS}, or a flow of the project", dest="program"),
            SCHEMA,
            PARAM,
            Word(
                "--engine",
                "`reference`: without pipelines on Spark, in moments (default: spark)",
                choices=("spark", "reference"),
                default="spark",
            ),
            Word(
                "--runs",
                "how many runs (default: 20, on the reference 200)",
                "N",
                type=number_of("runs"),
            ),
            Word(
                "--seed",
                "what the runs are made from: another one makes others (default: 0)",
                "S",
                type=int,
                default=0,
            ),
            Word(
                "--seconds",
                "a run that differs is made smaller for so long (default: 120)",
                "N",
                type=number_of("seconds"),
                default=120,
            ),
            Word("--out", "put the ticks that differ here, for `run`", "T.json", Path),
            Word(
                "--schedules",
                "of rules: N ways in which what is asynchronous may arrive, until one breaks what "
                "`.never` says",
                "N",
                type=number_of("schedules"),
            ),
            Word(
                "--steps",
                "with --schedules: a schedule has at most so many ticks (default: 60)",
                "N",
                type=number_of("ticks"),
                default=60,
            ),
            Word("--duplicates", "with --schedules: what has arrived may arrive again"),
            Word(
                "--ticks",
                "with --schedules: what comes in from outside, tick by tick",
                "T.json",
                Path,
            ),
            FORMAT,
        ),
        examples=("simulate totals --engine reference", "simulate paxos.dl --schedules 1000"),
    ),
)


_NO_COPY = "the copy is damaged, somebody works on a flow, or it was not agreed to"

of_tables = partial(Command, about="Tables")

TABLE_COMMANDS = (
    of_tables(
        "compact",
        "Joins the small files of a flow's tables, and removes those that were replaced long ago.",
        "hydrotick.cli.maintenance:compact",
        writes=True,
        arguments=(
            FLOW,
            Word(
                "--keep-hours",
                "going back to earlier ticks stays possible within these hours (a week)",
                "N",
                int,
                default=7 * 24,
            ),
            FORMAT,
        ),
        examples=("compact totals",),
    ),
    of_tables(
        "forget",
        "Removes all that a flow has of a person, in states, outputs and their history.",
        "hydrotick.cli.forget:forget",
        more="What has landed must be without the person's rows; it names those that are there.",
        writes=True,
        arguments=(
            FLOW,
            Word(
                "--where",
                "whose rows: the value of a column of the inputs, or of one of them; a text "
                "between double quotes is that text (repeatable, once for an input)",
                "[INPUT.]COLUMN=VALUE",
                repeated=True,
                required=True,
            ),
            Word("--dry-run", "say what would be removed, and no more"),
            YES,
            FORMAT,
        ),
        examples=("forget totals --where user=ann --dry-run",),
        ends=(
            (0, "done, or nothing is there"),
            (1, "refused, or not wanted"),
            (3, "with --dry-run: there is something to remove"),
        ),
    ),
    of_tables(
        "copy",
        "Copies the pipelines of all flows, or of one, as of the last commits; ticks may run.",
        "hydrotick.cli.copies:copy",
        more="The directory may not be there yet, or is empty. Neither landings nor Dagster's "
        "records are in a copy.",
        arguments=(
            Word("FLOW", "one flow, its tables and ledger", optional=True),
            Word("DIR", "where the copy is: a directory, or a URL", dest="to"),
            FORMAT,
        ),
        examples=("copy ../backup", "copy totals ../totals"),
    ),
    of_tables(
        "restore",
        "Puts a copy in the place of what is there; the ticks after it are open, and run anew.",
        "hydrotick.cli.copies:restore",
        writes=True,
        arguments=(
            Word("DIR", "where the copy is: a directory, or a URL", dest="copy"),
            Word(
                "FLOW",
                "these flows alone; without them, the project with Dagster's records",
                dest="flows",
                repeated=True,
            ),
            Word("--dry-run", "read the copy, say what would be done, and no more"),
            YES,
            FORMAT,
        ),
        examples=("restore ../backup --dry-run", "restore ../backup totals"),
        ends=(
            (0, "done"),
            (1, f"nothing was changed: {_NO_COPY}"),
            (3, "with --dry-run: the copy is whole, and can be restored"),
        ),
    ),
    of_tables(
        "reset",
        "Starts a flow over: removes its tables, and what Dagster has recorded of it.",
        "hydrotick.cli.maintenance:reset",
        writes=True,
        arguments=(FLOW, YES, FORMAT),
        examples=("reset totals",),
    ),
)


COMMANDS = (*PROJECT_COMMANDS, *TICK_COMMANDS, *TABLE_COMMANDS)
