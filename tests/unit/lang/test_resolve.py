"""What names, ports and arguments stand for: the rules of the language page, section 4."""

from __future__ import annotations

import pytest

from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Graph
from hydro_core.lang.resolve import parse


def reads(graph: Graph) -> dict[str, list[str]]:
    """What every node reads, by ids."""
    return {node.id: [str(endpoint) for endpoint in node.inputs] for node in graph if node.inputs}


def code_of(text: str) -> str:
    with pytest.raises(ProgramError) as caught:
        parse(text)
    return caught.value.code


CHAT = """
add_member -> persist() -> [0] broadcast
messages   -> persist() -> [1] broadcast
broadcast  = cross() -> delta() -> notify
"""


def test_inputs_and_outputs_by_usage() -> None:
    graph = parse(CHAT)
    assert list(graph.sources) == ["add_member", "messages"]
    assert list(graph.sinks) == ["notify"]
    assert reads(graph) == {
        "persist_1": ["add_member"],
        "persist_2": ["messages"],
        "broadcast": ["persist_1", "persist_2"],
        "delta_1": ["broadcast"],
        "notify": ["delta_1"],
    }
    assert not graph.warnings


def test_every_node_has_a_place() -> None:
    spans = {node.id: (node.span.line, node.span.column) for node in parse(CHAT) if node.span}
    assert spans["add_member"] == (2, 1)
    assert spans["broadcast"] == (4, 14)
    assert spans["notify"] == (4, 36)
    assert len(spans) == 7


def test_a_name_that_is_read_labels_the_last_operator() -> None:
    graph = parse("x = a -> sort() -> enumerate()\nx -> out")
    assert reads(graph) == {"sort_1": ["a"], "x": ["sort_1"], "out": ["x"]}


def test_a_name_is_entered_at_its_first_element_and_left_at_its_last() -> None:
    graph = parse("x = union() -> unique()\na -> x\nx -> map(lambda v: v) -> x\nx -> out")
    assert reads(graph) == {
        "union_1": ["a", "map_1"],
        "x": ["union_1"],
        "map_1": ["x"],
        "out": ["x"],
    }


def test_a_pipeline_that_ends_in_a_name_flows_into_it_and_is_read_before_it() -> None:
    graph = parse("stats = inp -> sort() -> daily\nstats -> delta() -> changed")
    assert reads(graph) == {
        "stats": ["inp"],
        "daily": ["stats"],
        "delta_1": ["stats"],
        "changed": ["delta_1"],
    }


def test_a_pipeline_of_names() -> None:
    graph = parse("x = a -> b -> c\nb = map(lambda v: v)\nx -> out")
    assert reads(graph) == {"b": ["a"], "c": ["b"], "out": ["b"]}


def test_an_alias_is_read_and_written_as_what_it_stands_for() -> None:
    graph = parse("x = y\ny = z\nz = union()\na -> x\nx -> out")
    assert reads(graph) == {"z": ["a"], "out": ["z"]}


def test_an_alias_of_an_input() -> None:
    graph = parse("edges = stream\nedges -> out")
    assert reads(graph) == {"out": ["stream"]}


def test_a_name_in_the_middle_of_a_pipeline() -> None:
    graph = parse("double = map(lambda v: v * 2)\na -> double -> out")
    assert reads(graph) == {"double": ["a"], "out": ["double"]}


def test_a_forward_reference() -> None:
    assert reads(parse('a -> later\nlater = sink("out")')) == {"out": ["a"]}


def test_a_name_that_begins_with_a_name_is_entered_there() -> None:
    graph = parse("x = y -> map(lambda v: v)\ny = union()\na -> x\nx -> out")
    assert reads(graph) == {"y": ["a"], "x": ["y"], "out": ["x"]}


def test_a_name_may_be_that_of_an_operator() -> None:
    graph = parse(
        "join = cross_singleton()\na -> [input]join\nb -> [single]join\njoin -> sink('out')"
    )
    assert reads(graph) == {"join": ["a", "b"], "out": ["join"]}


def test_second_inputs_as_arguments() -> None:
    graph = parse(
        "a -> join(right=b) -> j\na -> chain(right=b) -> c\na -> cross(right=b) -> x\n"
        "a -> difference(neg=b) -> d\na -> anti_join(neg=b) -> n\n"
        "a -> cross_singleton(single=b) -> s\na -> union(b, c2) -> u\nc2 = p[x]\n"
        "p = a -> partition(lambda v: 'x', ['x'])\na -> union(p[x]) -> w"
    )
    assert reads(graph)["join_1"] == ["a", "b"]
    assert reads(graph)["difference_1"] == ["a", "b"]
    assert reads(graph)["cross_singleton_1"] == ["a", "b"]
    assert reads(graph)["union_1"] == ["a", "b", "p[x]"]
    assert reads(graph)["union_2"] == ["a", "p[x]"]


def test_an_argument_and_a_port() -> None:
    graph = parse("d = difference(neg=b)\na -> [pos]d\nd -> out")
    assert reads(graph)["d"] == ["a", "b"]
    assert reads(parse("d = difference(neg=b)\na -> d\nd -> out"))["d"] == ["a", "b"]


def test_input_of_cross_singleton_may_be_elided() -> None:
    for label in ("", "[0]", "[input]"):
        graph = parse(f"b -> [single]c\na -> {label}c\nc = cross_singleton() -> out")
        assert reads(graph)["c"] == ["a", "b"]


def test_ports_of_union_and_tee_are_free() -> None:
    graph = parse("t = a -> tee()\nt[high] -> [x]u\nt[0] -> u\nt -> [x]u\nu = union() -> out")
    assert reads(graph)["u"] == ["t", "t", "t"]


def test_a_port_stands_in_the_definition() -> None:
    graph = parse("first = [0]j\na -> first\nb -> [1]j\nj = join()\nj -> out")
    assert reads(graph)["j"] == ["a", "b"]


def test_ports_with_blanks_and_quotes() -> None:
    graph = parse("p = a -> partition(lambda v: 'x', ['a b', 2])\np [2] -> two\np['a b'] -> one")
    assert reads(graph) == {"p": ["a"], "two": ["p[2]"], "one": ["p[a b]"]}


def test_sinks_of_one_name() -> None:
    graph = parse("a -> out\nb -> sink('out')")
    assert [node.id for node in graph.sinks["out"]] == ["out", "out_2"]


def test_an_output_may_have_the_name_of_a_stream() -> None:
    graph = parse("out = a -> sort()\nout -> sink('out')\nout -> sink('a')")
    assert reads(graph) == {"out": ["a"], "out_2": ["out"], "a_2": ["out"]}


def test_a_declared_input_before_other_operators() -> None:
    graph = parse('x = source("long") -> sort()\nx -> out')
    assert list(graph.sources) == ["x"]
    assert reads(graph) == {"x": ["x_2"], "out": ["x"]}


def test_comments_blank_lines_and_semicolons() -> None:
    graph = parse(
        "# at the start\nbefore   # after a name\n  # between\n\n  // the other kind\n"
        "  -> map(lambda x: (x,   # inside\n   x // 2))  ;;\n"
        "a ->\n\n# here too\nb; c -> d"
    )
    assert reads(graph) == {"map_1": ["before"], "b": ["a"], "d": ["c"]}


def test_a_line_end_ends_a_statement() -> None:
    assert code_of("x =\na -> out") == "syntax"
    assert code_of("a\n-> b ->") == "syntax"


def test_strings_hide_brackets_and_comments() -> None:
    graph = parse(r"""a -> map(lambda x: x + ")] # // '" + '\'(' + r"\\") -> out""")
    assert reads(graph) == {"map_1": ["a"], "out": ["map_1"]}


def test_warnings() -> None:
    graph = parse("x = a -> sort()\nb -> tee()\ny = a\nz = c -> out")
    assert [w.message for w in graph.warnings] == [
        "`x` is defined and never read: it is discarded",
        "nobody reads what `tee` gives: it is discarded",
        "`y` is defined and never read: it is discarded",
    ]
    assert all(w.severity == "warning" and w.span for w in graph.warnings)


def test_several_diagnostics_at_once_in_the_order_of_the_text() -> None:
    with pytest.raises(ProgramError) as caught:
        parse("a -> frob() -> out\nx = x\nb -> [7]j\nj = join()\nn -> m -> o")
    assert [(d.code, d.span.line) for d in caught.value.diagnostics if d.span] == [
        ("unknown-operator", 1),
        ("name", 2),
        ("port", 3),
        ("undefined", 5),
    ]


def test_what_is_wrong_already_is_not_said_twice() -> None:
    with pytest.raises(ProgramError) as caught:
        parse("a -> frob() -> [0]j\nb -> [1]j\nj = join() -> out")
    assert [d.code for d in caught.value.diagnostics] == ["unknown-operator"]


def test_bindings() -> None:
    graph = parse("a -> map(double) -> out", bindings={"double": lambda x: x * 2})
    assert graph["map_1"].args["f"].call(3) == 6
    assert code_of("a -> map(double) -> out") == "name"


def test_functions_know_their_place() -> None:
    graph = parse("a\n  -> map(\n    lambda x: x) -> out")
    span = graph["map_1"].args["f"].span
    assert (span.line, span.column) == (3, 5)


def test_a_fold_starts_with_a_value_or_what_a_function_gives() -> None:
    graph = parse(
        "a -> fold(lambda: [], lambda s, x: s, commutative=True) -> b\n"
        "a -> fold(list, lambda s, x: s, commutative=True) -> c\n"
        "a -> fold((0, {'n': -1}), lambda s, x: s, commutative=True) -> d"
    )
    assert [graph[f"fold_{i}"].args["init"] for i in (1, 2, 3)] == [[], [], (0, {"n": -1})]
    assert graph["fold_1"].args["f"].algebra.commutative


def test_columns_and_orders() -> None:
    graph = parse(
        "a -> latest(by='k', order=['at', 'seq']) -> b\n"
        "a -> latest(by=('k', 'l'), order=lambda r: r.at) -> c\n"
        "a -> aggregate(by='k', n=count(), t=mean(lambda r: r.x)) -> d"
    )
    assert graph["latest_1"].args["by"] == ("k",)
    assert graph["latest_1"].args["order"] == ("at", "seq")
    assert graph["latest_2"].args["order"].params == ("r",)
    named = dict(graph["aggregate_1"].args["aggregates"])
    assert named["t"].function == "avg"


def test_a_byte_order_mark_is_no_name() -> None:
    assert list(parse("\ufeffa -> out").sources) == ["a"]


def test_long_programs() -> None:
    long = "a" + " -> identity()" * 5000 + " -> out\n"
    assert len(parse(long).nodes) == 5002
    aliases = "".join(f"x{i} = x{i + 1}\n" for i in range(3000)) + "x3000 = a\nx0 -> out"
    assert reads(parse(aliases)) == {"out": ["a"]}


@pytest.mark.parametrize("depth", [150, 100_000])
def test_deep_arguments(depth: int) -> None:
    text = f"a -> map(lambda x: {'(' * depth}x{')' * depth}) -> out"
    if depth < 1000:
        assert parse(text)["map_1"].args["f"].call(1) == 1
    else:
        assert code_of(text) == "syntax"
