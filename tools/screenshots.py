"""Takes the pictures of `docs/images` with a headless Chromium: of the UI and of a page of docs.

It works on a home of its own, where it runs the first days of the flights if they are not there,
and ends what it starts. Run it where the UI changes: `make screenshots`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DAYS = 5
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES: Mapping[str, tuple[str, tuple[int, int]]] = {
    "ui-output": ("/assets/flights/new_routes?view=overview", (1300, 1150)),
}
"""Where the UI shows what, and how large the window is."""

_BIN = Path(sys.executable).parent
_SECONDS_TO_START = 180
_SECONDS_A_PICTURE = 120
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=25000",
)


def main() -> int:
    """Takes all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="where the flights are (default: a new one)")
    parser.add_argument("--port", type=int, default=3999)
    asked = parser.parse_args()
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"there is no browser: one of {', '.join(BROWSERS)} is needed")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hydrotick-pictures-") as scratch:
        home = asked.home or Path(scratch) / "home"
        environ = {**os.environ, "HYDROTICK_HOME": str(home.absolute())}
        if not (home / "pipelines" / "flights").is_dir():
            subprocess.run(
                [_BIN / "hydrotick", "demo", "--days", str(DAYS)], check=True, env=environ
            )
        site = Path(scratch) / "site"
        subprocess.run([_BIN / "hydrotick", "docs", "--out", site], check=True, env=environ)
        _take(browser, (site / "flights.html").as_uri(), "docs-page", (1300, 2450))
        with _ui(asked.port, environ) as url:
            for name, (page, size) in PAGES.items():
                _take(browser, f"{url}{page}", name, size)
    return 0


@contextmanager
def _ui(port: int, environ: Mapping[str, str]) -> Iterator[str]:
    """The UI while it runs, by its address."""
    url = f"http://127.0.0.1:{port}"
    words = [_BIN / "hydrotick", "dev", "--port", str(port)]
    with subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL) as served:
        try:
            _wait_for(url)
            yield url
        finally:
            served.send_signal(signal.SIGTERM)


def _wait_for(url: str) -> None:
    """Waits until the UI has the flows' assets."""
    body = json.dumps({"query": "{assetNodes{id}}"}).encode()
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        asked = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                if json.load(answer)["data"]["assetNodes"]:
                    return
        except OSError:
            pass
        time.sleep(1)
    sys.exit(f"{url} shows no assets")


def _take(browser: str, url: str, name: str, size: tuple[int, int]) -> None:
    file = IMAGES / f"{name}.png"
    with tempfile.TemporaryDirectory(prefix="hydrotick-browser-") as profile:
        words = [
            browser,
            *_FLAGS,
            f"--user-data-dir={profile}",
            f"--window-size={size[0]},{size[1]}",
            f"--screenshot={file}",
            url,
        ]
        subprocess.run(words, check=True, timeout=_SECONDS_A_PICTURE, capture_output=True)
    sys.stdout.write(f"{file}: {file.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    sys.exit(main())
