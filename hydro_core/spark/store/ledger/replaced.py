"""The rows of a ledger in the place of all that it had, by one commit of its log.

The log goes on: who had the right to write before, and by which number, stays known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deltalake import CommitProperties, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from hydro_core.spark.store.ledger.commit import LEDGER_SCHEMA, Commit
from hydro_core.spark.store.ledger.ledger import APPLICATION, LEDGER, WRITER, Ledger, overtaken
from hydro_core.spark.store.ledger.record_columns import as_rows
from hydro_core.storage.delta import opened_table
from hydro_core.storage.remote import DataPlace


def replace_rows(
    directory: DataPlace,
    commits: Sequence[Commit],
    number: int | None,
    unanswered: Callable[[], None],
) -> None:
    """Has the ledger of a pipeline these rows and no others.

    Args:
        directory: the pipeline's.
        commits: the rows, in order; there is one.
        number: by which whoever calls has the right to write in a store.
        unanswered: called where it is not known whether it is done, or comes yet.

    Raises:
        TransientError: another writer has taken over (code `state`).
    """
    table, what = opened_table(directory / LEDGER), "it was restored"
    known = table.transaction_version(WRITER)
    if number is not None and known is not None and known > number:
        raise overtaken(directory, what)
    right = [] if number is None else [Transaction(WRITER, number)]
    said = CommitProperties(
        app_transactions=[Transaction(APPLICATION, commits[-1].sequence), *right],
        custom_metadata={"restored": str(len(commits))},
    )
    try:
        write_deltalake(
            table,
            as_rows(commits, LEDGER_SCHEMA),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=said,
        )
    except CommitFailedError as error:
        # It may be there, and the answer that it is got lost.
        if Ledger(directory).commits(since=-1) != tuple(commits):
            raise overtaken(directory, what) from error
    except (DeltaError, OSError):
        unanswered()
        raise
