"""Writes the pages that are generated from tables; with --check, says whether they are current."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "docs/commands.md": "tools.commands_page",
    "docs/errors.md": "tools.errors_page",
    "docs/functions.md": "tools.functions_page",
    "docs/operators.md": "tools.operators_page",
    "docs/rules.md": "tools.rules_page",
}
"""The pages, and the modules whose `page()` gives them."""


def main() -> int:
    """Writes or checks every page; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a page is old")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    stale = []
    for name, module in PAGES.items():
        if not (ROOT / f"{module.replace('.', '/')}.py").exists():
            continue
        text = importlib.import_module(module).page()
        file = ROOT / name
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not arguments.check:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    if arguments.check and stale:
        print(f"not current: {', '.join(stale)}; `make docs` writes them")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
