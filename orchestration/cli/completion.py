"""`hydrotick completion SHELL`: what a shell needs to complete the words of `hydrotick`.

The script asks `hydrotick complete` at a press of the key, which reads the table of commands, and
looks up flows and outputs. So that imports neither Dagster nor Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hydro_core.cli.command import Asked, Command, Word
from hydro_core.cli.main import commands
from hydro_core.cli.output import Result
from hydro_core.errors import HydroError

from ..project import project

_BASH = """\
_hydrotick() {
    local IFS=$'\\n' cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=($(compgen -W "$(hydrotick complete "${COMP_WORDS[@]:1:COMP_CWORD}" \
        2>/dev/null)" -- "$cur"))
}
complete -o default -F _hydrotick hydrotick
"""
_ZSH = """\
#compdef hydrotick
_hydrotick() {
    local -a found
    found=(${(f)"$(hydrotick complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _hydrotick ]]; then _hydrotick; else compdef _hydrotick hydrotick; fi
"""
_FISH = """\
function _hydrotick
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l found (hydrotick complete $before[2..-1] "$current" 2>/dev/null)
    if set -q found[1]
        string join \\n -- $found
    else
        __fish_complete_path $current
    end
end
complete -c hydrotick -f -a '(_hydrotick)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(options: Asked) -> Result:
    return Result(text=SCRIPTS[options.shell])


def complete(options: Asked) -> Result:
    return Result(text=candidates(commands(), options.words))


def candidates(table: Mapping[str, Command], words: Sequence[str]) -> list[str]:
    """What the last of the words, which may be empty, can become; nothing: it may be any file.

    Args:
        table: the commands by name.
        words: those after `hydrotick` up to the cursor.
    """
    *before, current = words or [""]
    if not before:
        return _beginning(table, current)
    of = table.get(before[0])
    if of is None:
        return []
    options = {one.name: one for one in of.arguments if one.is_option}
    last = options.get(before[-1])
    if last is not None and not last.is_switch:
        return _beginning(last.choices, current)
    if current.startswith("-"):
        return _beginning([*options, "--help"], current)
    given = _given(options, before[1:])
    places = [one for one in of.arguments if not one.is_option]
    if len(given) >= len(places) and not (places and places[-1].repeated):
        return []
    place = places[min(len(given), len(places) - 1)]
    try:
        return _beginning(place.choices or _there(place.name, before[0], given), current)
    except HydroError:
        # The command itself says what is wrong with the project.
        return []


def _given(options: Mapping[str, Word], words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    given, is_value = [], False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith("-"):
            is_value = word in options and not options[word].is_switch
        else:
            given.append(word)
    return given


def _there(place: str, command: str, given: Sequence[str]) -> Iterable[str]:
    if place == "FLOW" or (place == "FILE" and command == "simulate"):
        return project.current().names
    if place == "OUTPUT" and given:
        from hydro_core.project.program import written_graph

        flows = {flow.name: flow for flow in project.current().flows}
        flow = flows.get(given[0])
        return written_graph(flow).sinks if flow else ()
    return ()


def _beginning(words: Iterable[str], current: str) -> list[str]:
    return [word for word in words if word.startswith(current)]
