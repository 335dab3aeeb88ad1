"""What people or programs may write into a project's files ends in an error, soon, at its place."""

from __future__ import annotations

import math
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from hydro_core.errors import ProgramError
from hydro_core.project.asset_yaml import flow_of_yaml
from hydro_core.project.discover import found_in
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.yaml_text import Document, value_of
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.json import from_json
from hydrotick.flow_tests import tests_in as written_in
from hydrotick.project.settings_file import settings_in
from tests.support.refused import Refused
from tests.unit.projects.declared import PROGRAM

SECONDS = 5
SOUND = "ticks: {start: 2026-01-01}\ninputs: {payments: {path: payments, column: day}}\n"


def _laughs() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{n}: &{n} [{', '.join([f'*{chr(ord(n) - 1)}'] * 9)}]" for n in "bcdefghij"]
    return "\n".join(lines)


WRONG_YAML = {
    "aliases of aliases": (_laughs(), "aliases"),
    "a long text in aliases": (
        f"a: &a {'x' * 100_000}\nb: &b [{', '.join(['*a'] * 99)}]\nc: [{', '.join(['*b'] * 99)}]",
        "aliases",
    ),
    "an alias in itself": ("a: &a [*a]", "in itself"),
    "flow nests": ("a: " + "[" * 100_000, "nests too deep"),
    "blocks nest": ("\n".join(" " * n + "-" for n in range(3000)), "nests too deep"),
    "a long number": ("shards: " + "9" * 5000, "no YAML"),
    "a long number of another base": ("shards: 0x" + "9" * 5000, "no YAML"),
    "no bool": ("program: !!bool x", "no YAML"),
    "no float": ("program: !!float ''", "no YAML"),
    "no int": ("program: !!int ''", "no YAML"),
    "no time": ("program: !!timestamp x", "no YAML"),
    "an object": ("program: !!python/object/apply:os.getpid []", "means nothing here"),
    "an object with names": ("program: !!python/object:os.x {a: 1}", "means nothing here"),
    "a tag of a scalar": ("program: !secret x", "the tag `!secret` means nothing here"),
    "a tag of names": ("params: !secret {a: 1}", "the tag `!secret` means nothing here"),
    "a tag of a list": ("owners: !secret [a]", "the tag `!secret` means nothing here"),
    "a tag of a name": ("!secret program: x", "the tag `!secret` means nothing here"),
    "a tag of all": ("!secret\nprogram: x", "the tag `!secret` means nothing here"),
    "a tag within": ("expect: {t: [!secret {column: a}]}", "the tag `!secret` means nothing"),
    "a set": ("owners: !!set {a, b}", "means nothing here"),
    "twice": ("program: a.hydro\nprogram: b.hydro", "said twice"),
    "a list": ("[1, 2]", "a list"),
    "a scalar": ("hello", "the text 'hello'"),
    "no text": (b"program: \xff", "UTF-8"),
    "a NUL": ("program: a\0b", "no YAML"),
    "a NUL in quotes": ('program: "a\\0b.hydro"\n' + SOUND, "NUL"),
    "a NUL in a path": (
        'inputs: {payments: {path: "a\\0b", column: day}}',
        "NUL",
    ),
    "shards without end": ("program: totals.hydro\nshards: 1000000000000\n" + SOUND, "shards"),
}


@contextmanager
def soon() -> Iterator[None]:
    """Within it nothing takes long."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def project(root: Path, asset: str | bytes, program: str = PROGRAM) -> Path:
    folder = root / "assets" / "totals"
    folder.mkdir(parents=True)
    (folder / "totals.hydro").write_text(program, encoding="utf-8")
    written = asset.encode() if isinstance(asset, str) else asset
    (folder / "asset.yaml").write_bytes(written)
    return folder


def broken(root: Path) -> ProgramError:
    with soon():
        found = found_in(root)
    assert found.flows == ()
    (one,) = found.broken
    assert isinstance(one.error, ProgramError)
    assert {d.code for d in one.error.diagnostics} == {"config"}
    assert len(str(one.error)) < 4000
    return one.error


@pytest.mark.parametrize("name", WRONG_YAML)
def test_a_wrong_asset_is_told(tmp_path: Path, name: str) -> None:
    text, says = WRONG_YAML[name]
    project(tmp_path, text)
    assert says in str(broken(tmp_path))


@pytest.mark.parametrize("name", ["aliases of aliases", "flow nests", "a long number", "no text"])
def test_so_are_wrong_tests(tmp_path: Path, name: str, refused: Refused) -> None:
    text, _ = WRONG_YAML[name]
    folder = project(tmp_path, f"program: totals.hydro\n{SOUND}")
    (folder / "tests.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    flows = [flow_of_yaml(folder / "asset.yaml")]
    with soon(), refused(ProgramError, "config"):
        written_in(folder / "tests.yaml", flows)


@pytest.mark.parametrize("text", ["!secret 1", "[!secret x]", "{a: !!set {b}}", "{[1]: 2}", "!x"])
def test_so_are_values_of_a_command(text: str) -> None:
    with pytest.raises(ValueError, match=r"means nothing here|a name is a text"):
        value_of(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("12345678901234567.89", "12345678901234567.89"),
        ("-1_000.50", "-1000.50"),
        (".5", "0.5"),
        ("1.5e+3", "1500"),
        ("+0.1", "0.1"),
    ],
)
def test_numbers_keep_their_digits(written: str, meant: str) -> None:
    found = value_of(written)
    assert isinstance(found, float)
    assert found == float(meant)
    assert Decimal(repr(found)) == Decimal(meant)
    assert pickle.loads(pickle.dumps(found)).__repr__() == repr(found)
    assert from_json(found, parse_ddl("decimal(38,2)")) == Decimal(meant)
    assert type(from_json(found, parse_ddl("double"))) is float


def test_other_numbers_are_what_yaml_says() -> None:
    written = "[1e3, 0x10, 1_000, 0b11, 010, 1:30, .inf, -.inf, 1:30.5, .nan]"
    *found, nan = value_of(written)
    assert found == ["1e3", 16, 1000, 3, 8, 90, math.inf, -math.inf, 90.5]
    assert math.isnan(nan)


def test_anchors_are_for_what_is_said_twice(tmp_path: Path) -> None:
    text = "a: &a {user: ann, n: 1}\nb: [" + ", ".join(["*a"] * 500) + "]\n"
    (tmp_path / "some.yaml").write_text(text)
    found = Document(tmp_path / "some.yaml").read().plain
    assert found["b"] == [{"user": "ann", "n": 1}] * 500


def test_a_file_without_aliases_has_no_bound(tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_text("a:\n" + "- 1\n" * 12_000)
    assert len(Document(tmp_path / "some.yaml").read().plain["a"]) == 12_000


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    folder = project(tmp_path, "")
    (folder / "asset.yaml").unlink()
    os.mkfifo(folder / "asset.yaml")
    assert "no file" in str(broken(tmp_path))


WRONG_TOML = {
    "arrays nest": "[spark]\nmaster = " + "[" * 100_000,
    "tables nest": "[spark]\nmaster = " + "{a=" * 3000,
    "a long number": "[ticks]\nrange = " + "9" * 5000,
    "a long number of another base": "[ticks]\nrange = 0x" + "9" * 5000,
    "no day": "[ticks]\nrange = 2026-02-31",
    "a NUL": "[paths]\nhome = 'a\0b'",
    "a NUL in quotes": '[paths]\nhome = "a\\u0000b"',
    "twice": "[spark]\n[spark]",
    "no text": b"[spark]\nmaster = '\xff'",
    "no ticks": "[ticks]\nrange = 99999999999999999999",
}


@pytest.mark.parametrize("name", WRONG_TOML)
def test_wrong_settings_are_told(tmp_path: Path, name: str) -> None:
    text, file = WRONG_TOML[name], tmp_path / "hydrotick.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with soon(), pytest.raises(ProgramError) as caught:
        settings_in(file)
    assert caught.value.code == "config"
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "program",
    [
        "/etc/passwd",
        "../../../secret.hydro",
        "../../../secret",
        "link.hydro",
        "linked/secret.hydro",
        "secret",
        "totals.hydro:x/y",
        "",
    ],
)
@pytest.mark.parametrize("by", ["yaml", "python"])
def test_a_program_is_within_its_project(tmp_path: Path, program: str, by: str) -> None:
    """What is outside is neither read nor shown."""
    (tmp_path / "secret.hydro").write_text("hunter2 = = =\n")
    (tmp_path / "secret").write_text("hunter2 = = =\n")
    root = tmp_path / "project"
    folder = project(root, f"program: {program!r}\n{SOUND}")
    (folder / "secret").write_text("hunter2 = = =\n")
    (folder / "link.hydro").symlink_to(tmp_path / "secret.hydro")
    (folder / "linked").symlink_to(tmp_path)
    if by == "python":
        (folder / "asset.yaml").unlink()
        (folder / "asset.py").write_text(
            "from datetime import datetime\n"
            "from pathlib import Path\n"
            "from hydro_core.project.flow_asset import FlowAsset, Landing, Ticks\n"
            f"FLOW = FlowAsset('totals', Path({program!r}), Ticks(datetime(2026, 1, 1)), "
            "{'payments': Landing('payments', 'day')})\n"
        )
    error = broken(root)
    assert "hunter2" not in str(error)
    (diagnostic,) = error.diagnostics
    assert "program" in diagnostic.message
    assert "within the project" in diagnostic.help or "*.hydro" in diagnostic.help
    if by == "yaml":
        assert diagnostic.span is not None
        assert diagnostic.span.line == 1


@pytest.mark.parametrize(
    "program", ["totals.hydro", "./totals.hydro", "../shared/totals.hydro", "inside.hydro"]
)
def test_a_program_may_be_anywhere_in_its_project(tmp_path: Path, program: str) -> None:
    folder = project(tmp_path, f"program: {program}\n{SOUND}")
    (tmp_path / "assets" / "shared").mkdir()
    (tmp_path / "assets" / "shared" / "totals.hydro").write_text(PROGRAM)
    (folder / "inside.hydro").symlink_to("../shared/totals.hydro")
    assert [flow.name for flow in found_in(tmp_path).flows] == ["totals"]


def test_a_folder_of_an_asset_may_be_linked(tmp_path: Path) -> None:
    project(tmp_path / "elsewhere", f"program: totals.hydro\n{SOUND}")
    (tmp_path / "project" / "assets").mkdir(parents=True)
    linked = tmp_path / "project" / "assets" / "totals"
    linked.symlink_to(tmp_path / "elsewhere" / "assets" / "totals")
    found: tuple[FlowAsset, ...] = found_in(tmp_path / "project").flows
    assert [flow.name for flow in found] == ["totals"]


@pytest.mark.parametrize("name", ["asset.yaml", "tests.yaml", "hydrotick.toml"])
def test_a_link_that_leads_out_of_the_project_shows_no_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("root:x:0: hunter2: [\n")
    root = tmp_path / "project"
    folder = project(root, f"program: totals.hydro\n{SOUND}")
    flows = [flow_of_yaml(folder / "asset.yaml")]
    place = root / name if name.endswith("toml") else folder / name
    place.unlink(missing_ok=True)
    place.symlink_to(tmp_path / "secret")
    readers = {
        "asset.yaml": flow_of_yaml,
        "tests.yaml": partial(written_in, flows=flows),
        "hydrotick.toml": settings_in,
    }
    read: Callable[[Path], object] = readers[name]
    with pytest.raises(ProgramError) as caught:
        read(place)
    assert "hunter2" not in str(caught.value)
    assert str(place) in str(caught.value)
