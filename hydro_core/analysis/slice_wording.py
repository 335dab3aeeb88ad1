"""Slices in words: what of each input can matter, and why where all of it can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.slices import FOREVER, Known, Need, OutputSlice, all_columns, slice_of
from hydro_core.catalog.spec import Never, OnAnyField, OnKey, Replicated
from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Node, NodeId
from hydro_core.lang.similar import did_you_mean
from hydro_core.types.item import FieldPath, ItemType, Tuple, at


@dataclass(frozen=True, slots=True)
class SliceAnswer:
    """What of each input can matter for rows of an output with given values in some columns."""

    slice: OutputSlice
    columns: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For each input the alternatives: of which columns each asks for values.

        An input of which all can matter has `{}`; one of which nothing can has no alternatives.
        """
        return {
            name: [
                {path_name(path): _source(of) for path, of in sorted(need.conditions, key=repr)}
                for need in sorted(needs, key=repr)
            ]
            for name, needs in self.slice.inputs.items()
        }

    def __str__(self) -> str:
        head = f"What can matter for rows of {self.slice.output} with given {_and(self.columns)}:"
        inputs = self.slice.inputs
        return "\n".join([head, *(f"  {name}: {in_words(self.slice, name)}" for name in inputs)])


def slice_answer(typed: Typed, output: str, columns: Sequence[str]) -> SliceAnswer:
    """What of each input can matter for rows of an output with given values in some columns.

    Raises:
        ProgramError: there is no such output, or no such column (code `name`).
    """
    paths = [column_of(typed, output, column) for column in columns]
    known = all_columns(typed, output)
    where = {path: known[path] for path in paths}
    return SliceAnswer(slice_of(typed, output, where), tuple(columns))


def column_of(typed: Typed, output: str, column: str) -> FieldPath:
    """The field of an output's items that a column's name says: `user`, `_1`, `_2.city`, `item`.

    Raises:
        ProgramError: there is no such output, or no such column (code `name`).
    """
    if output not in typed.outputs:
        listed = ", ".join(f"`{name}`" for name in typed.outputs)
        cure = did_you_mean(output, typed.outputs) or f"the outputs are {listed}"
        raise ProgramError.of("name", f"there is no output `{output}`", help=cure)
    names = {
        path_name(path, typed.outputs[output].item): path for path in all_columns(typed, output)
    }
    if column not in names:
        listed = ", ".join(f"`{name}`" for name in names)
        cure = did_you_mean(column, names) or f"its columns are {listed}"
        message = f"the output `{output}` has no column `{column}` that holds one value"
        raise ProgramError.of("name", message, help=cure)
    return names[column]


def path_name(path: FieldPath, item: ItemType | None = None) -> str:
    """A field as a column is named; places in tuples, where the item is known, from `_1` on."""
    parts: list[str] = []
    for i, step in enumerate(path):
        is_place = item is not None and isinstance(at(item, path[:i]), Tuple)
        parts.append(f"_{int(step) + 1}" if is_place else step)
    return ".".join(parts) or "item"


def in_words(found: OutputSlice, name: str) -> str:
    """Which rows of an input can matter."""
    needs = sorted(found.inputs[name], key=repr)
    if not needs:
        return "none of its rows can matter"
    item = next(s.item for s in found.steps.sources.values() if s.name == name)
    blocker = found.blocker(name)
    if not all(need.conditions for need in needs):
        age = max(need.age for need in needs)
        because = "" if blocker is None else f": {_reason(blocker)}"
        return f"all rows{_since(age)} can matter{because}"
    return "; or ".join(f"rows{_since(n.age)} {_conditions(found, n, item)}" for n in needs)


def _conditions(found: OutputSlice, need: Need, item: ItemType) -> str:
    parts, looked = [], dict[NodeId, list[str]]()
    for path, of in sorted(need.conditions, key=repr):
        name = f"`{path_name(path, item)}`"
        if isinstance(of, Known):
            parts.append(_known(name, of))
        else:
            looked.setdefault(of.edge[0], []).append(name)
    known = [f"with {_and(parts)}"] if parts else []
    asked = [
        f"whose {_and(names)} {_who(found.steps.of[node].node)} looks for"
        for node, names in looked.items()
    ]
    return _and([*known, *asked])


def _known(name: str, of: Known) -> str:
    match of.values:
        case ():
            return f"that {name}"
        case (value,):
            return f"{name} = {'null' if value is None else value}"
        case _:
            return f"one of {len(of.values)} values of {name}"


def _source(of: Any) -> str:
    return of.column if isinstance(of, Known) else f"looked for by {of.edge[0]}"


def _since(age: int) -> str:
    if age == 0:
        return " of the tick"
    return " of any tick up to it" if age >= FOREVER else f" of the last {age + 1} ticks"


def _reason(node: Node) -> str:
    """Why the operator can need all items for any of its results."""
    who = _who(node)
    match node.spec.partition:
        case Never(why):
            return f"{who}: {why}"
        case Replicated(port):
            return f"{who} needs the whole of its input `{port}`"
        case OnKey() | OnAnyField():
            key = node.args.get("by") or node.args.get("on") or ()
            named = f" {_and([f'`{name}`' for name in key])}" if key else " its key"
            return f"{who} brings together what is equal in{named}, and no value is asked for there"
        case _:
            return f"{who} computes what is asked for, so its input cannot be told apart by it"


def _and(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _who(node: Node) -> str:
    place = "" if node.span is None else f" in line {node.span.line}"
    return f"`{node.op.name}`{place}"
