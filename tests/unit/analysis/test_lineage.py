"""Lineage of fields through whole programs; what it claims holds on every vector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.analysis.infer import infer
from hydro_core.analysis.lineage import lineage
from hydro_core.compile import compile_text
from hydro_core.lang.resolve import parse
from hydro_core.reference.interpreter import TickInput, run_ticks
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.json import from_json
from hydro_core.types.values import canonical


def names(sources):
    return sorted(".".join((name, *path)) for name, path in sources)


def of(program, output="out", **schemas):
    typed = infer(parse(program), {name: parse_ddl(ddl) for name, ddl in schemas.items()})
    return {
        ".".join(path): (names(known.equal), names(known.computed))
        for path, known in lineage(typed)[output].items()
    }


def test_the_example_of_the_page():
    assert of("a -> map(lambda x, y: y) -> out", a="(long, string)") == {"": (["a.1"], [])}


def test_a_key_of_an_inner_join_is_that_of_both_sides():
    found = of(
        'a -> join(right=b, on="k", suffix="_r") -> out', a="k long, v long", b="k long, v string"
    )
    assert found == {
        "k": (["a.k", "b.k"], []),
        "v": (["a.v"], []),
        "v_r": (["b.v"], []),
    }


def test_a_padded_side_is_not_always_what_it_was():
    found = of('a -> join(right=b, how="left") -> out', a="(long, long)", b="(long, string)")
    assert found == {
        "0": (["a.0"], []),
        "1.0": (["a.1"], []),
        "1.1": ([], ["b.1"]),
    }


def test_what_adds_up_has_what_its_parts_have():
    assert of("a -> union(b) -> out", a="long", b="long") == {"": (["a", "b"], [])}
    found = of("more = a -> map(lambda x: x + 1); more -> union(a) -> out", a="long")
    assert found == {"": (["a"], ["a"])}


def test_a_cycle_ends():
    found = of(
        "x = union() -> unique()\n"
        "edges -> x\n"
        "x -> map(lambda a, b: (b, a)) -> [0]j\n"
        "edges -> [1]j\n"
        "j = join() -> map(lambda b, ac: (ac[0], ac[1])) -> x\n"
        "x -> out",
        edges="(long, long)",
    )
    assert found == {"0": (["edges.0"], []), "1": (["edges.1"], [])}


def test_aggregates_name_what_they_look_at():
    found = of(
        'a -> aggregate(by="k", n=count(), s=sum(lambda r: r.v * r.w), m=max("v")) -> out',
        a="k string, v long, w long",
    )
    assert found == {
        "k": (["a.k"], []),
        "n": ([], []),
        "s": ([], ["a.v", "a.w"]),
        "m": ([], ["a.v"]),
    }


def vectors():
    for parent in Path(__file__).resolve().parents:
        for place in (parent / "shared" / "vectors", parent.parent / "shared" / "vectors"):
            if place.is_dir():
                files = sorted([*place.glob("dfir/*.json"), *place.glob("fuzz/*.json")])
                return [v for f in files for v in json.loads(f.read_text()) if "expect" in v]
    return []


def values_at(item, path):
    for step in path:
        if item is None:
            return None
        item = item[int(step)] if step.isdigit() and isinstance(item, tuple) else item[step]
    return item


@pytest.mark.skipif(not vectors(), reason="the vectors are not beside this checkout")
def test_every_claim_of_equality_holds_on_the_vectors():
    checked = 0
    for vector in vectors():
        schemas = {name: parse_ddl(ddl) for name, ddl in vector.get("schemas", {}).items()}
        compiled = compile_text(vector["program"], schemas)
        ticks = [
            {n: [from_json(x, schemas[n]) for x in batch] for n, batch in tick.items()}
            for tick in vector.get("ticks", [{}])
        ]
        claims = lineage(compiled.typed)
        seen = {}
        for batches, outputs in zip(
            ticks,
            run_ticks(compiled.typed, compiled.strata, [TickInput(b) for b in ticks]),
            strict=True,
        ):
            for name, batch in batches.items():
                seen.setdefault(name, []).extend(batch)
            for name, items in outputs.items():
                for path, known in claims[name].items():
                    if known.computed or not known.equal:
                        continue
                    there = {
                        canonical(values_at(x, source_path))
                        for source, source_path in known.equal
                        for x in seen.get(source, ())
                    }
                    for item in items:
                        assert canonical(values_at(item, path)) in there, (vector["name"], path)
                        checked += 1
    assert checked > 1000
