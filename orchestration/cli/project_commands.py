"""The commands about a project as a whole: an entry for each, of which all else is made."""

from __future__ import annotations

from pathlib import Path

from hydro_core.cli.command import FORMAT, Word, number_of
from hydro_core.cli.table import ENGINE, PARAM, SCHEMA, of_a_program, of_a_project
from hydro_core.lang.source import FORMS

from .tick_commands import FLOW

COMMANDS = (
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
        "hydrotick.flow_tests.command:test",
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
        "hydrotick.cli.demo:demo",
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
