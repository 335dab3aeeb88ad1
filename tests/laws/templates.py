"""Every operator in a few small forms (`operators.txt`, `cycles.txt`), for programs and laws.

A template is one step of a pipeline: streams of some kinds in, a stream of a kind out. Its
functions are total: nulls, negative numbers and all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KINDS = {
    "long": "long",
    "text": "string",
    "pair": "(long, long)",
    "named": "(string, long)",
    "row": "k string, v long, w long",
    "array": "array<long>",
}
"""The kinds of streams by their schemas."""


@dataclass(frozen=True)
class Template:
    """One step: `text` stands after the first input, `{b}` in it is the second."""

    op: str
    takes: tuple[str, ...]
    gives: str
    text: str
    order: str = "keeps"
    needs: bool = False
    grows: int = 1
    alone: bool = True
    """No other operator stands in the text: the catalogue's columns can be checked on it."""

    def __str__(self) -> str:
        return f"{' '.join(self.takes)} {self.text}"


@dataclass(frozen=True)
class Cycle:
    """A stream `{s}` that feeds itself; `{a}` flows in, `{b}` is a second stream of the kind."""

    kind: str
    text: str
    operators: frozenset[str]


def _lines(file: str) -> list[str]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _template(line: str) -> Template:
    op, kinds, text, *remarks = (part.strip() for part in line.split(" | "))
    takes, gives = kinds.split(" -> ")
    words = " ".join(remarks).removesuffix("|").split()
    grows = next((int(word[1:]) for word in words if word[0] == "x"), 1)
    order = next((word for word in words if word in ("gives", "loses")), "keeps")
    return Template(
        op,
        tuple(takes.split()),
        gives,
        text.removesuffix(" |"),
        order,
        "needs" in words,
        grows,
        "chain" not in words,
    )


def _cycles() -> list[Cycle]:
    found: list[Cycle] = []
    for line in _lines("cycles.txt"):
        if line.startswith("= "):
            kind, operators = line[2:].split(" | ")
            found.append(Cycle(kind, "", frozenset(operators.split())))
        else:
            last = found.pop()
            text = f"{last.text}\n{line}" if last.text else line
            found.append(Cycle(last.kind, text, last.operators))
    return found


TEMPLATES = [_template(line) for line in _lines("operators.txt")]
CYCLES = _cycles()
