"""Links and paths lead somewhere, every page is in the index, the README shows a result soon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages.blocks import PAGES, ROOT, blocks_of


def _anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    words = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {title.replace(" ", "-") for title in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        assert not anchor or anchor in _anchors(file), target


WRITTEN_BY_RUNS = {"tests/parts.json"}
"""Files that a command of a page writes first."""
OWN_FOLDERS = "hydro_core|orchestration|assets|tests|benchmarks|tools|examples|docs|docker"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_on_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    paths = set(re.findall(rf"`((?:{OWN_FOLDERS})/[\w./*-]*)`", text)) - WRITTEN_BY_RUNS
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []


SOURCES = {
    f"/{path.relative_to(ROOT)}"
    for folder in OWN_FOLDERS.split("|")
    for path in (ROOT / folder).rglob("*.py")
}
OF_USERS = {"asset.py"}
"""Files of the reader's own project."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_on_a_page_exists(page: Path) -> None:
    """A module may be named by the end of its path: `store/store.py`, `store.py`."""
    modules = set(re.findall(r"`((?:[\w.]+/)*\w+\.py)`", page.read_text(encoding="utf-8")))
    ends = {f"/{module}" for module in modules - OF_USERS}
    assert {end for end in ends if not any(path.endswith(end) for path in SOURCES)} == set()


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()


def test_pages_speak_of_the_project_alone() -> None:
    """No path of somebody's machine, and no package index."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/home/\w|/tmp/|/root/|/work/|--index-url|extra-index", text), page


def test_the_first_screen_ends_with_a_result() -> None:
    """In 40 lines: what it is, what to type, and what that prints."""
    (first, *_) = [b for b in blocks_of(ROOT / "README.md") if b.language in ("text", "ticks")]
    assert first.line + first.text.count("\n") + 1 <= 40
