"""Reads the tests of a flow: `tests.yaml` and `test_*.yaml` in its folder.

```yaml
what the test is about:
  flow: totals          # where the folder has more than one
  ticks:
    - in:
        payments:
          - {user: ann, amount: 5}
      out:
        totals:
          - {user: ann, total: 5}
```

A tick without `in` has no data; of what `out` leaves out nothing is expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydro_core.errors import Diagnostic, ProgramError, Span
from hydro_core.lang.similar import did_you_mean
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.yaml_text import Document, YamlValue

YamlRows = Mapping[str, Sequence[YamlValue]]


@dataclass(frozen=True, slots=True)
class WrittenTick:
    """What comes in with a tick, and what is to come out of it."""

    inputs: YamlRows
    outputs: YamlRows
    names: Mapping[str, Span]
    """Where inputs and outputs are named: "in.payments", "out.totals"."""


@dataclass(frozen=True, slots=True)
class WrittenTest:
    name: str
    flow: FlowAsset
    span: Span
    ticks: tuple[WrittenTick, ...]


def files_beside(flow: FlowAsset) -> list[Path]:
    """The files with the tests of the flows in a flow's folder."""
    if flow.folder is None:
        return []
    return sorted({*flow.folder.glob("tests.yaml"), *flow.folder.glob("test_*.yaml")})


def tests_in(file: Path, flows: Sequence[FlowAsset]) -> list[WrittenTest]:
    """The tests of a file, which are about these flows, those of its folder.

    Raises:
        ProgramError: everything that is wrong with how they are written (code `config`).
    """
    document = Document(file)
    top = document.mapping(document.read(), "a file of tests")
    tests = [_test(document, name, value, flows) for name, value in top.items()]
    document.done()
    return [test for test in tests if test is not None]


def _test(
    document: Document, name: str, value: YamlValue, flows: Sequence[FlowAsset]
) -> WrittenTest | None:
    what = f"the test `{name}`"
    found = document.mapping(value, what)
    document.known(found, ("ticks", "flow"), what)
    if "ticks" not in found or not found["ticks"].of:
        cure = "write `ticks: [{in: {input: [row]}, out: {output: [row]}}]`"
        document.wrong(value, f"{what} has no ticks", cure)
        return None
    ticks = tuple(_tick(document, tick) for tick in document.items(found["ticks"], "`ticks`"))
    flow = _flow(document, found.get("flow"), value, flows)
    return None if flow is None else WrittenTest(name, flow, value.span, ticks)


def _flow(
    document: Document, said: YamlValue | None, test: YamlValue, flows: Sequence[FlowAsset]
) -> FlowAsset | None:
    names = [flow.name for flow in flows]
    there = ", ".join(f"`{name}`" for name in names)
    if said is None:
        if len(flows) > 1:
            document.wrong(test, "which flow is this about?", f"say `flow: …`, one of {there}")
            return None
        return flows[0]
    if said.of not in names:
        near = did_you_mean(str(said.of), names)
        document.wrong(said, f"this folder has no flow `{said.of}`", near or f"there are {there}")
        return None
    return flows[names.index(said.of)]


def _tick(document: Document, value: YamlValue) -> WrittenTick:
    found = document.mapping(value, "a tick")
    document.known(found, ("in", "out"), "a tick")
    sides: dict[str, dict[str, Sequence[YamlValue]]] = {"in": {}, "out": {}}
    names: dict[str, Span] = {}
    for side, rows in sides.items():
        named = document.mapping(found.get(side, value), f"`{side}`") if side in found else {}
        for name, items in named.items():
            rows[name] = document.items(items, f"`{name}`")
            names[f"{side}.{name}"] = items.span
    return WrittenTick(sides["in"], sides["out"], names)


def unknown_names(
    test: WrittenTest, inputs: Sequence[str], outputs: Sequence[str]
) -> Iterator[Diagnostic]:
    """What the test names that the program does not have."""
    for tick in test.ticks:
        for what, rows, known in (("in", tick.inputs, inputs), ("out", tick.outputs, outputs)):
            for name in rows:
                if name not in known:
                    says = f"the program has no {what}put `{name}`"
                    there = ", ".join(f"`{n}`" for n in known) or "none"
                    cure = did_you_mean(name, known) or f"there are {there}"
                    yield Diagnostic("config", says, tick.names[f"{what}.{name}"], help=cure)


def refuse(problems: Sequence[Diagnostic]) -> None:
    """Raises what is wrong, if anything is."""
    if problems:
        raise ProgramError(*problems)
