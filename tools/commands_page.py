"""The commands as a page: `docs/commands.md` is what `page()` gives, from their own parsers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType

from tools.command_lines import names, parser_of

_HEAD = """\
# Commands

Written from the parsers of the commands by `make docs`. Every command has `--help`. Each exits with
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
_ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "A program by itself": "run check optimize partition lineage graph simulate",
        "A project": "init test land dev worker demo docs ready completion",
        "Ticks": "backfill correct accept status metrics show why",
        "What is deployed": "plan deploy rollback",
        "Tables": "compact forget copy reset upgrade",
    }
)


def page() -> str:
    """The whole page, in Markdown."""
    there = names()
    parts = [_HEAD]
    for title, listed in {**_ABOUT, "Others": " ".join(_others(there))}.items():
        found = [name for name in listed.split() if name in there]
        if found:
            parts += [f"## {title}\n", *map(_section, found)]
    return "\n".join([*parts, _ENVIRONMENT])


def _others(there: list[str]) -> list[str]:
    placed = " ".join(_ABOUT.values()).split()
    return [name for name in there if name not in placed]


def _section(name: str) -> str:
    parser = parser_of(name)
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split()).replace(" [-h]", "")
    actions = [a for a in parser._actions if not isinstance(a, argparse._HelpAction)]
    lines = [f"### {name}\n", f"{parser.description}\n", f"```text\n{usage}\n```\n"]
    if actions:
        lines.append(f"| argument | |\n| --- | --- |\n{''.join(map(_row, actions))}")
    return "\n".join(lines)


def _row(action: argparse.Action) -> str:
    if not action.help:
        raise ValueError(f"{action.dest} says nothing of itself: give it a `help`")
    value = action.metavar or (action.choices and "|".join(map(str, action.choices)))
    shown = str(value or "" if action.nargs != 0 else "")
    written = " ".join([*(", ".join(action.option_strings) or "",), shown]).strip()
    says = action.help.replace("|", "\\|")
    return f"| `{written.replace('|', chr(92) + '|')}` | {says} |\n"
