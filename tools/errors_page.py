"""Errors as a page: `docs/errors.md` is what `page()` gives, from where errors are raised.

The page has a row for each sentence. Sentences that differ only in the names of the values put into
them are one row, and so are a sentence and the same one with words around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hydro_core.errors import CODES
from tools.error_sentences import ErrorSentence, error_sentences

_HEAD = """\
# Errors

Written by `make docs` from where errors are raised. Braces stand for values of the case at hand.
`--format json` has the code, the sentence, the place, the operator and the help of each;
[language.md](language.md#error-codes) has programs with errors of the codes about programs.
"""
_VALUE = re.compile(r"\{[^{}]*\}")
_INNER = "{message}"


def page() -> str:
    """The whole page, in Markdown."""
    sentences = error_sentences()
    parts = [_HEAD]
    for code, meaning in CODES.items():
        rows = "".join(_rows(one for one in sentences if one.code == code))
        parts.append(f"## {code}\n\n{meaning}\n")
        parts.append(f"| error | help |\n| --- | --- |\n{rows}")
    return "\n".join(parts)


def _rows(sentences: Iterable[ErrorSentence]) -> Iterator[str]:
    """A row for each sentence of one code, with the help of every place that raises it."""
    messages: dict[str, str] = {}
    cures: dict[str, dict[str, None]] = {}
    for one in sentences:
        form = _VALUE.sub("{}", one.message)
        messages.setdefault(form, one.message)
        cures.setdefault(form, {})
        if _VALUE.sub("", one.cure).strip():
            cures[form][one.cure] = None
    for form in _without_words_around(messages):
        yield f"| {_cell(messages[form])} | {'; or '.join(map(_cell, cures[form]))} |\n"


def _without_words_around(messages: dict[str, str]) -> list[str]:
    """The forms, apart from those that are another form within the words of a third.

    `{message}, but the statement ends` stands for all sentences that may have this end.
    """
    frames = [text.split(_INNER) for text in messages.values() if text.count(_INNER) == 1]
    return [
        form
        for form, text in messages.items()
        if not any(
            _VALUE.sub("{}", text.removeprefix(before).removesuffix(after)) in messages
            for before, after in frames
            if text.startswith(before) and text.endswith(after) and before + after
        )
    ]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").strip()
