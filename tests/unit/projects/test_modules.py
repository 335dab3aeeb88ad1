"""An asset is data: none of its values imports or calls what lies outside of the project."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hydro_core.cli.main import main
from hydro_core.errors import HydroError, ProgramError
from hydro_core.project.discover import found_in
from hydrotick.deploy.deployments import plan_as_written, texts_of
from hydrotick.flow_tests import files_of_tests
from hydrotick.flow_tests import tests_in as written_in
from hydrotick.project.settings_file import known_settings, settings_in
from tests.unit.projects.declared import declare_yaml
from tests.unit.projects.test_asset_yaml import PROGRAM, WHOLE

FLOW = """
from hydro_core import Flow
flow = Flow("totals")
flow.source("payments", "user string").sink("{0}")

def make() -> Flow:
    return flow

def quoted(above: int = 1) -> "Flow":
    return flow

def unmarked():
    raise AssertionError("called")

def lies() -> Flow:
    return 3

lam = lambda: flow
"""
CANARY = """
from pathlib import Path
from hydro_core import Flow
Path(__file__).with_name("imported").touch()

def sing(*_, **__) -> Flow:
    Path(__file__).with_name("called").touch()

class Bird(Flow):
    def __init__(self, *_, **__):
        sing()
"""


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module that is installed, and no part of the project, and tells what is done
    with it.
    """
    folder = tmp_path / "installed"
    (folder / "cage").mkdir(parents=True)
    for name in ("canary.py", "cage/__init__.py"):
        (folder / name).write_text(CANARY)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ("canary", "cage"):
        sys.modules.pop(name, None)


def heard(canary: Path) -> list[str]:
    return sorted(p.name for p in canary.rglob("*") if p.name in ("imported", "called"))


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A project; what it changes of this process is taken back."""
    (tmp_path / "project" / "assets").mkdir(parents=True)
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path / "project"
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def sinks(root: Path) -> dict[str, list[str]]:
    return {f.name: list(plan_as_written(f).graph.sinks) for f in found_in(root).flows}


def refused(root: Path, spec: str, params: str = "") -> str:
    """What is said of a flow with that program."""
    shutil.rmtree(root / "assets" / "totals", ignore_errors=True)
    declare_yaml(root, "totals", program=spec, more=params)
    (flow,) = found_in(root).flows
    with pytest.raises(ProgramError) as caught:
        plan_as_written(flow)
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "params"),
    [
        ("os:system", "command: touch called"),
        ("subprocess:getoutput", "cmd: touch called"),
        ("shutil:rmtree", "path: installed"),
        ("os.path:exists", "path: x"),
        ("builtins:exec", "source: x"),
        ("sys:exit", ""),
        ("canary:sing", ""),
        ("canary:Bird", ""),
        ("cage.bird:sing", ""),
        ("hydro_core.lang.load:load", "spec: canary:sing"),
        ("hydrotick.cli.dev:command", ""),
    ],
)
def test_what_is_installed_is_neither_imported_nor_called(
    root: Path, canary: Path, spec: str, params: str
) -> None:
    said = refused(root, spec, f"params: {{{params}}}\n")
    assert "there is no module" in said
    (flow,) = found_in(root).flows
    assert texts_of(flow) == {}
    assert heard(canary) == []


@pytest.mark.parametrize("within", ["project", "folder"])
@pytest.mark.parametrize(
    "attribute",
    ["system", "os.system", "sing", "canary.sing", "Bird", "unmarked", "lam", "part", "cached"],
)
def test_what_is_no_flow_of_the_module_is_not_called(
    root: Path, canary: Path, within: str, attribute: str
) -> None:
    text = (
        "import os, functools\nfrom os import system\n"
        f"import sys; sys.path.insert(0, {str(canary)!r})\n"
        "import canary\nfrom canary import sing, Bird\n"
        f"{FLOW.format('out')}\npart = functools.partial(sing)\ncached = functools.cache(sing)\n"
    )
    declare_yaml(root, "totals", program=f"own_module:{attribute}")
    place = root if within == "project" else root / "assets" / "totals"
    (place / "own_module.py").write_text(text)
    (flow,) = found_in(root).flows
    with pytest.raises(ProgramError, match="is no flow of that module, so it is not called"):
        plan_as_written(flow)
    assert "called" not in heard(canary)


@pytest.mark.parametrize("attribute", ["flow", "make", "quoted"])
def test_a_flow_and_a_function_that_says_so_are(root: Path, attribute: str) -> None:
    declare_yaml(root, "totals", program=f"own_flow:{attribute}")
    (root / "own_flow.py").write_text(FLOW.format("out"))
    assert sinks(root) == {"totals": ["out"]}
    (flow,) = found_in(root).flows
    assert list(texts_of(flow)) == ["own_flow.py"]


def test_a_function_that_lies_is_told(root: Path) -> None:
    (root / "own_flow.py").write_text(FLOW.format("out"))
    assert "gives no flow, but a int" in refused(root, "own_flow:lies")


def test_two_flows_have_modules_of_one_name(root: Path) -> None:
    for name in ("one", "two"):
        folder = declare_yaml(root, name, program="made:flow")
        (folder / "made.py").write_text(FLOW.format(name))
    (root / "made.py").write_text(FLOW.format("of_the_project"))
    declare_yaml(root, "three", program="made:flow")
    assert sinks(root) == {"one": ["one"], "two": ["two"], "three": ["of_the_project"]}


def test_two_projects_have_modules_of_one_name(tmp_path: Path, root: Path) -> None:
    for name in ("first", "second", "first"):
        if not (tmp_path / name).exists():
            declare_yaml(tmp_path / name, "totals", program="of_both:flow")
            (tmp_path / name / "of_both.py").write_text(FLOW.format(name))
        assert sinks(tmp_path / name) == {"totals": [name]}
    found_in(root)
    assert str(tmp_path / "first") not in sys.path
    assert str(tmp_path / "second") not in sys.path


@pytest.mark.parametrize("name", ["os", "json", "sys", "time", "canary"])
def test_a_module_that_hides_another_is_the_one_of_the_folder_alone(
    root: Path, canary: Path, name: str
) -> None:
    before = importlib.import_module("json")
    folder = declare_yaml(root, "near", program=f"{name}:flow")
    (folder / f"{name}.py").write_text(FLOW.format("near"))
    assert sinks(root) == {"near": ["near"]}
    assert importlib.import_module("json") is before
    shutil.rmtree(folder)
    (root / f"{name}.py").write_text(FLOW.format("far"))
    assert f"the module `{name}` of the project is hidden by" in refused(root, f"{name}:flow")
    assert heard(canary) == []


@pytest.mark.parametrize("place", ["folder", "project"])
@pytest.mark.parametrize("link", ["linked.py", "linked", "linked/__init__.py", "package/linked.py"])
def test_a_link_that_leads_out_is_not_followed(
    root: Path, canary: Path, place: str, link: str
) -> None:
    declare_yaml(root, "totals", program="x:y")
    top = root if place == "project" else root / "assets" / "totals"
    (top / link).parent.mkdir(exist_ok=True)
    (top / link).symlink_to(canary / ("cage" if link == "linked" else "canary.py"))
    module = link.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    asset = root / "assets" / "totals" / "asset.yaml"
    asset.write_text(asset.read_text().replace("x:y", f"{module}:sing"))
    (flow,) = found_in(root).flows
    with pytest.raises(ProgramError, match="is a link that leads out of the project"):
        plan_as_written(flow)
    assert texts_of(flow) == {}
    assert heard(canary) == []


def test_a_package_that_leads_out_is_not_followed(root: Path, canary: Path) -> None:
    folder = declare_yaml(root, "totals", program="package.inner:flow")
    (folder / "package").mkdir()
    (folder / "package" / "inner.py").write_text(FLOW.format("out"))
    (folder / "package" / "__init__.py").symlink_to(canary / "canary.py")
    (flow,) = found_in(root).flows
    with pytest.raises(ProgramError, match="leads out of the project"):
        plan_as_written(flow)
    assert heard(canary) == []


@pytest.mark.parametrize("program", ["../x:flow", "..x:flow", "a/b:flow", ".x:flow", "x:", ":y"])
def test_a_way_out_is_no_name(root: Path, canary: Path, program: str) -> None:
    declare_yaml(root, "totals", program=f'"{program}"')
    (one,) = found_in(root).broken
    assert "is no program" in str(one.error) or "leads out" in str(one.error)
    assert heard(canary) == []


SAYS_CODE = (
    "canary:sing",
    "canary.sing",
    "canary",
    "cage/__init__.py",
    "${canary:sing}",
    "{{ canary.sing() }}",
    "__import__('canary').sing()",
    "lambda: __import__('canary')",
)
TAGS = ("!!python/name:canary.sing", "!!python/object/apply:canary.sing", "!!python/module:canary")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value of a document."""
    yield path
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from places(value[key], (*path, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = document.copy()
    changed[path[0]] = with_value(document[path[0]], path[1:], value)
    return changed


def all_read(root: Path) -> None:
    """What `check`, `status`, `docs` and Dagster read of a project, as far as no tick runs."""
    found = found_in(root)
    for flow in found.flows:
        try:
            plan_as_written(flow)
            for file in files_of_tests(flow):
                written_in(file, [flow])
        except HydroError:
            continue


ASSET = yaml.safe_load(WHOLE)
TESTS = {
    "a test": {"flow": "totals", "ticks": [{"in": {"payments": [{"user": "ann"}]}, "out": {}}]}
}


@pytest.mark.parametrize("path", [*places(ASSET)], ids=str)
def test_no_value_of_an_asset_names_code(root: Path, canary: Path, path: tuple[Any, ...]) -> None:
    folder = declare_yaml(root, "totals")
    (folder / "totals.hydro").write_text(PROGRAM)
    for said in SAYS_CODE:
        (folder / "asset.yaml").write_text(yaml.safe_dump(with_value(ASSET, path, said)))
        all_read(root)
    mark = yaml.safe_dump(with_value(ASSET, path, "MARK"))
    for tag in TAGS:
        (folder / "asset.yaml").write_text(mark.replace("MARK", f"{tag} [x]"))
        all_read(root)
        (folder / "asset.yaml").write_text(mark.replace("MARK", f"{tag} ''"))
        all_read(root)
    assert heard(canary) == []


@pytest.mark.parametrize("path", [*places(TESTS)], ids=str)
def test_no_value_of_a_test_names_code(root: Path, canary: Path, path: tuple[Any, ...]) -> None:
    folder = declare_yaml(root, "totals")
    for said in SAYS_CODE:
        (folder / "tests.yaml").write_text(yaml.safe_dump(with_value(TESTS, path, said)))
        all_read(root)
    for tag in TAGS:
        text = yaml.safe_dump(with_value(TESTS, path, "MARK")).replace("MARK", f"{tag} [x]")
        (folder / "tests.yaml").write_text(text)
        all_read(root)
    assert heard(canary) == []


@pytest.mark.parametrize("table", known_settings())
def test_no_setting_names_code(root: Path, canary: Path, table: str) -> None:
    declare_yaml(root, "totals")
    file = root / "hydrotick.toml"
    for key in known_settings()[table]:
        for said in SAYS_CODE:
            file.write_text(f"[{table}]\n{key} = {json.dumps(said)}\n")
            with suppress(HydroError):
                settings_in(file)
                all_read(root)
    assert heard(canary) == []


def test_commands_call_nothing(
    root: Path, canary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declare_yaml(root, "totals", program="canary:sing")
    monkeypatch.chdir(root)
    for words in (["check"], ["status"], ["docs", "--out", "site"]):
        assert main(words) != 0
        assert "there is no module `canary`" in "".join(capsys.readouterr())
    assert heard(canary) == []
