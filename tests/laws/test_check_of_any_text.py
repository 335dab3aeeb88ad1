"""`check` of whatever text there is ends in a report or in an error that is meant to be read."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from hydro_core.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operators.md").read_text(encoding="utf-8")
EXAMPLES = [
    block for block in re.findall(r"```hydrotick\n(.*?)```", PAGE, re.DOTALL) if "source(" in block
]
WRONG = [p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("tests/golden/errors/*.hydro"))]
TEXTS = [*EXAMPLES * 3, *WRONG]
PIECES = [
    *(
        "->",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        "=",
        ":",
        "\n",
        "#",
        "//",
        '"',
        "'",
        "\\",
        "\0",
    ),
    *(
        "[0]",
        "[pos]",
        "x",
        "out",
        "a -> ",
        " -> out",
        "lambda x: x",
        "lambda k, v: (v, k)",
        "*",
        "**",
    ),
    *(
        "lambda: 0",
        "lambda *x: x",
        "(x, x)",
        '{"a": x}',
        "[x]",
        "{x}",
        "{**x}",
        "not",
        "None",
        "-1",
    ),
    *("'\\ud800'", "'\\x00'", "\u200b", "\ufb01", "\U0001f600", "é", "\r", "\t", "\f", "\u2028"),
    *("0x" + "f" * 5000, "9" * 4400, "1e999", "1j", "...", "10**10**10", "'a' * 10**9", "2**63"),
    *(
        'f"{x:>{5}}"',
        'f"{x!r:\\x7b}"',
        "f\"{x + '\u200b'}\"",
        'f"{x:%d%d}"',
        "'%s' % x",
        "x._1",
        "x.a",
    ),
    *(
        "max",
        "date",
        "datetime",
        "zip",
        "set()",
        "sum",
        "Decimal('1E+99')",
        "range(3)",
        "timezone.utc",
    ),
    *('datetime.strptime("11", "%d%d")', "date(1, 1, 1) - date(9999, 1, 1)", "(y := x)", "x is x"),
    *(
        "[y for y in x]",
        "(y for y in x)",
        "{y: y for y in x}",
        "sorted(x, key=len)",
        "x if x else x",
    ),
    *('returns="long"', 'schema="long"', 'schema="("', 'by="k"', 'on="k"', "commutative=True"),
    *('source("long")', 'source("k string, v long")', "source_iter([1, None, 'a'])", "sink('\\n')"),
    *("tick()", "null()", "prev()", "persist()", "join()", "cross()", "union()", "fold(max, max)"),
    *(
        'map(lambda x: [("a", x)])',
        "aggregate(n=count())",
        "sort() -> limit(1)",
        "partition(len, 3)",
    ),
    *("(" * 150, "[" * 300, "- " * 400 + "1", " -> map(lambda x: (x, x))" * 15, "lambda x: " * 120),
]
VALUES = [piece for piece in PIECES if len(piece) > 3 and "->" not in piece]
CASES = 400
"""A run tries so many."""


_TOKEN = re.compile(r"\w+|\s+|->|\"[^\"\n]*\"|.", re.DOTALL)


def hostile(random: Random) -> str:
    """A program with something changed in it, or several things."""
    parts = _TOKEN.findall(random.choice(TEXTS))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(parts))
        match random.randrange(7):
            case 0:
                del parts[at : at + random.choice((1, 1, 2, 4))]
                parts = parts or [" "]
            case 1:
                parts.insert(at, parts[random.randrange(len(parts))])
            case 2:
                parts[at] = random.choice(_TOKEN.findall(random.choice(TEXTS)))
            case 3:
                parts[at] += "".join(map(chr, random.choices(range(1, 0x2FF), k=2)))
            case 4:
                values = [i for i, part in enumerate(parts) if part.isalnum()]
                parts[random.choice(values) if values else at] = random.choice(PIECES)
            case 5:
                parts.insert(at, random.choice(PIECES))
            case _:
                values = [i for i, part in enumerate(parts) if part.isalnum()]
                parts[random.choice(values) if values else at] = random.choice(VALUES)
    return "".join(parts)


def checked(seed: int, path: Path) -> int:
    """The exit code of `check` of the text of that seed."""
    path.write_bytes(hostile(Random(seed)).encode("utf-8", "surrogatepass"))
    return main(["check", str(path)])


@pytest.mark.parametrize("part", range(4))
def test_check_reports_or_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: int
) -> None:
    path = tmp_path / "program.hydro"
    codes = [0, 0]
    for seed in range(part * CASES // 4, (part + 1) * CASES // 4):
        code = checked(seed, path)
        codes[code] += 1
        printed = capsys.readouterr()
        assert ("error[" in printed.err + printed.out) is bool(code)
    assert min(codes) > CASES // 20, "too few programs passed, or too few were refused"


@pytest.mark.parametrize("seed", range(40))
def test_check_of_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    path = tmp_path / "program.hydro"
    path.write_bytes(Random(seed).randbytes(seed * 7))
    assert main(["check", str(path)]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
