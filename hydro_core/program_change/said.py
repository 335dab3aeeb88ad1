"""Whether two programs say the same, however they are written."""

from __future__ import annotations

from hydro_core.analysis.infer import Typed
from hydro_core.ir.graph import Endpoint
from hydro_core.plan.semantic_hash import hash_of, program_hashes
from hydro_core.types.item import StreamType

Said = tuple[dict[str, StreamType], dict[str, tuple[StreamType, tuple[str, ...]]]]


def said(typed: Typed) -> Said:
    """What a program says: the types of its inputs, and each output's type and semantic hash.

    Two programs that say the same have the same outputs at every tick. Names of streams, places in
    a file and the spelling of functions do not count. No optimizer is needed, and less is found
    than by it: programs that say different things may be equal all the same.
    """
    found = program_hashes(typed)
    inputs = {name: typed.types[Endpoint(node.id)] for name, node in typed.graph.sources.items()}
    outputs = {
        name: (
            typed.outputs[name],
            tuple(sorted(hash_of(sink.inputs[0], found) for sink in sinks)),
        )
        for name, sinks in typed.graph.sinks.items()
    }
    return inputs, outputs
