"""The commands as a page: `docs/commands.md` is what `page()` gives, from the tables of them."""

from __future__ import annotations

from typing import get_args

from hydro_core.cli.command import Command, Topic, Word
from hydro_core.cli.main import commands

_HEAD = """\
# Commands

Written from the tables of commands by `make docs`. Every command has `--help`. Each exits with
0 on success, 1 when the program or data is at fault, and 2 on misuse; what differs is said below.
An error names place, operator and cure; under `--format json` it is
`{"error": {"code", "message", "file", "line", "column", "operator", "help"}}` on standard output
([error codes](language.md#error-codes)). `--debug`, anywhere, also shows where an error came from,
in Python and in Spark.

`FILE` is a program: `*.hydro`, or `module:attribute` for a flow in Python. `FLOW` is a flow of the
project that the current folder is in ([projects.md](projects.md)). `KEY` names a tick as `status`
prints it: `2026-01-31`, or `2026-01-31-06:00` where ticks are shorter than a day.
"""
_ENVIRONMENT = """\
## Environment

Settings of a project stand in its `hydrotick.toml` ([projects.md](projects.md#settings)); a
variable of the same meaning wins.

| variable | |
| --- | --- |
| `HYDROTICK_PROJECT` | the project, where it is neither the current folder nor above it |
| `HYDROTICK_HOME` | where `data/` is: landing, pipelines, Dagster's records |
| `DAGSTER_HOME` | Dagster's instance, where it is not the project's own in `data/dagster` |
| `HYDROTICK_SPARK_MASTER` | where Spark runs |
| `HYDROTICK_SPARK_MEMORY` | what it may take (2g) |
| `HYDROTICK_RANGE_TICKS` | so many ticks of a backfill are one job (100) |
| `HYDROTICK_SAMPLE_KEYS` | so many keys of an output are compared with the program (8) |
| `HYDROTICK_WHY_ROWS` | so many landed rows of an input `why` looks at (100,000) |
| `HYDROTICK_LOG_FORMAT` | how processes log: `text` or `json` ([operating.md](operating.md#logs)) |
| `HYDROTICK_WORKER` | `HOST:PORT` of the worker that runs ticks, or `none` |
| `HYDROTICK_WORKER_TOKEN` | what a worker at an address is asked with |
| `HYDROTICK_FAILURE_COMMAND` | is told of failed runs, as JSON on its standard input |
| `HYDROTICK_FAILURE_WEBHOOK` | an address that gets the same by a POST |
"""


def page() -> str:
    """The whole page, in Markdown."""
    parts = [_HEAD]
    for about in get_args(Topic):
        found = [_section(command) for command in commands().values() if command.about == about]
        parts += [f"## {about}\n", *found]
    return "\n".join([*parts, _ENVIRONMENT])


def _section(command: Command) -> str:
    usage = " ".join(command.parser().format_usage().removeprefix("usage: ").split())
    says = f"{command.does} {command.more}".rstrip()
    lines = [f"### {command.name}\n", f"{says}\n", f"```text\n{usage.replace(' [-h]', '')}\n```\n"]
    if command.arguments:
        lines.append(f"| argument | |\n| --- | --- |\n{''.join(map(_row, command.arguments))}")
    lines.append(f"{_needs(command)}\n")
    if command.ends:
        listed = "; ".join(f"{code}: {means}" for code, means in command.ends)
        lines.append(f"Exit codes: {listed}.\n")
    examples = "\n".join(f"hydrotick {line}" for line in command.examples)
    lines.append(f"```text\n{examples}\n```\n")
    return "\n".join(lines)


def _needs(command: Command) -> str:
    if command.needs != "a project":
        return f"Needs {command.needs}."
    return f"Needs a project, and changes {'it' if command.writes else 'nothing of it'}."


def _row(argument: Word) -> str:
    value = argument.value or "|".join(argument.choices)
    written = f"{argument.name} {value}" if argument.is_option and value else argument.name
    if argument.choices and not argument.is_option:
        written = value
    says = argument.help.replace("|", "\\|")
    return f"| `{written.replace('|', chr(92) + '|')}` | {says} |\n"
