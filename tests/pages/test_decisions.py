"""Pages of decisions say first what was decided, why, and at what price; figures come last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "decisions").glob("*.md"))
_FIRST = ("Decision", "Why", "Price")
_HEAD = re.compile(r"^(?:## |\*\*)(\w+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_begins_with_decision_why_and_price(page: Path) -> None:
    assert tuple(_HEAD.findall(page.read_text("utf-8"))[:3]) == _FIRST


def test_there_are_pages() -> None:
    assert len(PAGES) > 30
