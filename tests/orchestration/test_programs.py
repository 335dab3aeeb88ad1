"""Whether a program is the one that is deployed: by its text where that is enough, else by what it
says.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydro_core.artifact.deployment import PACKAGE, Deployment, program_meaning
from hydro_core.errors import ProgramError
from hydro_core.project.flow_asset import Expect, FlowAsset
from hydro_core.project.program import program_of
from hydro_core.types.ddl import to_ddl
from hydrotick.deploy.deployments import Deployments, deployment_for, undeployed_meaning
from tests.orchestration.changing import COUNTED, REFACTORED, rewrite
from tests.orchestration.small import PROGRAM, small_flow
from tests.support.refused import Refused

Deployed = tuple[FlowAsset, Deployment]


@pytest.fixture
def deployed(tmp_path: Path) -> Deployed:
    flow = small_flow(tmp_path)
    return flow, deployment_for(flow)


@pytest.fixture
def unread(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is deployed, reading a program fails."""

    def load(*_: object) -> None:
        raise AssertionError("the program is read")

    monkeypatch.setattr("hydro_core.lang.load.load", load)


@pytest.mark.usefixtures("unread")
def test_a_program_that_nobody_has_touched_is_not_read(deployed: Deployed) -> None:
    assert undeployed_meaning(*deployed) is None


def test_another_text_may_say_the_same(deployed: Deployed) -> None:
    flow, deployment = deployed
    rewrite(flow, f"# a comment\n{PROGRAM}")
    assert undeployed_meaning(flow, deployment) is None
    for text in (COUNTED, REFACTORED):
        rewrite(flow, text)
        assert undeployed_meaning(flow, deployment) == program_meaning(program_of(flow).typed)


def test_what_the_asset_says_is_judged_all_the_same(deployed: Deployed, refused: Refused) -> None:
    flow, deployment = deployed
    with refused(ProgramError, "config"):
        undeployed_meaning(replace(flow, expect={"totals": (Expect("totl"),)}), deployment)
    with refused(ProgramError, "config"):
        undeployed_meaning(replace(flow, inputs={}), deployment)


@pytest.mark.usefixtures("unread")
def test_what_another_release_has_read_is_read_again(deployed: Deployed) -> None:
    flow, deployment = deployed
    earlier = replace(deployment, versions={**deployment.versions, PACKAGE: "0"})
    with pytest.raises(AssertionError, match="is read"):
        undeployed_meaning(flow, earlier)


@pytest.mark.usefixtures("unread")
def test_a_text_that_does_not_say_all_is_read(deployed: Deployed) -> None:
    """The asset types inputs, and gives parameters; a Python module may import others."""
    flow, deployment = deployed
    for more in (
        {"schemas": {"payments": "user string, amount int"}},
        {"params": {"threshold": 2}},
        {"program": "a.b:flow"},
    ):
        with pytest.raises(AssertionError, match="is read"):
            undeployed_meaning(replace(flow, **more), deployment)


@pytest.mark.parametrize("said_by", ["asset", "python"])
def test_not_null_stays_deployed(
    said_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process takes the draft that is there, and sees no change."""
    flow = small_flow(tmp_path)
    if said_by == "asset":
        rewrite(flow, PROGRAM.replace('payments = source("user string, amount long")\n', ""))
        flow = replace(flow, schemas={"payments": "user string not null, amount long"})
    else:
        (tmp_path / "required_flow.py").write_text(IN_PYTHON)
        monkeypatch.syspath_prepend(str(tmp_path))
        flow = replace(flow, program="required_flow:flow", expect={})
    for _ in range(3):
        found = Deployments(tmp_path / "pipelines").prepare(flow)
        assert found.number == 1
        assert "user string not null" in to_ddl(found.deployment.plan.typed.schemas["payments"])
    assert undeployed_meaning(flow, found.deployment) is None


IN_PYTHON = """
from hydro_core import Flow

flow = Flow("small")
payments = flow.source("payments", "user string not null, amount long")
payments.persist().sink("kept")
"""
