"""`hydrotick metrics`, and the same over HTTP: how far flows are, from their ledgers."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from hydro_core.cli.main import run_command
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.cli.worker import serve_metrics
from hydrotick.runner.runner import TickRunner
from tests.orchestration.launched import free_port
from tests.unit.projects.test_exposition import STATUS, parsed

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


def test_how_far_flows_are(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["metrics"]) == 0
    found = parsed(capsys.readouterr().out)
    assert found['hydrotick_ticks_committed{flow="small"}'] == "3"
    assert int(found['hydrotick_ticks_behind{flow="small"}']) > 0
    assert found['hydrotick_last_commit_ticks{flow="small"}'] == "3"
    assert found['hydrotick_last_commit_rows_read{flow="small",input="payments"}'] == "3"
    assert int(found['hydrotick_table_bytes{flow="small",table="totals"}']) > 0
    assert found['hydrotick_stopped{flow="small"}'] == "0"
    assert found["hydrotick_worker_up"] == "0"

    port = free_port()
    serve_metrics(("127.0.0.1", port), lambda: STATUS)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        told = parsed(answer.read().decode())
    assert told['hydrotick_ticks_committed{flow="small"}'] == "3"
    assert told["hydrotick_worker_up"] == "1"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/")
