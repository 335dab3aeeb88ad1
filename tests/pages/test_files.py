"""Declarations, settings, data and Python on a page are what the real readers take."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
from pathlib import Path

import pytest

from hydro_core import Expect, FlowAsset, Landing, Ticks
from hydro_core.project.asset_yaml import flow_of_yaml
from hydrotick import flow_tests
from hydrotick.project.settings_file import settings_in
from tests.pages.blocks import ALL, Block, following, rewritten

READ_BY_OTHERS = (
    "definitions.py",
    "defs.yaml",
    "dagster.yaml",
    "workspace.yaml",
    "compose.yaml",
    "alerts.yaml",
)
"""What these are is judged in `tests/orchestration`: `test_in_dagster.py`, `test_instance.py`,
`test_services.py`; and in `test_commands.py`, and `tests/unit/projects/test_exposition.py`.
"""


def files(language: str) -> list[Block]:
    of_language = [block for block in ALL if block.language == language]
    return [block for block in of_language if block.file not in READ_BY_OTHERS]


def name(block: Block) -> str:
    return block.place


@pytest.mark.parametrize("block", files("yaml"), ids=name)
def test_yaml(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "flow" / Path(block.file).name
    file.parent.mkdir()
    file.write_text(block.text, encoding="utf-8")
    if file.name == "asset.yaml":
        assert isinstance(flow_of_yaml(file), FlowAsset)
    else:
        assert file.name == "tests.yaml", f"{block.place}: which file is this?"
        flow = FlowAsset("flow", "", Ticks(start=None), {})  # type: ignore[arg-type]
        assert flow_tests.tests_in(file, [flow])


@pytest.mark.parametrize("block", files("toml"), ids=name)
def test_toml(block: Block, tmp_path: Path) -> None:
    assert block.file == "hydrotick.toml"
    file = tmp_path / block.file
    file.write_text(block.text, encoding="utf-8")
    assert settings_in(file)


@pytest.mark.parametrize("block", files("json"), ids=name)
def test_json(block: Block) -> None:
    assert json.loads(block.text)


@pytest.mark.parametrize("block", files("python"), ids=name)
def test_python(
    block: Block, update_golden: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs, in a folder with the page's files, and prints what the text below it says."""
    for other in ALL:
        if other.page == block.page and other.file and other.language != "python":
            (tmp_path / Path(other.file).name).write_text(other.text, encoding="utf-8")
    file = tmp_path / (block.file or "shown.py")
    file.write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    given = {kind.__name__: kind for kind in (Expect, FlowAsset, Landing, Ticks)}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        made = runpy.run_path(str(file), init_globals=given)
    after = following(block)
    if printed.getvalue():
        assert after is not None
        assert after.language == "text"
        if update_golden:
            rewritten(after, printed.getvalue())
            return
        assert printed.getvalue() == after.text
    if file.name == "asset.py":
        assert any(isinstance(value, FlowAsset) for value in made.values())
