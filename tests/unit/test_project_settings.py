"""`hydrotick.toml`: what it says holds where the environment is silent, and is judged by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.errors import HydroError
from hydrotick.settings import ProjectSettings, environment_of, project_settings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    return tmp_path


def settings(root: Path, text: str, **environ: str) -> ProjectSettings:
    (root / "hydrotick.toml").write_text(text, encoding="utf-8")
    return project_settings({"HYDROTICK_PROJECT": str(root), **environ})


def test_what_it_says_holds(root: Path) -> None:
    found = settings(root, '[spark]\nmaster = "local[3]"\nmemory = "3g"\n[ticks]\nrange = 7\n')
    assert (found.spark_master, found.spark_memory, found.range_ticks) == ("local[3]", "3g", 7)
    assert (found.root, found.home) == (root, root / "data")


def test_what_it_does_not_say_is_as_ever(root: Path) -> None:
    silent = ProjectSettings(home=root / "data", root=root)
    assert settings(root, "") == silent
    (root / "hydrotick.toml").unlink()
    assert project_settings({"HYDROTICK_PROJECT": str(root)}) == silent


def test_the_environment_wins(root: Path) -> None:
    text = '[spark]\nmaster = "local[3]"\nmemory = "3g"\n[ticks]\nrange = 7\n'
    found = settings(
        root,
        text,
        HYDROTICK_SPARK_MASTER="local[1]",
        HYDROTICK_RANGE_TICKS="9",
        HYDROTICK_HOME=str(root / "elsewhere"),
    )
    assert (found.spark_master, found.spark_memory, found.range_ticks) == ("local[1]", "3g", 9)
    assert found.home == root / "elsewhere"


def test_another_process_finds_the_same(root: Path) -> None:
    found = settings(root, "[ticks]\nrange = 7\n", HYDROTICK_HOME=str(root / "elsewhere"))
    assert project_settings(environment_of(found)) == found


@pytest.mark.parametrize(
    ("text", "line", "says", "cure"),
    [
        ("[sparc]\n", 1, "there is no setting `[sparc]`", "did you mean `spark`?"),
        ('\nmaster = "local"\n', 2, "there is no setting `master` outside of a table", "there are"),
        ("spark = 3\n", 1, "`spark` is a table", "write `[spark]`"),
        (
            '[spark]\n\nmastr = "x"\n',
            3,
            "`[spark]` has no setting `mastr`",
            "did you mean `master`",
        ),
        ('[spark]\nmaster = "lokal"\n', 2, "`master` is 'lokal', which is no master", "write `loc"),
        ('[spark]\nmemory = "2"\n', 2, "`memory` is '2', which is no size", "write a whole number"),
        ("[spark]\nmemory = 2\n", 2, "`memory` is 2, which is no text", "quote it"),
        ("[ticks]\nrange = 0\n", 2, "`range` is 0, which is no number of ticks", "write 1 or more"),
        ("[ticks]\nrange = true\n", 2, "`range` is True, which is no number", "write 1 or more"),
        ("ticks.range = 0\n", 1, "`range` is 0, which is no number of ticks", "write 1 or more"),
        ("[spark\n", 1, "this is no TOML", ""),
        ("[ticks]\nrange = 1\nrange = 2\n", 3, "this is no TOML", ""),
    ],
)
def test_what_is_wrong_is_told(root: Path, text: str, line: int, says: str, cure: str) -> None:
    with pytest.raises(HydroError) as caught:
        settings(root, text)
    (found,) = caught.value.diagnostics
    assert found.code == "config"
    assert found.span is not None
    assert (found.span.file, found.span.line) == (str(root / "hydrotick.toml"), line)
    assert says in found.message
    assert (found.help or "").startswith(cure)
