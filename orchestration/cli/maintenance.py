"""What looks after stored pipelines: `hydrotick compact`, and `status --verify`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from hydro_core.cli.command import Asked
from hydro_core.project.flow_asset import FlowAsset

from ..project.console import Console, asked_flow

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.verify import Verified

    from ..flows.flows import Flows


def compact(options: Asked) -> int:
    from ..runner.runner import TickRunner

    flow, settings = asked_flow(options)
    console, runner = Console(options), TickRunner(settings)
    if runner.deployments.active(flow) is None:
        console.give({"flow": flow.name, "compacted": False}, f"{flow.name}: nothing to do")
        return 0
    runner.pipeline(flow).compact(options.keep_hours)
    gone = runner.deployments.forget(flow, timedelta(hours=options.keep_hours), runner.now())
    said = f"{flow.name}: compacted"
    if gone:
        listed = ", ".join(map(str, gone))
        said += f"\n  deployments that were given up before are removed: {listed}"
    console.give({"flow": flow.name, "compacted": True, "removed_deployments": list(gone)}, said)
    return 0


def verified(asked: Iterable[FlowAsset], flows: Flows, console: Console) -> bool:
    """Says of each flow whether its tables are whole; gives whether all are."""
    from hydro_core.spark.pipeline.verify import verify

    from ..quality.judge import measure

    found = {flow.name: verify(flows.directory(flow), measure) for flow in asked}
    lines = []
    for name, one in found.items():
        whole = f"whole: {counted(one)}" if one.last >= 0 else "nothing is committed"
        lines.append(f"{name}: {f'{len(one.problems)} problem(s)' if one.problems else whole}")
        lines += [f"  {line}" for line in (*one.problems, *one.notes)]
    told = {"flows": [{"flow": name, **asdict(one)} for name, one in found.items()]}
    console.give(told, "\n".join(lines))
    return not any(one.problems for one in found.values())


def counted(found: Verified) -> str:
    """What was read, in words."""
    return (
        f"{found.tables:,} tables, {found.files:,} files, {found.rows:,} rows, "
        f"{found.bytes / 1e6:,.1f} MB"
    )
