"""Corrections, deployments, rollbacks and compactions in a store, of which a request goes wrong.

Whatever it is, what is committed is as it was or all of it, and doing it again ends it.
"""

from __future__ import annotations

import pytest

from tests.support.store_server import StoreServer
from tests.unit.storage.trials import KINDS, WORKS, Trials


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("work", WORKS)
def test_at_every_request_one_thing_goes_wrong(server: StoreServer, work: str, kind: str) -> None:
    trials, at = Trials(server, WORKS[work]), 1
    while trials.at(at, kind):
        at += KINDS[kind].step
    assert at > 20
