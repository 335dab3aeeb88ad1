"""Which operators repeat their rows over a range, and what is said of them."""

from __future__ import annotations

import pytest

from hydro_core.plan.streams import repeated
from tests.unit.plan.test_planner import planned

ITEM = "k string, v long, f double, d decimal(5,2), e decimal(20,2)"
ROWS = f'r = source("{ITEM}"); w = r -> window(3)\n'
EVERY = "repeats each row at every tick of a range: "


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = r -> persist() -> sort_by_key(lambda r: r.v) -> enumerate()", "the place of an item"),
        ("x = w -> sort_by_key(lambda r: r.v) -> limit(2)", "the place of an item"),
        ("x = r -> persist() -> persist()", "added anew in every tick"),
        ("x = w -> old()", "added anew in every tick"),
        (
            "x = r -> persist() -> sort_by_key(lambda r: r.v) -> aggregate(l=last('v'))",
            "their order",
        ),
        ("x = w -> aggregate(low=min('v'))", "`min` of `low` does not tell what is left"),
        ("x = w -> aggregate(s=sum('f'))", "`sum` of `s` does not tell what is left"),
        ("x = r -> persist() -> aggregate(s=median('v'))", "`median` of `s` is not merged"),
        (
            "x = w -> map(lambda r: r.v) -> fold(0, lambda a, v: max(a, v), commutative=True)",
            "left",
        ),
    ],
)
def test_repeats_rows_at_every_tick(text: str, why: str) -> None:
    found = repeated(planned(ROWS + text + "; x -> out"))
    [told] = [t for n, t in found.items() if n == "x"]
    assert EVERY in told
    assert why in told


@pytest.mark.parametrize(
    "text",
    [
        "x = w -> aggregate(by='k', low=min('v'))",
        "x = w -> latest(by='k', order='v')",
        "x = r -> persist() -> aggregate(by='k', s=avg('e'))",
        "x = w -> reduce_keyed(lambda p, q: p, by='k', commutative=True)",
    ],
)
def test_groups_again_when_a_key_changes(text: str) -> None:
    found = repeated(planned(ROWS + text + "; x -> out"))
    assert "groups the rows of a key again whenever they change" in found["x"]


@pytest.mark.parametrize(
    "text",
    [
        "x = r -> sort_by_key(lambda r: r.v) -> enumerate()",
        "x = r -> persist() -> unique()",
        "x = r -> persist() -> aggregate(by='k', n=count(), low=min('v'), who=max_by('k', 'v'))",
        "x = w -> aggregate(by='k', n=count(), some=count('f'), s=sum('v'), m=avg('v'))",
        "x = w -> aggregate(by='k', s=sum('d'), m=avg('d'))",
        "x = r -> persist() -> aggregate(by='k', s=avg('d'), m=avg('f'))",
        "x = w -> fold(0, lambda a, r: a + (r.v or 0), commutative=True)",
        "x = r -> persist() -> map(lambda r: r.v) -> reduce(lambda p, q: p * q, commutative=True)",
        "x = w -> join(right=r, on='k', suffix='_r', how='anti')",
    ],
)
def test_takes_each_row_once(text: str) -> None:
    assert not repeated(planned(ROWS + text + "; x -> out"))


def test_check_prints_it() -> None:
    from hydro_core.compile import compile_text
    from hydro_core.printing.programs import check_json, check_text

    compiled = compile_text(ROWS + "x = w -> aggregate(low=min('v')); x -> out")
    told = f"`x` (aggregate) {EVERY}rows go again, and `min` of `low` does not tell what is left"
    assert check_json(compiled.typed, compiled.strata)["repeated"] == [told]
    assert check_text(compiled.typed, compiled.strata).endswith(told)
