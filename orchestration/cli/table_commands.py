"""The commands about tables and copies of them: an entry for each."""

from __future__ import annotations

from functools import partial

from hydro_core.cli.command import FORMAT, Command, Word

from .tick_commands import FLOW, YES

_NO_COPY = "the copy is damaged, somebody works on a flow, or it was not agreed to"

of_tables = partial(Command, about="Tables")

COMMANDS = (
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
        "Removes all that a flow has of a person: landed rows, states, outputs, and their history.",
        "hydrotick.cli.forget:forget",
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
        "hydrotick.cli.start_over:reset",
        writes=True,
        arguments=(FLOW, YES, FORMAT),
        examples=("reset totals",),
    ),
)
