"""What is refused: tests say by which code, and where; how it is worded stands in golden files.

    def test_a_name_that_is_not_there(refused: Refused) -> None:
        with refused(ProgramError, "name", at="3:7"):
            compile_text(TEXT)

The whole text that a user would see is compared with what `tests/golden/refused/` has of the test,
which `make golden` writes: so a sentence that changes is read once, in a difference, and no test
names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hydro_core.errors import Code, HydroError

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "refused"
_HEAD = "== "
_OTHER_EACH_TIME = (
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"process \d+ on \S+, since [\dT:.+-]+\d", "process N on HOST, since WHEN"),
    (r"part-\d{5}-[0-9a-f-]{36}-", "part-NAME-"),
    (r"(staged/\d+-\d+-)[0-9a-f]{12}", r"\1NAME"),
)
"""Ports, writers, and names of a table's files and folders."""


class Refused:
    """The refusals of one test, in their order."""

    def __init__(self, node: str, temporary: Path, *, update: bool) -> None:
        module, _, self._test = node.partition("::")
        self._file = golden_of(module)
        self._temporary = re.compile(rf"{re.escape(str(temporary))}/[\w.\[\]-]+")
        self._update = update
        self._seen = 0

    @contextmanager
    def __call__(
        self, of: type[HydroError], code: Code, *, at: str | None = None
    ) -> Iterator[pytest.ExceptionInfo[HydroError]]:
        """Within it, something is refused.

        Args:
            of: the error that is raised.
            code: that of its first diagnostic.
            at: the `LINE:COLUMN` of that, or only `LINE`.
        """
        with pytest.raises(of) as caught:
            yield caught
        first = caught.value.diagnostics[0]
        assert first.code == code
        if at is not None:
            assert first.span is not None
            place = f"{first.span.line}:{first.span.column}"
            assert at in (place, str(first.span.line))
        said = self._temporary.sub("TMP", str(caught.value))
        for pattern, stands in _OTHER_EACH_TIME:
            said = re.sub(pattern, stands, said)
        self._judge(said)

    def _judge(self, said: str) -> None:
        self._seen += 1
        name = self._test if self._seen == 1 else f"{self._test} {self._seen}"
        known = entries(self._file)
        if self._update and known.get(name) != said:
            _write(self._file, {**known, name: said})
            return
        assert name in known, f"{self._file} has nothing of this test: `make golden` writes it"
        assert said == known[name]


def golden_of(module: str) -> Path:
    """The file in which the refusals of a module of tests stand."""
    return (GOLDEN / module.removeprefix("tests/")).with_suffix(".txt")


def entries(file: Path) -> Mapping[str, str]:
    """What a file has, by the name of the test."""
    if not file.exists():
        return {}
    parts = re.split(rf"^{_HEAD}(.*)\n", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {name: said[:-2] for name, said in zip(parts[::2], parts[1::2], strict=True)}


def _write(file: Path, found: Mapping[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{_HEAD}{name}\n{said}\n\n" for name, said in sorted(found.items()))
    file.write_text(text, "utf-8")
