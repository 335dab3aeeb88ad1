"""Rules on examples: `tests/golden/rules/*.txt`.

# why
(delta (persist (map f a)))
=> (map f a)              the rules find both to be equal
plan (map f a)            the cheapest plan; `plan unchanged` where it stays as it is
fires: delta-persist
!= a                      they do not
silent: induction
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.laws import (
    test_equal_to_single,
    test_filters,
    test_matches_before_single,
    test_orders,
)
from tests.support import rewriting
from tests.support.patterns import all_rules, of_empty

DIRECTORY = Path(__file__).parent / "rules"


@dataclass
class Case:
    where: str
    before: str = ""
    equal: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    plan: str | None = None
    fires: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)


def _cases() -> list[Case]:
    found = []
    for path in sorted(DIRECTORY.glob("*.txt")):
        for number, block in enumerate(path.read_text(encoding="utf-8").split("\n\n")):
            case = _case(f"{path.stem}-{number}", block)
            if case.before:
                found.append(case)
    return found


def _case(where: str, block: str) -> Case:
    case = Case(where)
    part = "before"
    texts: dict[str, str] = {"before": ""}
    for line in block.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        for start in ("=>", "!=", "plan", "fires:", "silent:"):
            if line.startswith(start):
                part = f"{start} {len(texts)}"
                line = line.removeprefix(start)  # noqa: PLW2901 - what is left of it
        texts[part] = texts.get(part, "") + " " + line.strip()
    case.before = texts.pop("before").strip()
    for key, text in texts.items():
        kind, value = key.split()[0], text.strip()
        if kind == "=>":
            case.equal.append(value)
        elif kind == "!=":
            case.apart.append(value)
        elif kind == "plan":
            case.plan = value
        else:
            getattr(case, kind.removesuffix(":")).extend(value.split())
    return case


CASES = _cases()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.where)
def test_a_rule_does_what_its_example_says(case: Case) -> None:
    for other in case.equal:
        assert rewriting.same_class(case.before, other), f"{case.before} is not {other}"
    for other in case.apart:
        assert not rewriting.same_class(case.before, other), f"{case.before} is {other}"
    if case.plan is not None:
        wanted = case.before if case.plan == "unchanged" else case.plan
        assert rewriting.tidy(rewriting.plan(case.before)) == rewriting.tidy(wanted)
    if case.fires or case.silent:
        fired = rewriting.fired(case.before)
        assert set(case.fires) <= fired
        assert not set(case.silent) & fired
        if not any("difference" in name or "anti" in name for name in (*fired, case.before)):
            assert not fired & {r.name for r in all_rules() if of_empty(r)}


def test_every_rule_with_a_condition_has_a_silent_case() -> None:
    silent = {name for case in CASES for name in case.silent}
    # it holds of a stream and itself, so it always fires; that it does not confuse two is a `!=`
    silent.add("persist-injective")
    # names say what they were before, so every function that can be read goes there
    silent.add("filter-rename")
    silent |= set(test_filters.SILENT)
    assert test_orders.APART
    silent.add("join-order")
    silent |= {rule for rule, _ in test_matches_before_single.SILENT}
    assert test_equal_to_single.SILENT
    silent |= {"equal-to-single", "equal-to-single-renamed"}
    # those that speak of empty streams are silent in every case that takes nothing away
    conditional = {r.name for r in all_rules() if r.when and not of_empty(r)}
    written = {name for name in conditional if not name.startswith("growing-")}
    assert written <= silent, sorted(written - silent)


def test_every_rule_fires_somewhere() -> None:
    fired = {name for case in CASES for name in case.fires} | set(test_filters.CASES)
    from hydro_core.optimize.rules.selection import LINES

    assert test_orders.CASES
    fired.add("join-order")
    fired |= {rule for rule, _ in test_matches_before_single.CASES}
    fired |= {rule for rule, _ in test_equal_to_single.CASES}

    written = {line[0] for line in LINES if not line[1].endswith(("(growing ?x)", "(empty ?x)"))}
    assert written <= fired, sorted(written - fired)
    assert len(all_rules()) > len(written)
