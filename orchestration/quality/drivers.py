"""Which inputs give the keys of a sample: by what of their rows it is known what can matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.steps import Steps
from hydro_core.analysis.slices import all_columns, slice_of
from hydro_core.types.item import FieldPath


class Driver(NamedTuple):
    """An input whose rows give keys: fields of the output by the input's that they come from."""

    input: str
    fields: Mapping[FieldPath, FieldPath]


Drivers = Mapping[str, Sequence[Driver]]
"""Of each output the inputs that give keys; one that has none cannot be judged by a sample."""


def drivers_of(program: Typed, steps: Steps) -> Drivers:
    """The drivers of a program's outputs."""
    found = {name: tuple(_drivers(program, name, steps)) for name in program.outputs}
    return {name: drivers for name, drivers in found.items() if drivers}


def _drivers(program: Typed, output: str, steps: Steps) -> Iterator[Driver]:
    """Inputs of which a value that an output's row has tells what can matter, on all ways."""
    columns = all_columns(program, output)
    known = {of: path for path, of in columns.items()}
    for name, needs in slice_of(program, output, columns, steps).inputs.items():
        ways = [
            {known[of]: path for path, of in sorted(need.conditions, key=repr) if of in known}
            for need in sorted(needs, key=repr)
        ]
        if ways and all(ways):
            yield from (Driver(name, fields) for fields in ways)
