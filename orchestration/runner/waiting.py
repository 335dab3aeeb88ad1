"""Ticks wait while somebody deploys, corrects or compacts their flow: that is no failure of theirs.

Such work holds the right to write for as long as it takes. Whoever else holds it, a tick, say, is
done in moments, and who meets that is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hydro_core.storage.remote import DataPlace

_SECONDS_TO_LOOK = 1.0


def wait_for_work(directory: DataPlace, log: Callable[[str], None]) -> None:
    """Returns when nobody is at such work on the pipeline in a directory; says once whose it is."""
    # Imported here: what runs ticks is opened by who only asks, too.
    from hydro_core.spark.store.ledger.lock import long_work

    said = ""
    while work := long_work(directory):
        if work != said:
            log(f"it waits for {work}")
            said = work
        time.sleep(_SECONDS_TO_LOOK)
