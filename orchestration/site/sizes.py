"""How much the tables of a pipeline hold, by the logs of these tables alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hydro_core.spark.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class TableSize:
    """What a table holds: rows, and the bytes and number of its files."""

    rows: int
    bytes: int
    files: int


def sizes_of(ledger: Ledger) -> Mapping[str, TableSize]:
    """The sizes of a pipeline's tables, by their assets: an output, or "state/NAME".

    What its last commit names is read at the version that it names: it alone has happened.
    """
    from deltalake.exceptions import DeltaError

    from hydro_core.spark.store.delta_actions import data_files
    from hydro_core.storage.delta import opened_table

    commit, found = ledger.last, {}
    if commit is None:
        return {}
    for name, record in commit.tables.items():
        try:
            table = opened_table(ledger.directory / name, commit.versions.get(name))
        except DeltaError:
            # A table that is not there is told by what runs next.
            continue
        files = data_files(table, "size_bytes", "num_records")
        size = TableSize(
            sum(file["num_records"] or 0 for file in files),
            sum(file["size_bytes"] for file in files),
            len(files),
        )
        found[f"state/{record['of']}" if record["role"] == "state" else record["of"]] = size
    return found
