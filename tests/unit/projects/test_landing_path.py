"""What the `path` of a landing may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.project.landing_path import landing_path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("payments", "payments"),
        ("payments/*.csv", "payments/*.csv"),
        ("/in/payments", "/in/payments"),
        ("a:b", "a:b"),
        ("file:///in/payments", "/in/payments"),
        ("file:/in/payments", "/in/payments"),
        ("file://localhost/in/payments", "/in/payments"),
        ("FILE:///in/payments", "/in/payments"),
        ("file:///in/all%20of%3F/*.csv", "/in/all of?/*.csv"),
    ],
)
def test_paths_and_urls(text: str, path: str) -> None:
    assert landing_path(text) == Path(path)
