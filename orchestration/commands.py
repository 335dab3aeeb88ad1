"""The commands of the orchestrated side, as plug-ins of `hydrotick`: each takes the words after its
name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from hydro_core.errors import DataError, Diagnostic

# Dagster takes seconds to import, so each command imports what it needs when it runs.


def demo(arguments: Sequence[str]) -> int:
    """Runs the first days of the NYC flights of 2013 through Dagster, Spark and Delta."""
    from .cli.demo import demo as run_demo

    return run_demo(arguments)


def dev(arguments: Sequence[str]) -> int:
    """Opens the Dagster UI with its daemon, on this machine only."""
    from .cli.dev import dev as run_dev

    return run_dev(arguments)


def status(arguments: Sequence[str]) -> int:
    """Shows how far every flow is: committed ticks, what is open, runs, failed, and comes next."""
    from .cli.status import status as show_status

    return show_status(arguments)


def backfill(arguments: Sequence[str]) -> int:
    """Runs the open ticks of a flow, in order, as Dagster runs in this process."""
    from .cli.backfill import backfill as run_backfill

    return run_backfill(arguments)


def correct(arguments: Sequence[str]) -> int:
    """Computes committed ticks of a flow again, from what is landed now, in one commit."""
    from .cli.backfill import correct as run_correct

    return run_correct(arguments)


def accept(arguments: Sequence[str]) -> int:
    """Accepts what came or changed for committed ticks: late rows arrive with the next tick."""
    from .cli.late_status import accept as run_accept

    return run_accept(arguments)


def docs(arguments: Sequence[str]) -> int:
    """Writes what flows are as a small site: program, plan, columns, state, cost, checks."""
    from .site.command import docs as write_docs

    return write_docs(arguments)


def show(arguments: Sequence[str]) -> int:
    """Shows the rows of an output, or of a state, as of a committed tick."""
    from .cli.show import show as show_rows

    return show_rows(arguments)


def why(arguments: Sequence[str]) -> int:
    """Shows which landed rows, of which ticks, a row of an output comes from."""
    from .cli.why import why as show_why

    return show_why(arguments)


def plan(arguments: Sequence[str]) -> int:
    """Shows what deploying the program of a flow as it is now would do; nothing is done."""
    from .cli.deploy import plan as show_plan

    return show_plan(arguments)


def deploy(arguments: Sequence[str]) -> int:
    """Deploys the program of a flow as it is now: shows what that does, asks, and does it."""
    from .cli.deploy import deploy as run_deploy

    return run_deploy(arguments)


def rollback(arguments: Sequence[str]) -> int:
    """Goes back to the deployment before, and computes the ticks since then by its program."""
    from .cli.deploy import rollback as run_rollback

    return run_rollback(arguments)


def init(arguments: Sequence[str]) -> int:
    """Makes a project that runs: a flow with its program, sample data and a test."""
    from .cli.init import init as make

    return make(arguments)


def test(arguments: Sequence[str]) -> int:
    """Runs the tests of the project's flows: ticks in, outputs out, as they are written."""
    from .flow_tests.command import test as run_tests

    return run_tests(arguments)


def simulate(arguments: Sequence[str]) -> int:
    """Runs a program on random ticks in ways that must not matter, and shows the least that does.

    What the program gives tick by tick, as it is written, is compared with its optimized plan, with
    the rows of each tick in another order, and with pipelines on Spark whose ticks are cut into
    ranges and whose process ends in the middle of a commit.
    """
    from .cli.simulate import simulate as run_simulation

    return run_simulation(arguments)


def completion(arguments: Sequence[str]) -> int:
    """Prints the script by which a shell completes commands, options, flows and outputs."""
    from .cli.completion import completion as print_script

    return print_script(arguments)


def land(arguments: Sequence[str]) -> int:
    """Lands the data that a flow of this project brings with it."""
    from .project.arguments import add_format, flow_parser, parsed

    parser = flow_parser("land", land.__doc__)
    add_format(parser)
    options, flow, settings = parsed(parser, arguments)
    if flow.land is None:
        raise DataError(
            Diagnostic(
                "config",
                f"`{flow.name}` brings no data with it",
                help=f"what its inputs read is to land below {settings.landing}",
            )
        )
    flow.land(settings.landing)
    if options.format == "json":
        sys.stdout.write(json.dumps({"flow": flow.name, "landing": str(settings.landing)}) + "\n")
    else:
        sys.stdout.write(f"{flow.name}: landed below {settings.landing}\n")
    return 0
