"""What a program says of its statements."""

from __future__ import annotations

import runpy

from hydro_core.lang.comments import Comments
from hydro_core.lang.load import load, load_text
from hydro_core.lang.resolve import parse

TEXT = """\
# What users pay,
# day by day.

# What lands.
payments = source("user string, amount long")
refunds  = source("user string, amount long")  # since 2026

# How much every user has paid.
totals = payments
  -> persist()
  -> aggregate(by="user", total=sum("amount"))
totals -> sums

# Who was seen.
payments -> users
# Who got something back.
refunds -> unlucky

payments -> rest
"""


def said(text: str) -> dict[str, str]:
    graph = parse(text, file="payments.hydro")
    comments = Comments({"payments.hydro": text})
    return {node.id: comments.of(node.span) for node in graph}


def test_a_comment_is_of_what_stands_before_or_below_it():
    found = said(TEXT)
    assert found["payments"] == "What lands."
    assert found["refunds"] == "since 2026"
    assert found["totals"] == found["sums"] == "How much every user has paid."
    assert found["users"] == "Who was seen."
    assert found["unlucky"] == "Who got something back."
    assert found["rest"] == ""


RULES = """\
# Who reaches whom.

.input edge(src: long, dst: long)  # what is there now
.output path, lonely
# From one to the next, and on.
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
lonely(x) :- edge(x, _), !path(_, x).  // nobody comes here
"""


def test_a_rule_says_what_its_predicate_is():
    graph = load_text(RULES, "reach.dl")
    comments = Comments({"reach.dl": RULES})
    found = {name: comments.of(sinks[0].span) for name, sinks in graph.sinks.items()}
    assert found == {"path": "From one to the next, and on.", "lonely": "nobody comes here"}
    assert comments.of(graph["edge"].span) == "what is there now"
    assert comments.head == "Who reaches whom."


def test_a_program_begins_with_what_it_is_about():
    assert Comments({"payments.hydro": TEXT}).head == "What users pay, day by day."
    assert Comments({"payments.hydro": "x = source('n long')\nx -> y\n"}).head == ""
    assert Comments().head == ""


def test_a_sign_inside_of_a_text_begins_no_comment():
    found = said("x = source('n long')\nx -> map(lambda n: '# none') -> y\n")
    assert found["map_1"] == ""
    assert found["x"] == ""


def test_a_python_program_has_docstring_and_comments(tmp_path):
    file = tmp_path / "paid.py"
    text = '"""What users pay.\n\nMore of it.\n"""\nflow = None\n# All of it.\nnext = 1\n'
    file.write_text(text)
    assert Comments({"paid.py": text}).head == "What users pay."
    assert Comments({"paid.py": "def ("}).head == ""


def test_a_file_that_was_not_given_is_read(tmp_path):
    file = tmp_path / "read.hydro"
    file.write_text("# All users.\nx = source('n long')\nx -> y\n")
    graph = load(str(file))
    assert Comments().of(graph["x"].span) == "All users."


COLUMNS = """\
# What is paid.
payments = source(
    "user string, "   # who pays; 'ann' say
    # In cents,
    # before tax.
    "amount decimal(10, 2), day date, "  # two of them
    "note array<struct<by: string, at: date>>"  # what was said
)  // all shops

paid = payments -> select(
  "user",
  # As it is in the shop.
  "day",  # when

  # In euros.
  euros=lambda p: p.amount * 100,
  told=lambda p: p.note,
  # Two, again.
  a=lambda p: p.day, b=lambda p: p.amount,
)
paid -> people
payments -> rest
"""
PYTHON = """\
from hydro_core import Flow

flow = Flow()
payments = flow.source(
    "payments",
    "user string, "  # who pays
    # In cents.
    "amount long",
)
big = (
    # Those that count.
    payments.filter(
        # More than that.
        lambda p: p.amount > 10
    )
)
big.sink("big")
"""


def of_columns(text: str, operator: str, *columns: str) -> dict[str, str]:
    graph = parse(text, file="payments.hydro")
    return dict(Comments({"payments.hydro": text}).of_columns(graph[operator].span, columns))


def test_a_comment_inside_of_brackets_is_of_the_column_that_its_line_names():
    assert of_columns(COLUMNS, "payments", "user", "amount", "day", "note") == {
        "user": "who pays; 'ann' say",
        "note": "what was said",
    }
    assert of_columns(COLUMNS, "paid", "user", "euros", "day", "told", "a", "b") == {
        "euros": "In euros.",
        "day": "when",
    }


def test_what_is_said_of_a_column_is_not_said_of_the_statement_and_the_reverse():
    found = said(COLUMNS)
    assert found["payments"] == "all shops"
    assert found["paid"] == found["people"] == found["rest"] == ""
    assert said("x = source('n long')  // of all\n// kept\nx -> y\n") == {
        "x": "of all",
        "y": "kept",
    }


def test_a_column_is_named_as_key_and_in_a_text_of_several_lines():
    text = (
        "x = source('n long')\nx -> map(lambda n: {\n  'twice': n * 2,  # doubled\n"
        "  'n': n})  # all\n-> y\n"
    )
    assert of_columns(text, "map_1", "twice", "n") == {"twice": "doubled"}
    text = 'x = source(\n  # Which.\n  """n long,\n  m long""")\nx -> y\n'
    assert of_columns(text, "x", "n", "m") == {"n": "Which."}


def test_what_a_column_is_computed_from_names_no_column():
    text = (
        "x = source('n long, m long')\nx -> aggregate(\n  by='n',  # which\n"
        "  m=sum('n'),  # how many\n  least=min('m'),  # the least\n) -> y\n"
    )
    assert of_columns(text, "aggregate_1", "n", "m", "least") == {
        "n": "which",
        "m": "how many",
        "least": "the least",
    }


def test_a_call_in_python_has_comments_of_columns(tmp_path):
    file = tmp_path / "paid.py"
    file.write_text(PYTHON)
    compiled = runpy.run_path(str(file))["flow"].check()
    (source,) = compiled.graph.sources.values()
    comments = Comments({"paid.py": PYTHON})
    assert comments.of_columns(source.span, ["user", "amount"]) == {
        "user": "who pays",
        "amount": "In cents.",
    }
    (sink,) = compiled.graph.sinks["big"]
    assert comments.of(sink.span) == "Those that count."
    (kept,) = sink.inputs
    assert comments.of(compiled.graph[kept.node].span) == "Those that count."
