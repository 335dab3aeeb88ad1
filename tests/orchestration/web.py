"""A running `hydrotick dev`, asked by the webserver's GraphQL."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

NODES = "{assetNodes{assetKey{path} groupName isExecutable}}"


class Api:
    """The webserver's GraphQL."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/graphql"

    def __call__(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found
        return found["data"]


def answers(api: Api) -> bool:
    """Whether the UI is up and shows assets."""
    try:
        return bool(api(NODES)["assetNodes"])
    except OSError:
        return False
