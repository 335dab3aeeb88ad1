"""Errors as a page: `docs/errors.md` is what `page()` gives, from where they are made."""

from __future__ import annotations

from hydro_core.errors import CODES
from tools.error_sentences import ErrorSentence, error_sentences

_HEAD = """\
# Errors

Written by `make docs` from where errors are made. What stands in braces is put in when an error is
told. `--format json` has the code, the sentence, the place, the operator and the cure of each;
[language.md](language.md#error-codes) has programs with errors of the codes about programs.
"""


def page() -> str:
    """The whole page, in Markdown."""
    found = error_sentences()
    parts = [_HEAD]
    for code, says in CODES.items():
        rows = "".join(_row(one) for one in found if one.code == code)
        parts.append(f"## {code}\n\n{says}\n")
        parts.append(f"| error | what helps |\n| --- | --- |\n{rows}")
    return "\n".join(parts)


def _row(one: ErrorSentence) -> str:
    return f"| {_cell(one.message)} | {_cell(one.cure)} |\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").strip()
