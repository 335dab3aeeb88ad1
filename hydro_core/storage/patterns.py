"""Patterns of names in a store, as a shell has them: `*`, `**`, `?` and `[…]`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from hydro_core.storage.remote import Remote

WILD = frozenset("*?[")


def fixed_part(pattern: Remote) -> Remote:
    """The folder that a pattern begins with, before its first sign."""
    parts = []
    for part in pattern.parts[:-1]:
        if WILD & set(part):
            break
        parts.append(part)
    return Remote(pattern.scheme, pattern.bucket, "/".join(parts), pattern.settings)


def matching(pattern: Remote) -> Iterator[Remote]:
    """The files that a pattern matches, and those below folders that it matches."""
    matches = re.compile(_expression(pattern.parts))
    for file in fixed_part(pattern).files():
        parts = file.parts
        for count, above in enumerate(accumulate(parts, "{}/{}".format), 1):
            if matches.fullmatch(above):
                if not any(part[0] in "_." for part in parts[count:]):
                    yield file
                break


def _expression(parts: tuple[str, ...]) -> str:
    found = []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            # No folder, or some, none of which is hidden.
            found.append("(?:[^./][^/]*/)*" + ("[^./][^/]*" if last else ""))
        else:
            found.append(_of_part(part) + ("" if last else "/"))
    return "".join(found)


def _of_part(part: str) -> str:
    hidden = "" if part.startswith(".") else r"(?!\.)"
    found, at = [hidden if WILD & set(part) else ""], 0
    while at < len(part):
        sign, end = part[at], part.find("]", at + 2)
        if sign == "[" and end > 0:
            among = part[at + 1 : end]
            no = "^" if among.startswith("!") else ""
            found.append(f"[{no}{_quoted(among.removeprefix('!'))}]")
            at = end
        else:
            found.append({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)))
        at += 1
    return "".join(found)


def _quoted(among: str) -> str:
    return re.sub(r"([\\^\]])", r"\\\1", among)
