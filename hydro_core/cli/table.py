"""The commands about one program: an entry for each, of which all else is made."""

from __future__ import annotations

from functools import partial

from hydro_core.cli.command import (
    FORMAT,
    Command,
    Word,
    format_argument,
    number_of,
    number_or,
)
from hydro_core.lang.source import FORMS

FILE = Word("FILE", FORMS)
PARAM = Word(
    "--param",
    "what a name in the program means, written as in YAML: `100`, `2026-01-01`, `[DE, FR]` "
    "(repeatable)",
    "NAME=VALUE",
    repeated=True,
)
SCHEMA = Word(
    "--schema",
    "what the items of an input are, in Spark's DDL (repeatable)",
    "NAME=DDL",
    repeated=True,
)
STATS = Word(
    "--stats",
    "rows, history and keys of the inputs; or the directory of a pipeline that has run",
    "S.json",
)
_ROUTED = (
    "the field by which an input is routed, as a dotted path; nothing after the `=` is the whole "
    "item (repeatable; an input that is named twice is routed by both fields)"
)
ENGINE = Word(
    "--engine",
    "what computes: the interpreter (default), or Spark",
    choices=("reference", "spark"),
    default="reference",
)

of_a_program = partial(Command, about="A program by itself", needs="a program")
of_a_project = partial(Command, about="A project")

COMMANDS = (
    of_a_program(
        "run",
        "Runs a program on ticks and prints its outputs.",
        "hydro_core.cli.run:run",
        arguments=(
            Word("FILE", FORMS, optional=True),
            Word("--ticks", "the ticks, as JSON", "T.json"),
            Word("--batch", "many programs, a line each", "JOBS.jsonl"),
            Word(
                "--input",
                "an input from Parquet, CSV, JSON lines or Delta; COLUMN says in which tick a row "
                "is",
                "NAME=PATH[:COLUMN]",
                repeated=True,
            ),
            Word("--every", "a tick's length: 15m 1h 1d 1w 1mo", "1d"),
            Word("--start", "when tick 0 begins (default: the earliest)", "TIME"),
            Word("--out", "write each output to DIR/NAME/ as Parquet", "DIR"),
            Word(
                "--ticks-at-once",
                "with --input and --engine spark: N ticks as one job (default: all)",
                "N",
                type=number_of("ticks"),
            ),
            SCHEMA,
            PARAM,
            Word(
                "--deliver",
                "of rules, with --ticks: when what is asynchronous arrives: in the next tick "
                "(default), as the ticks say, or by chance from a seed",
                "next|given|SEED",
                type=number_or("next", "given"),
                default="next",
            ),
            ENGINE,
            Word("--no-optimize", "run the program as written"),
            Word("--range", "all ticks as one job"),
            Word(
                "--shards",
                "run N copies of the program side by side, each on its part of the data, and make "
                "their results one; a program for which this is not the same is refused",
                "N",
                type=int,
            ),
            Word("--on", f"with --shards: {_ROUTED}", "INPUT=PATH", repeated=True),
            Word(
                "--replicate",
                "with --shards: every shard gets all of this input (repeatable)",
                "INPUT",
                repeated=True,
            ),
            FORMAT,
        ),
        examples=(
            "run totals.hydro --ticks ticks.json",
            "run totals.hydro --input payments=landing/payments:day --every 1d --out results",
        ),
    ),
    of_a_program(
        "check",
        "Parses, types and stratifies a program, or every flow of the project.",
        "hydro_core.cli.programs:check",
        arguments=(
            Word("FILE", f"{FORMS}; without one, all flows of the project", optional=True),
            SCHEMA,
            PARAM,
            FORMAT,
        ),
        examples=("check totals.hydro", "check"),
    ),
    of_a_program(
        "optimize",
        "The optimized program, its cost before and after.",
        "hydro_core.cli.programs:optimize",
        arguments=(
            FILE,
            SCHEMA,
            PARAM,
            format_argument("text", "sexpr", "json", "mermaid", "svg"),
            Word("--explain", "the rules that lead to the plan, and the form of what it stores"),
            STATS,
            Word(
                "--validate",
                "run plan and program on N random runs of ticks",
                "N",
                number_of("runs"),
            ),
            Word("--strict", "fail if something is not incremental"),
        ),
        examples=("optimize totals.hydro --explain",),
    ),
    of_a_program(
        "partition",
        "How a program can be cut into shards.",
        "hydro_core.cli.programs:partition",
        arguments=(
            FILE,
            SCHEMA,
            PARAM,
            Word("--on", f"judges one choice: {_ROUTED}", "INPUT=PATH", repeated=True),
            FORMAT,
        ),
        examples=("partition totals.hydro --on payments=user",),
    ),
    of_a_program(
        "lineage",
        "Which input fields an output field comes from.",
        "hydro_core.cli.programs:lineage",
        arguments=(FILE, SCHEMA, PARAM, FORMAT),
        examples=("lineage totals.hydro",),
    ),
    of_a_program(
        "graph",
        "Draws a program with its strata.",
        "hydro_core.cli.programs:graph",
        arguments=(
            FILE,
            SCHEMA,
            PARAM,
            Word(
                "--format",
                "default: by the name of --out, else mermaid",
                choices=("mermaid", "dot", "svg", "text", "json"),
            ),
            Word("--out", "write the drawing to a file", "PATH"),
        ),
        examples=("graph totals.hydro --out totals.svg",),
    ),
    of_a_program(
        "rules",
        "Prints the operators that rules become, as the program `*.hydro` that means the same.",
        "hydro_core.cli.programs:rules",
        arguments=(
            Word("FILE", "rules `*.dl`"),
            Word("--to", "the form (default: hydro)", choices=("hydro",), default="hydro"),
            PARAM,
            FORMAT,
        ),
        examples=("rules paxos.dl",),
    ),
    of_a_project(
        "ready",
        "Makes ready what Spark needs, once: a Java, jars, an archive of its classes.",
        "hydro_core.cli.programs:ready",
        needs="nothing",
        arguments=(
            Word(
                "--store",
                "also what Spark needs to read this kind of object store (repeatable)",
                choices=("azure", "s3"),
                repeated=True,
            ),
        ),
        examples=("ready", "ready --store s3"),
    ),
)
"""The commands of the core."""
