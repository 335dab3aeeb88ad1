"""What a program says of its statements."""

from __future__ import annotations

from hydro_core.lang.comments import Comments
from hydro_core.lang.load import load
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
