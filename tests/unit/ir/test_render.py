"""Drawings: what they say, and that nothing in them lies on top of anything else."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from hydro_core.analysis.infer import infer
from hydro_core.analysis.strata import stratify
from hydro_core.ir.render import Picture, dot, json, mermaid, picture_of, svg, text
from hydro_core.ir.render.layout import BOX_GAP, lay_out
from hydro_core.lang.resolve import parse

CHAT = """
add_member = source("string")
messages = source("string")
add_member -> persist() -> [0] broadcast
messages -> persist() -> [1] broadcast
broadcast = cross() -> delta() -> notify
"""
LOOPS = """
edges = source("(long, long)")
reached = union() -> unique()
source_iter([0]) -> reached
reached -> map(lambda v: (v, 0)) -> [0]j
edges -> persist() -> [1]j
j = join() -> flat_map(lambda src, uv: [src, uv[1]]) -> reached
reached -> sort() -> enumerate() -> sink("first")
seen = reached -> prev()
reached -> difference(neg=seen) -> sink("<new> & \\"rest\\"")
"""


def drawn(program: str) -> Picture:
    typed = infer(parse(program, name="program"))
    return picture_of(typed.graph, stratify(typed).of, typed.types)


def test_text_reads_by_strata():
    assert text(drawn(CHAT)) == (
        "stratum 0: as rows arrive\n"
        "  add_member  source\n"
        "  messages    source\n"
        "  persist_1   persist  <- add_member\n"
        "  persist_2   persist  <- messages\n"
        "  broadcast   cross  <- [0] persist_1, [1] persist_2\n"
        "stratum 1: delta\n"
        "  delta_1     delta  <- broadcast (complete)\n"
        "  notify      sink  <- delta_1\n"
    )


def test_mermaid_groups_strata_and_escapes():
    drawing = mermaid(drawn(LOOPS))
    assert drawing.startswith("flowchart TD\n  subgraph stratum_0")
    assert "&lt;new&gt; &amp; &quot;rest&quot;" in drawing
    assert "-.->" in drawing  # prev sees its input a tick later
    assert "==>" in drawing  # what blocks


def test_dot_names_every_box_once():
    picture = drawn(LOOPS)
    lines = dot(picture).splitlines()
    for box in picture.boxes:
        name = box.id.replace('"', '\\"')
        assert sum(line.strip().startswith(f'"{name}" [') for line in lines) == 1


def test_json_holds_all_arrows():
    picture = drawn(LOOPS)
    found = json(picture)
    assert len(found["arrows"]) == sum(len(n) for n in [picture.arrows])
    assert {a["target"] for a in found["arrows"]} <= {b["id"] for b in found["boxes"]}


@pytest.mark.parametrize("program", [CHAT, LOOPS, 'null() -> sink("out")'])
def test_svg_is_a_document_with_everything_inside_of_it(program):
    picture = drawn(program)
    root = ET.fromstring(svg(picture))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    rectangles = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(rectangles) == 1 + len(picture.strata) + len(picture.boxes)
    for rectangle in rectangles:
        x, y, w, h = (float(rectangle.attrib.get(k, 0)) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + w <= width + 1
        assert y + h <= height + 1


def wide(layers: int) -> str:
    """A program in which every operator of a layer reads two of the layer above."""
    lines = ['a0 = source("long")', 'b0 = source("long")', 'c0 = source("long")']
    for n in range(1, layers):
        lines += [f"a{n} = a{n - 1} -> union(b{n - 1})", f"b{n} = b{n - 1} -> union(c{n - 1})"]
        lines += [f"c{n} = c{n - 1} -> union(a{max(0, n - 3)})"]
    lines += [f'{name}{layers - 1} -> sink("{name}")' for name in "abc"]
    return "\n".join(lines)


@pytest.mark.parametrize("program", [CHAT, LOOPS, wide(8)])
def test_boxes_of_a_layer_keep_their_distance(program):
    picture = drawn(program)
    widths = {box.id: 60.0 + 10 * (i % 5) for i, box in enumerate(picture.boxes)}
    layout = lay_out(picture, widths, 40.0)
    for one, other in combinations(picture.boxes, 2):
        a, b = layout.places[one.id], layout.places[other.id]
        if a.layer == b.layer:
            gap = abs(a.x - b.x) - (widths[one.id] + widths[other.id]) / 2
            assert gap >= BOX_GAP - 1e-6


def test_what_is_read_in_the_same_tick_stands_above():
    picture = drawn(wide(8))
    layout = lay_out(picture, dict.fromkeys((b.id for b in picture.boxes), 80.0), 40.0)
    for arrow in picture.arrows:
        assert layout.places[arrow.source].layer < layout.places[arrow.target].layer


def test_a_chain_of_thousands_is_drawn():
    program = 'a = source("long")\na' + " -> map(lambda x: x)" * 1000 + ' -> sink("out")'
    assert len(drawn(program).boxes) == 1002
    assert svg(drawn(program)).count("<g>") == 1002


def test_a_stratum_is_called_by_what_waits_in_it():
    picture = drawn("""
    payments = source("user string, amount long")
    totals = payments -> persist() -> aggregate(by="user", total=sum("amount"))
    totals -> join(right=payments, on="user", how="left") -> delta() -> changed
    """)
    assert [picture.label(stratum) for stratum in picture.strata] == [
        "stratum 0: as rows arrive",
        "stratum 1: totals, join",
        "stratum 2: delta",
    ]
    assert "stratum 1: totals" in svg(picture)
    assert "stratum 1: totals, join" in mermaid(picture)


def test_the_name_of_a_stratum_stays_short():
    lines = [f"x -> sort() -> enumerate() -> many_{i}" for i in range(8)]
    picture = drawn("\n".join(['x = source("n long")', *lines]))
    assert all(len(picture.label(stratum)) < 100 for stratum in picture.strata)
