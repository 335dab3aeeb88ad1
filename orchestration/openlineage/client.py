"""Where events go: a line of a file each, or a POST each. What does not work is a warning."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

_SECONDS = 5
_ENDPOINT = "/api/v1/lineage"
"""Where servers take events, below the URL that is configured."""


def send(event: Mapping[str, Any], to: str, key: str | None, warn: Callable[[str], None]) -> None:
    """Gives an event to a file (`file:PATH`) or to a server (its URL); `warn` is told if it fails.

    Args:
        key: what a server knows this client by.
    """
    body = json.dumps(event, ensure_ascii=False)
    try:
        if to.startswith("file:"):
            _append(Path(to.removeprefix("file:")), body)
        else:
            _post(to, body.encode(), key)
    except (OSError, HTTPException, ValueError) as problem:
        warn(f"OpenLineage: {to} did not take an event, and the tick goes on: {problem}")


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.write(line + "\n")


def _post(url: str, body: bytes, key: str | None) -> None:
    given = {"Content-Type": "application/json"}
    if key:
        given["Authorization"] = f"Bearer {key}"
    place = url.rstrip("/")
    place = place if place.endswith(_ENDPOINT) else place + _ENDPOINT
    # Settings have judged the scheme.
    request = urllib.request.Request(place, body, given)  # noqa: S310
    with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310
        pass
