"""`hydrotick completion SHELL`: what a shell needs to complete the words of `hydrotick`.

The script holds a table of the commands' words, read from their `--help`; flows and outputs are
looked up when they are asked for. So a press of the key imports neither Dagster nor Spark.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from hydro_core.cli import output
from hydro_core.cli.main import commands, main
from hydro_core.errors import HydroError

from ..project import project

_AT = "at"
_OPTION = re.compile(r"(--[a-z][\w-]*)(?:[ =](\{[^}]*\}|[A-Z][^\s\]]*))?")
_SHORT = re.compile(r"\[-h\]")

_BASH = """\
_hydrotick_table={table}
_hydrotick() {{
    local IFS=$'\\n' cur=${{COMP_WORDS[COMP_CWORD]}}
    COMPREPLY=($(compgen -W "$(hydrotick completion at "$_hydrotick_table" \\
        "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)" -- "$cur"))
}}
complete -o default -F _hydrotick hydrotick
"""
_ZSH = """\
#compdef hydrotick
_hydrotick_table={table}
_hydrotick() {{
    local -a found
    found=(${{(f)"$(hydrotick completion at "$_hydrotick_table" \\
        "${{(@)words[2,CURRENT]}}" 2>/dev/null)"}})
    if (( $#found )); then compadd -a found; else _files; fi
}}
if [[ $funcstack[1] == _hydrotick ]]; then _hydrotick; else compdef _hydrotick hydrotick; fi
"""
_FISH = """\
set -g _hydrotick_table {table}
function _hydrotick
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l found (hydrotick completion at $_hydrotick_table $before[2..-1] $current 2>/dev/null)
    if set -q found[1]
        string join \\n -- $found
    else
        __fish_complete_path $current
    end
end
complete -c hydrotick -f -a '(_hydrotick)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@dataclass(frozen=True, slots=True)
class Words:
    """The words that a command takes."""

    options: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    """By each option the values that it may have; none if any, None if it takes no value."""
    places: Sequence[str] = ()
    """What stands at the places of the other words: FLOW, FILE, …; or the choices of one."""


def completion(arguments: Sequence[str]) -> int:
    """Prints the script by which a shell completes commands, options, flows and outputs."""
    if arguments[:1] == [_AT]:
        table = {name: Words(**words) for name, words in json.loads(arguments[1]).items()}
        for word in candidates(table, arguments[2:]):
            output.print_text(word)
        return 0
    parser = argparse.ArgumentParser(
        prog="hydrotick completion",
        description=completion.__doc__,
        epilog="In bash: `source <(hydrotick completion bash)`; in zsh the same with `zsh`; in "
        "fish: `hydrotick completion fish | source`.",
    )
    parser.add_argument("shell", metavar="{bash,zsh,fish}", choices=SCRIPTS, help="which shell")
    shell = parser.parse_args(arguments).shell
    words = json.dumps({name: asdict(found) for name, found in table_of_words().items()})
    output.write(SCRIPTS[shell].format(table=_quoted(words, shell)))
    return 0


def table_of_words() -> dict[str, Words]:
    """The words of every command, read from its help."""
    return {name: words_of(_help(name)) for name in sorted(commands())}


def words_of(text: str) -> Words:
    """The words that a command takes, by the first paragraph of its help."""
    usage = " ".join(text.partition("\n\n")[0].split())
    usage = re.sub(r"^usage: hydrotick \S+ ?", "", _SHORT.sub("", usage))
    options: dict[str, Sequence[str] | None] = {}
    for name, value in _OPTION.findall(usage):
        choices = value[1:-1].split(",") if value.startswith("{") else []
        options[name] = choices if value else None
    left = re.sub(r"[][|]|\.\.\.", " ", _OPTION.sub(" ", usage)).split()
    return Words({**options, "--help": None}, list(dict.fromkeys(left)))


def candidates(table: Mapping[str, Words], words: Sequence[str]) -> list[str]:
    """What the last of the words, which may be empty, can become; nothing: it may be any file.

    Args:
        words: those after `hydrotick` up to the cursor.
    """
    *before, current = words or [""]
    if not before:
        return _beginning(table, current)
    of = table.get(before[0])
    if of is None:
        return []
    values = of.options.get(before[-1]) if before[-1].startswith("-") else None
    if values is not None:
        return _beginning(values, current)
    if current.startswith("-"):
        return _beginning(of.options, current)
    given = _given(of, before[1:])
    if len(given) >= len(of.places):
        return []
    place = of.places[len(given)]
    if place.startswith("{"):
        return _beginning(place[1:-1].split(","), current)
    try:
        return _beginning(_there(place, before[0], given), current)
    except HydroError:
        # The command itself says what is wrong with the project.
        return []


def _given(of: Words, words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    given, value = [], False
    for word in words:
        if value:
            value = False
        elif word.startswith("-"):
            value = of.options.get(word) is not None
        else:
            given.append(word)
    return given


def _there(place: str, command: str, given: Sequence[str]) -> Iterable[str]:
    """The flows or the outputs that there are."""
    if place == "FLOW" or (place == "FILE" and command == "simulate"):
        return project.current().names
    if place == "OUTPUT" and given:
        from hydro_core.lang.load import load
        from hydro_core.project.discover import place_of
        from hydro_core.project.program import params_given

        flows = {flow.name: flow for flow in project.current().flows}
        flow = flows.get(given[0])
        return load(place_of(flow), params_given(flow)).sinks if flow else ()
    return ()


def _beginning(words: Iterable[str], current: str) -> list[str]:
    return [word for word in words if word.startswith(current)]


def _help(command: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    return printed.getvalue()


def _quoted(text: str, shell: str) -> str:
    if shell == "fish":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return shlex.quote(text)
