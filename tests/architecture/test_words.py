"""The check of words counts what the glossary replaces, in prose and in names, and nothing else."""

import json
import textwrap

from tools.check_words import ALLOWED, WORDS, findings

MODULE = textwrap.dedent(
    '''
    """What is told of rows."""

    class Kept:
        """Rows that are stored."""

    class KeptRows:
        """Reports late rows. Whether these count says `late`."""

    def of(rows):
        found = rows
        # Nobody reads the slot.
        print("told")
        if rows:
            return found
        return None

    def total(rows):
        found = sum(rows)
        return found
    '''
)


def test_words_sentences_and_names_are_found_where_they_stand():
    kinds = [(finding.line, finding.kind) for finding in findings(MODULE)]
    assert sorted(kinds) == [
        (2, "sentences that begin with What, Who, Whether"),
        (2, "told"),
        (4, "classes called by a participle"),
        (8, "sentences that begin with What, Who, Whether"),
        (10, "functions called of, made, by …"),
        (11, "locals called `found` over more than 3 lines"),
        (12, "of which|whoever|nobody|somebody"),
        (12, "slots?"),
    ]


def test_the_list_names_only_kinds_that_the_check_knows():
    own = {kind for kind in json.loads(ALLOWED.read_text()) if kind not in WORDS}
    assert all(kind.startswith(("sentences", "classes", "functions", "locals")) for kind in own)
