"""What a user may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from hydro_core.errors import ProgramError


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A question after the likeliest of the known words, None where none is near.

    >>> did_you_mean("persits", ["prev", "persist", "map"])
    'did you mean `persist`?'
    """
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None


def no_such_input(name: str, known: Iterable[str]) -> ProgramError:
    there = list(known)
    cure = did_you_mean(name, there) or f"the inputs are {', '.join(there) or 'none'}"
    return ProgramError.of("input", f"`{name}` is not an input", help=cure)
