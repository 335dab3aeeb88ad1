"""What an asset folder declares is judged when it loads, all of it, with place and cure."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from hydro_core.errors import ProgramError
from hydro_core.project.flow_asset import Expect, FlowAsset, Landing, Ticks
from hydrotick.deploy.deployments import plan_as_written

PROGRAM = """
payments = source("user string not null, day date, amount long, rate double, paid boolean")
payments -> totals
"""


@pytest.fixture
def flow(tmp_path: Path) -> FlowAsset:
    (tmp_path / "totals.hydro").write_text(PROGRAM, encoding="utf-8")
    return FlowAsset(
        name="totals",
        program=Path("totals.hydro"),
        ticks=Ticks(datetime(2026, 1, 1)),
        inputs={"payments": Landing("payments", "day")},
        folder=tmp_path,
    )


def told(flow: FlowAsset) -> list[str]:
    with pytest.raises(ProgramError) as caught:
        plan_as_written(flow)
    assert {d.code for d in caught.value.diagnostics} == {"config"}
    return [f"{d.message} | {d.help}" for d in caught.value.diagnostics]


def test_a_sound_asset_is_planned(flow: FlowAsset) -> None:
    expected = (
        Expect("user", not_null=True, unique=True, matches="[a-z]+"),
        Expect("amount", at_least=0, at_most=10.5, severity="warn"),
        Expect("day", at_least=date(2026, 1, 1)),
        Expect("rate", one_of=(1, 2.5)),
    )
    plan = plan_as_written(replace(flow, expect={"totals": expected}, outputs={"totals": "All."}))
    assert list(plan.graph.sinks) == ["totals"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "to tals"}, "`name`: 'to tals' is no name | take letters"),
        (
            {"outputs": {"total": "All."}},
            "`outputs`: the program has no output `total` | did you mean `totals`?",
        ),
        (
            {"expect": {"total": ()}},
            "`expect`: the program has no output `total` | did you mean `totals`?",
        ),
        (
            {"schemas": {"payment": "user string"}},
            "`schemas`: the program has no input `payment` | did you mean `payments`?",
        ),
        ({"schemas": {"payments": "user strin"}}, "`schemas.payments`: "),
        ({"ticks": Ticks(datetime(2026, 1, 1), "2d")}, "`ticks`: `every`: ticks of 2d have no"),
        (
            {"ticks": Ticks(datetime(2026, 1, 2), end=datetime(2026, 1, 1))},
            "`ticks`: `end`: 2026-01-01 00:00:00 is before the start",
        ),
        (
            {"inputs": {"payments": Landing("p", "day", wait="land")}},  # type: ignore[arg-type]
            "`inputs.payments.wait`: there is no 'land' | did you mean `landed`?",
        ),
        (
            {"inputs": {"payments": Landing("p", "day", late="corect")}},  # type: ignore[arg-type]
            "`inputs.payments.late`: there is no 'corect' | did you mean `correct`?",
        ),
        (
            {"inputs": {"payments": Landing("p", "day", removed="holt")}},  # type: ignore[arg-type]
            "`inputs.payments.removed`: there is no 'holt' | did you mean `hold`?",
        ),
        (
            {"inputs": {"payments": Landing("p", wait="landed")}},
            "`inputs.payments.wait`: nothing tells which ticks have landed | say which `column`",
        ),
        (
            {"inputs": {"payments": Landing("hdfs://host/payments", "day")}},
            "`inputs.payments.path`: hdfs://host/payments is a URL, and `hdfs:` is neither read",
        ),
        (
            {"inputs": {"payments": Landing("file://host/payments", "day")}},
            "`inputs.payments.path`: file://host/payments is on the machine host | write `file:///",
        ),
        (
            {"inputs": {"payments": Landing("file:payments", "day")}},
            "`inputs.payments.path`: file:payments is not the URL of an absolute path | write",
        ),
        (
            {"inputs": {"payments": Landing("file:///in/pay?.csv", "day")}},
            "`inputs.payments.path`: file:///in/pay?.csv is not the URL of an absolute path",
        ),
        (
            {"inputs": {"payments": Landing("s3a://[bucket/payments", "day")}},
            "`inputs.payments.path`: s3a://[bucket/payments names no place | write `s3a://BUCKET/FOLDER`",
        ),
        (
            {"inputs": {"payments": Landing("payments", "day", optional=("amont",))}},
            "optional`: the program declares no column `amont` of it | did you mean `amount`?",
        ),
        (
            {"inputs": {"payments": Landing("payments", "day", optional=("rate", "day"))}},
            "`inputs.payments.optional`: `day` tells the ticks, so no file may lack it",
        ),
        (
            {"inputs": {"payments": Landing("payments", "day", optional=("user",))}},
            "`inputs.payments.optional`: `user` is null where a file lacks it, and declared",
        ),
    ],
)
def test_what_is_wrong_is_told(flow: FlowAsset, changes: dict[str, Any], says: str) -> None:
    (found,) = told(replace(flow, **changes))
    assert says in found


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        (
            Expect("usr", unique=True),
            "expect.totals`: the output has no column `usr` | did you mean `user`?",
        ),
        (Expect("user"), "`expect.totals.user`: nothing is expected"),
        (Expect("user", matches="[a-"), "user.matches`: '[a-' is no regular expression: "),
        (Expect("amount", matches="1+"), "only text matches a pattern, and the column is long"),
        (
            Expect("user", at_least=1),
            "user.at_least`: 1 cannot be compared with a column of type string | write a text",
        ),
        (Expect("day", at_most=datetime(2026, 1, 1)), "column of type date | write a date"),
        (Expect("amount", at_least=date(2026, 1, 1)), "column of type long | write a number"),
        (Expect("amount", at_least=True), "amount.at_least`: True cannot be compared"),
        (Expect("rate", at_most=float("nan")), "rate.at_most`: nan cannot be compared"),
        (Expect("paid", one_of=("yes",)), "paid.one_of`: 'yes' cannot be compared"),
        (Expect("amount", at_least=2, at_most=1), "no value is at least 2 and at most 1"),
        (
            Expect("user", unique=True, severity="warning"),  # type: ignore[arg-type]
            "user.severity`: there is no 'warning' | did you mean `warn`?",
        ),
    ],
)
def test_what_cannot_be_expected_is_told(flow: FlowAsset, expect: Expect, says: str) -> None:
    (found,) = told(replace(flow, expect={"totals": (expect,)}))
    assert says in found


def test_inputs_that_one_side_lacks_are_told_together(flow: FlowAsset) -> None:
    found = told(replace(flow, inputs={"payment": Landing("p"), "x": Landing("x")}))
    assert found == [
        "flow `totals`, `inputs`: the program has no input `payment` | did you mean `payments`?",
        "flow `totals`, `inputs`: the program has no input `x` | there are `payments`",
        (
            "flow `totals`, `inputs`: `payments`, which the program reads, is missing"
            " | say where it lands: `payments: {path: …, column: …}` below `inputs`, or a `Landing`"
        ),
    ]


@pytest.mark.parametrize("owner", ["ann", "ann@example", "team:", "a b@example.org"])
def test_owners_are_addresses_or_teams(flow: FlowAsset, owner: str) -> None:
    (said,) = told(replace(flow, owners=("ann@example.org", "team:data", owner)))
    assert said == (
        f"flow `totals`, `owners`: {owner!r} is no owner"
        " | write an e-mail address, or `team:` and its name"
    )
