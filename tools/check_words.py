"""Words of the glossary: code says what the field says, and private words only become fewer.

    python tools/check_words.py            fails where a word stands more often than the list allows
    python tools/check_words.py --update   lowers the list to what stands there; it never raises it

`docs/glossary.md` has the words to use. The list, `tools/words.json`, has for each kind of finding
how often it may stand in `hydro_core` and `orchestration`.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOTS = ("hydro_core", "orchestration")
ALLOWED = Path(__file__).with_name("words.json")

WORDS = {
    "told": "report, emit, say; a changelog stream",
    "tells?": "report, emit, say",
    "meets?|met": "match, lookup",
    "slots?": "state table",
    "gone": "deleted, removed",
    "comes? back": "is reinserted",
    "came": "arrived",
    "noted|noticed": "recorded, detected",
    "beside": "staged",
    "tak(?:es?|en|ing) over|takeover": "deploy, activate, switch",
    "computed again|made anew|rework|reruns?": "recompute",
    "put in its place|put back": "replace, restore",
    "kept": "cached or stored",
    "joined files": "compaction",
    "of which|whoever|nobody|somebody": "a sentence with its subject first",
    "waits? for": "readiness, watermark",
    "item by item": "stateless, row-wise",
    "by position": "positional",
    "extremes?": "min/max with retractions",
    "judged?|judges": "oracle, verified against",
    "widens?|narrowed": "coerces, pruned, filtered",
    "hands? on": "forwards",
    "standing|the one that serves": "active deployment, effective commit",
}
"""Words that the code used to say, as patterns, and the field's words for them."""
BARE = re.compile(
    r"_?(Asked|Found|Kept|Given|Made|Told|Written|Shown|Needed|Known|Judged|Whole|Seen|Said|Met"
    r"|Held|Cut|[A-Z][a-z]+ed)"
)
"""A class that is called by a participle alone."""
NO_FUNCTIONS = frozenset({"of", "made", "by", "at", "shown", "there", "whole", "said", "told"})
NO_LOCALS = frozenset({"found", "one", "made", "known", "given", "other", "rest", "now"})
SHORT_SCOPE = 3
"""Lines in which a local may be called by where it came from."""
OPENING = re.compile(r"(?:^|(?<=[.:] ))(What|Of which|Who|Whoever|Whether)\b(?![^.]*\?)")


class Finding(NamedTuple):
    """A private word in a line of a module, by the kind that the list counts."""

    kind: str
    line: int


def findings(text: str) -> Iterator[Finding]:
    """The findings of a module, by kind and line."""
    for number, words in _prose(text):
        for pattern in WORDS:
            for _ in re.finditer(rf"\b(?:{pattern})\b", words, re.IGNORECASE):
                yield Finding(pattern, number)
        for _ in OPENING.finditer(words):
            yield Finding("sentences that begin with What, Who, Whether", number)
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef() if BARE.fullmatch(node.name):
                yield Finding("classes called by a participle", node.lineno)
            case ast.FunctionDef(name=name):
                if name in NO_FUNCTIONS:
                    yield Finding("functions called of, made, by …", node.lineno)
                yield from _locals(node)


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings and comments, with the numbers of their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
        if is_docstring or token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"\s+", " ", token.string.strip('#r" \n'))


def _locals(function: ast.FunctionDef) -> Iterator[Finding]:
    lines: dict[str, list[int]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in NO_LOCALS:
            lines.setdefault(node.id, []).append(node.lineno)
    for name, at in lines.items():
        if max(at) - min(at) > SHORT_SCOPE:
            yield Finding(f"locals called `{name}` over more than {SHORT_SCOPE} lines", min(at))


def main() -> int:
    """Compares the findings of both packages with the list."""
    places: dict[str, list[str]] = {}
    for root in ROOTS:
        for file in sorted(Path(root).rglob("*.py")):
            for kind, line in findings(file.read_text(encoding="utf-8")):
                places.setdefault(kind, []).append(f"{file}:{line}")
    counts = Counter({kind: len(of_kind) for kind, of_kind in places.items()})
    allowed: dict[str, int] = json.loads(ALLOWED.read_text(encoding="utf-8"))
    if "--update" in sys.argv:
        lower = {kind: min(most, counts[kind]) for kind, most in allowed.items()}
        ALLOWED.write_text(json.dumps(lower, indent=1) + "\n", encoding="utf-8")
        return 0
    if "--list" in sys.argv:
        print(
            *(f"{place}  {kind}" for kind, of_kind in places.items() for place in of_kind), sep="\n"
        )
        return 0
    over = [kind for kind in counts if counts[kind] > allowed.get(kind, 0)]
    for kind in over:
        print(
            f"{kind}: {counts[kind]} times, and at most {allowed.get(kind, 0)} are allowed;"
            f" say {WORDS.get(kind, 'what a thing is, by a noun')} (`python tools/check_words.py"
            " --list` has the places)"
        )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
