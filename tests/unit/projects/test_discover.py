"""Projects are found from a folder upwards, and their flows without being listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.cli.main import commands, main
from hydro_core.errors import HydroError
from hydro_core.project.discover import BrokenFlow, DiscoveredFlows, found_in, project_above
from hydrotick.deploy.deployments import plan_as_written
from hydrotick.project import project
from hydrotick.project.console import asked_flow
from tests.support.refused import Refused
from tests.unit.projects.declared import declare_py, declare_yaml

ROOT = Path(__file__).parents[3]


def broken(found: DiscoveredFlows, name: str) -> BrokenFlow:
    (wrong,) = (flow for flow in found.broken if flow.name == name)
    return wrong


def test_the_project_is_the_nearest_above(tmp_path: Path) -> None:
    declare_py(tmp_path / "shop", "one", "first")
    declare_yaml(tmp_path / "shop" / "inner", "two")
    inner = tmp_path / "shop" / "inner"
    assert project_above(tmp_path) is None
    assert project_above(tmp_path / "shop" / "assets" / "one") == tmp_path / "shop"
    assert project_above(inner) == inner
    assert project_above(inner / "assets" / "two") == inner


def test_folders_called_assets_that_declare_nothing_are_none(tmp_path: Path) -> None:
    declare_yaml(tmp_path, "totals")
    (tmp_path / "docs" / "assets").mkdir(parents=True)
    assert project_above(tmp_path / "docs") == tmp_path
    (tmp_path / "docs" / "hydrotick.toml").touch()
    assert project_above(tmp_path / "docs") == tmp_path / "docs"


def test_a_new_project_has_no_flows(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    assert project_above(tmp_path / "assets") == tmp_path
    assert found_in(tmp_path) == DiscoveredFlows()


def test_this_repository_is_one() -> None:
    assert project_above(Path(__file__)) == ROOT
    found = found_in(ROOT)
    assert [flow.name for flow in found.flows] == ["chat", "flights"]
    assert found.broken == ()


def test_folders_are_found_and_programs_lie_in_them(tmp_path: Path) -> None:
    declare_py(tmp_path, "one", "first")
    declare_yaml(tmp_path, "two")
    flows = found_in(tmp_path).flows
    assert [flow.name for flow in flows] == ["first", "two"]
    assert [flow.folder for flow in flows] == [
        tmp_path / "assets" / name for name in ("one", "two")
    ]
    assert [list(plan_as_written(flow).graph.sinks) for flow in flows] == [["totals"], ["totals"]]


def test_flows_of_python_are_found_in_the_folder_and_in_the_project(tmp_path: Path) -> None:
    flow = (
        "from hydro_core import Flow\n"
        'flow = Flow("totals")\n'
        'flow.source("payments", "user string").sink("{}")\n'
    )
    declare_yaml(tmp_path, "near", program="made:flow")
    (tmp_path / "assets" / "near" / "made.py").write_text(flow.format("near"), encoding="utf-8")
    declare_yaml(tmp_path, "far", program="made_of_test_discover:flow")
    far = tmp_path / "made_of_test_discover.py"
    far.write_text(flow.format("far"), encoding="utf-8")
    sinks = {f.name: list(plan_as_written(f).graph.sinks) for f in found_in(tmp_path).flows}
    assert sinks == {"near": ["near"], "far": ["far"]}


def test_one_project_after_another_has_its_own_modules(tmp_path: Path) -> None:
    for name in ("first", "second"):
        declare_py(tmp_path / name, "same", name)
    for name in ("first", "second", "first"):
        assert [flow.name for flow in found_in(tmp_path / name).flows] == [name]


def test_modules_beside_an_asset_are_imported(tmp_path: Path) -> None:
    declare_py(tmp_path, "one", "first")
    folder = tmp_path / "assets" / "one"
    (folder / "words.py").write_text('SAYS = "All."\n', encoding="utf-8")
    with (folder / "asset.py").open("a", encoding="utf-8") as file:
        file.write("from dataclasses import replace\nfrom .words import SAYS\n")
        file.write("X = Y = replace(X, description=SAYS)\n")
    assert [flow.description for flow in found_in(tmp_path).flows] == ["All."]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("from hydro_core import FlowAsset\n\nX = FlowAsset(nam='x')\n", 3, "nam"),
        ("import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("\n\ndef f(:\n", 3, "invalid syntax"),
        ("def f():\n    raise OSError('gone')\n\nf()\n", 2, "OSError: gone"),
        ("import sys\nsys.exit()\n", 2, "cannot be loaded: SystemExit"),
    ],
)
def test_what_an_asset_raises_takes_out_itself_alone(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    declare_yaml(tmp_path, "sound")
    declare_py(tmp_path, "wrong", "wrong")
    file = tmp_path / "assets" / "wrong" / "asset.py"
    file.write_text(text, encoding="utf-8")
    found = found_in(tmp_path)
    assert [flow.name for flow in found.flows] == ["sound"]
    (diagnostic,) = broken(found, "wrong").error.diagnostics
    assert diagnostic.span is not None
    assert (diagnostic.span.file, diagnostic.span.line) == (str(file), line)
    assert says in diagnostic.message


def test_two_flows_of_one_name_are_both_refused(tmp_path: Path) -> None:
    """Either could be the copy, and the tables are those of the name."""
    declare_py(tmp_path, "one", "same")
    declare_py(tmp_path, "two", "same")
    declare_yaml(tmp_path, "other")
    found = found_in(tmp_path)
    assert [flow.name for flow in found.flows] == ["other"]
    assert {flow.name for flow in found.broken} == {"same"}
    assert "there are 2 flows `same`: in " in str(found.broken[0].error)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in whose asset folder we are: a sound flow, and one that is not."""
    declare_yaml(tmp_path, "totals")
    declare_yaml(tmp_path, "wrong", ticks="{begin: 2026-01-01}")
    monkeypatch.delenv("HYDROTICK_HOME", raising=False)
    monkeypatch.chdir(tmp_path / "assets" / "totals")
    return tmp_path


def test_commands_are_about_the_project_above(shop: Path) -> None:
    flow, settings = asked_flow(commands()["compact"].parser().parse_args(["totals"]))
    assert (flow.name, settings.root) == ("totals", shop)
    assert settings.home == shop / "data"


def test_a_project_elsewhere_is_named(
    shop: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.chdir("/")
    with refused(HydroError, "config"):
        project.current()
    monkeypatch.setenv("HYDROTICK_PROJECT", str(shop))
    assert project.current().names == ("totals", "wrong")
    monkeypatch.setenv("HYDROTICK_PROJECT", str(shop / "data"))
    with refused(HydroError, "config"):
        project.current()


@pytest.mark.usefixtures("shop")
def test_a_flow_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compact", "total"])
    assert ended.value.code == 2
    assert "there is no flow `total`: did you mean `totals`?" in capsys.readouterr().err
    assert main(["compact", "wrong"]) == 1
    assert "`ticks` has no `begin`" in capsys.readouterr().err


def test_help_needs_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["show", "--help"])
    assert ended.value.code == 0
    assert "usage: hydrotick show" in capsys.readouterr().out
