"""Which streams have at most one item of each key."""

from __future__ import annotations

import pytest

from hydro_core.compile import compile_text
from hydro_core.plan.tick_plan import Key, keys_of
from hydro_core.types.ddl import parse_ddl

SCHEMAS = {"a": "(string, long)", "r": "k string, v long"}
LATEST = 'r -> persist() -> latest(by="k", order="v")'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a -> reduce_keyed(lambda p, q: p, commutative=True)", ()),
        ("a -> persist()", None),
        (LATEST, ("k",)),
        (f"{LATEST} -> filter(lambda r: r.v > 0) -> unique()", ("k",)),
        (f"{LATEST} -> map(lambda r: r)", None),
        (f"{LATEST} -> persist()", None),
        (f'{LATEST} -> select("v", "k")', ("k",)),
        (f'{LATEST} -> select("v")', None),
        (f'{LATEST} -> drop("v")', ("k",)),
        (f'{LATEST} -> drop("k")', None),
        (f"{LATEST} -> with_columns(v=lambda r: r.v + 1)", ("k",)),
        (f"{LATEST} -> with_columns(k=lambda r: r.v)", None),
        (f'{LATEST} -> rename(w="v")', ("k",)),
        (f'{LATEST} -> rename(w="k")', None),
        (f'{LATEST} -> join(right=r, on="k", how="semi")', ("k",)),
        (f'{LATEST} -> join(right=r, on="k", how="anti")', ("k",)),
        (f'{LATEST} -> join(right=r, on="k", suffix="_r")', None),
        ('r -> aggregate(by=["k", "v"], n=count())', ("k", "v")),
        ("r -> aggregate(n=count())", None),
    ],
)
def test_the_key_of_a_stream(text: str, wanted: Key | None) -> None:
    used = {n: parse_ddl(t) for n, t in SCHEMAS.items() if text.startswith(n)}
    typed = compile_text(f"{text} -> out", used).typed
    [sink] = typed.graph.sinks["out"]
    assert keys_of(typed).get(sink.inputs[0].node) == wanted
