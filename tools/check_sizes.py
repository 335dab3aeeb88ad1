"""Files stay below 700 lines: one that grows past it is two files.

    python tools/check_sizes.py hydro_core assets …

The limits inside a file (statements, complexity, arguments, columns) are ruff's, in pyproject.toml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

LINES = 700
BANNERS = ("# ----", "# ====", "# ****", "# ####")


def complaints(file: Path) -> Iterator[str]:
    """What is wrong with the size of a file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if len(lines) > LINES:
        yield f"{file}: {len(lines)} lines, and the limit is {LINES}: split it along its ideas"
    for number, line in enumerate(lines, start=1):
        if line.strip().startswith(BANNERS):
            yield f"{file}:{number}: a section banner: the sections are files of their own"


def main() -> int:
    """Checks the Python files under the given directories."""
    found = [
        complaint
        for directory in sys.argv[1:]
        for file in sorted(Path(directory).rglob("*.py"))
        for complaint in complaints(file)
    ]
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
