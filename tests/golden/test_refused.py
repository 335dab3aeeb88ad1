"""What tests of other folders have refused: each text belongs to a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.refused import GOLDEN, ROOT, entries

FILES = sorted(GOLDEN.rglob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(GOLDEN)))
def test_every_text_is_of_a_test(file: Path) -> None:
    module = (ROOT / "tests" / file.relative_to(GOLDEN)).with_suffix(".py")
    text = module.read_text("utf-8")
    found = entries(file)
    assert found
    for name, said in found.items():
        test = re.split(r"[\[ ]", name)[0]
        assert re.search(rf"^def {test}\(.*?\brefused: Refused", text, re.DOTALL | re.MULTILINE)
        assert said.startswith("error[")
        assert "\nhelp: " in said
