"""FILE of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.errors import ProgramError
from hydro_core.lang.load import load
from tests.support.refused import Refused

MODULE = """
from hydro_core import Flow

flow = Flow("built")
flow.source("a", "long").sink("out")

def make():
    return flow

graph = flow.graph()
number = 3
class Names:
    inner = flow
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "flows_to_load.py").write_text(MODULE)
    (tmp_path / "broken_to_load.py").write_text("def f(:\n")
    (tmp_path / "script_to_load.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "latin_to_load.py").write_bytes(b'flow = "\xe9"\n')
    (tmp_path / "pipes.py").write_text(
        "import hydro_core\nraise RuntimeError('this is not run')\n"
        "daily = hydro_core.Flow('d')\nhourly: object = hydro_core.Flow.parse('a -> b')\nn = 5\n"
    )
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "pipes.py").write_text("from hydro_core import Flow\nflow = Flow('x')\n")
    (tmp_path / "chat.hydro").write_text("a -> out")
    return tmp_path


@pytest.mark.parametrize("attribute", ["flow", "make", "graph", "Names.inner"])
def test_python(folder: Path, attribute: str) -> None:
    assert list(load(f"flows_to_load:{attribute}").sinks) == ["out"]


def test_text(folder: Path) -> None:
    graph = load("chat.hydro")
    assert graph.name == "chat"
    assert graph["a"].span.file == "chat.hydro"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ("cat.hydro", "config", "did you mean `chat.hydro`?"),
        ("nowhere/chat.hydro", "config", "there is no file"),
        (".", "config", "cannot be read"),
        ("chat", "config", "there is no file"),
        ("no_such_module:flow", "config", "there is no module `no_such_module`"),
        ("flows_to_load:flw", "config", "did you mean `flow`?"),
        ("flows_to_load:number", "config", "is no flow, but a int"),
        ("broken_to_load:flow", "syntax", "broken_to_load.py:1"),
        ("latin_to_load:flow", "syntax", "save it as UTF-8"),
        ("script_to_load:flow", "config", "ends the process that imports it: SystemExit: 0"),
        ("pipes.py", "config", "write `pipes:daily` or `pipes:hourly`"),
        ("sub/pipes.py", "config", "write `sub.pipes:flow`"),
        ("broken_to_load.py", "config", "write `broken_to_load:NAME`"),
        ("pips.py", "config", "did you mean `pipes.py`?"),
    ],
)
def test_wrong(folder: Path, spec: str, code: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load(spec)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_not_utf8(folder: Path, refused: Refused) -> None:
    (folder / "bad.hydro").write_bytes(b"a -> \xff")
    with refused(ProgramError, "config"):
        load("bad.hydro")
