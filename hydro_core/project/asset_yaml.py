"""Reads an `asset.yaml` into the `FlowAsset` that it means.

What it says is judged by itself here, with the line; `check` judges it against the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

from hydro_core.errors import ProgramError, Span
from hydro_core.lang.params import params_of
from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import conf_of, wrong_conf, wrong_master
from hydro_core.project.flow_asset import (
    Bound,
    Expect,
    FlowAsset,
    FlowOutput,
    FlowSpark,
    KeptOutput,
    Landing,
    OnError,
    Shards,
    Ticks,
)
from hydro_core.project.yaml_text import Document, YamlValue
from hydro_core.types.values import WrittenFloat, iso_moment

Kinds = Mapping[str, Callable[[Any], Any]]


def flow_of_yaml(file: Path) -> FlowAsset:
    """The flow that a file declares; its name is that of the folder.

    Raises:
        ProgramError: everything that is wrong with the file (code `config`).
    """
    document = Document(file)
    top = document.mapping(document.read(), "a flow")
    document.known(top, _PARTS, "a flow")
    needed = [name for name in ("program", "ticks", "inputs") if name not in top]
    if needed:
        listed = ", ".join(f"`{name}`" for name in needed)
        where = YamlValue(None, Span(str(file), 1, 1, 1, 2))
        document.wrong(where, f"{listed}: a flow needs it, and it is missing", _EXAMPLE)
    said = {name: value for name, value in top.items() if name in _SAID}
    given = document.fields(said, _SAID, "a flow")
    for name in top:
        if name in _READ:
            given[name] = _READ[name](document, top[name])
    document.done()
    return FlowAsset(
        name=file.parent.name, folder=file.parent, places=dict(_places(top, given)), **given
    )


def _ticks(document: Document, value: YamlValue) -> Ticks | None:
    found = document.mapping(value, "`ticks`")
    made = document.fields(found, _TICKS, "`ticks`")
    if "start" not in found:
        document.wrong(value, "`ticks` has no `start`", "say when the first tick begins")
    return Ticks(**made) if "start" in made else None


def _inputs(document: Document, value: YamlValue) -> dict[str, Landing | FlowOutput]:
    inputs: dict[str, Landing | FlowOutput] = {}
    for name, landing in document.mapping(value, "`inputs`").items():
        found = document.mapping(landing, f"the input `{name}`")
        if "flow" in found:
            made = document.fields(found, _FLOW_OUTPUT, f"the input `{name}`")
            if "flow" in made:
                inputs[name] = FlowOutput(**{"output": name, **made})
            continue
        made = document.fields(found, _LANDING, f"the input `{name}`")
        if "path" not in found:
            cure = (
                f"say where it lands: `{name}: {{path: {name}, column: day}}`; or of which flow it "
                f"is an output: `{name}: {{flow: NAME, output: {name}}}`"
            )
            document.wrong(landing, f"the input `{name}` has no `path`", cure)
        if "path" in made:
            inputs[name] = Landing(**made)
    return inputs


def _expect(document: Document, value: YamlValue) -> dict[str, tuple[Expect, ...]]:
    expected = {}
    for output, entries in document.mapping(value, "`expect`").items():
        expects = []
        for entry in document.items(entries, f"what is expected of `{output}`"):
            found = document.mapping(entry, f"what is expected of `{output}`")
            made = document.fields(found, _EXPECT, f"what is expected of `{output}`")
            if "column" not in found:
                document.wrong(entry, f"of which column of `{output}`?", "say `column: …`")
            if "column" in made:
                expects.append(Expect(**made))
        expected[output] = tuple(expects)
    return expected


def _shards(document: Document, value: YamlValue) -> Shards | None:
    if isinstance(value.of, int):
        return Shards(**document.fields({"count": value}, _SHARDS, "`shards`"))
    found = document.mapping(value, "`shards`, if it is no number,")
    simple = {name: inner for name, inner in found.items() if name != "on"}
    made = document.fields(simple, _SHARDS, "`shards`")
    on = document.mapping(found["on"], "`on` of `shards`") if "on" in found else {}
    made["on"] = document.fields(on, dict.fromkeys(on, _names), "`on` of `shards`")
    if "count" not in found and isinstance(value.of, dict):
        document.wrong(value, "`shards` has no `count`", "such as `shards: 4`, if no more is said")
    return Shards(**made) if "count" in made else None


def _spark(document: Document, value: YamlValue) -> FlowSpark:
    found = document.mapping(value, "`spark`")
    document.known(found, ("conf", "master"), "`spark`")
    master = found["master"].plain if "master" in found else None
    wrong = None if master is None else wrong_master(str(master))
    if wrong is not None:
        document.wrong(found["master"], f"`master` is {wrong[0]}", wrong[1])
        return FlowSpark()
    if "conf" not in found:
        return FlowSpark(master=master)
    conf = document.mapping(found["conf"], "`conf` of `spark`")
    said = {name: inner.plain for name, inner in conf.items()}
    wrong = wrong_conf(said)
    if wrong is not None:
        document.wrong(found["conf"], f"`conf` is {wrong[0]}", wrong[1])
        return FlowSpark()
    return FlowSpark(conf_of(said), master)


def _params(document: Document, value: YamlValue) -> Mapping[str, Any]:
    found = document.mapping(value, "`params`")
    try:
        given = {name: inner.plain for name, inner in found.items()}
        return params_of(given, {name: inner.span for name, inner in found.items()}).values
    except ProgramError as error:
        document.problems += error.diagnostics
        return {}


def _outputs(document: Document, value: YamlValue) -> dict[str, str | KeptOutput]:
    outputs: dict[str, str | KeptOutput] = {}
    for name, said in document.mapping(value, "`outputs`").items():
        what = f"the output `{name}`"
        if not isinstance(said.of, dict):
            outputs |= document.fields({name: said}, {name: _text}, what)
            continue
        made = document.fields(document.mapping(said, what), _OUTPUT, what)
        outputs[name] = KeptOutput(**{"as_" if n == "as" else n: x for n, x in made.items()})
    return outputs


def _texts(document: Document, value: YamlValue) -> dict[str, str]:
    found = document.mapping(value, "this")
    return document.fields(found, dict.fromkeys(found, _text), "this")


def _places(top: Mapping[str, YamlValue], given: Mapping[str, Any]) -> Iterator[tuple[str, Span]]:
    """Where each part stands, by the name that `check` has for it."""
    for part, value in top.items():
        yield part, value.span
        if isinstance(value.of, dict):
            for name, inner in value.of.items():
                yield f"{part}.{name}", inner.span
                if part == "inputs" and isinstance(inner.of, dict):
                    yield from ((f"{part}.{name}.{n}", x.span) for n, x in inner.of.items())
    for output, expects in given.get("expect", {}).items():
        entries = top["expect"].of[output].of
        for expect, entry in zip(expects, entries or (), strict=True):
            where = f"expect.{output}.{expect.column}"
            yield where, entry.span
            yield from ((f"{where}.{n}", x.span) for n, x in entry.of.items())


def _kind(fits: Callable[[Any], bool], what: str, cure: str) -> Callable[[Any], Any]:
    """The kind of a value that stays as it is; see `Document.fields`."""

    def kind(value: Any) -> Any:
        if not fits(value):
            raise ValueError(what, cure)
        return value

    return kind


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        value = iso_moment(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    raise ValueError("a date or a time", _TIMES)


def _on_error(value: Any) -> OnError:
    allowed = value.get("quarantine") if isinstance(value, dict) and len(value) == 1 else None
    if isinstance(allowed, bool) or not isinstance(allowed, int) or allowed < 1:
        what = "how many wrong rows a tick may have, 1 or more"
        raise ValueError(what, "such as `{quarantine: 100}`, or leave `on_error` out")
    return OnError(allowed)


def _bound(value: Any) -> Any:
    # Its digits count where the column is one of decimals.
    return Decimal(repr(value)) if isinstance(value, WrittenFloat) else _compared(value)


def _choices(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list) or any(isinstance(x, list | dict) for x in value):
        raise ValueError("a list of values", "such as `[EWR, JFK]`")
    return tuple(_bound(x) for x in value)


def _listed(what: str, cure: str) -> Callable[[Any], tuple[str, ...]]:
    """The kind of a text, or of a list of texts."""

    def listed(value: Any) -> tuple[str, ...]:
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(x, str) for x in found):
            raise ValueError(what, cure)
        return tuple(found)

    return listed


def _program(value: Any) -> Path | str:
    text = _text(value)
    return Path(text) if text.endswith(PROGRAMS) else text


def _of_fields(of: type) -> Kinds:
    """A kind for each field of a declaration, by its type."""
    return {name: _OF_TYPES.get(hint, _text) for name, hint in get_type_hints(of).items()}


_text = _kind(lambda value: isinstance(value, str), "a text", "write it in quotes")
_flag = _kind(lambda value: isinstance(value, bool), "true or false", "write one of them")
_count = _kind(
    lambda value: type(value) is int and value >= 0, "a number, 0 or more", "such as `8`"
)
_compared = _kind(
    lambda value: isinstance(value, int | float | date | str),
    "a number, a date, a time or a text",
    "such as `0` or `2026-01-01`",
)
_kept_as = _kind(
    lambda value: value in ("log", "table", "append"),
    "log, table or append",
    "`table` is the output as of the last tick",
)
_names = _listed("a name or a list of names", "such as `user`, or `[user, day]`")
_TIMES = "such as `2026-01-01`, `2026-01-01 06:00` or `2026-01-01T06:00+01:00`"
_EXAMPLE = (
    "such as `program: totals.hydro`, `ticks: {start: 2026-01-01, every: 1d}` and "
    "`inputs: {payments: {path: payments, column: day}}`"
)
_OF_TYPES: Mapping[Any, Callable[[Any], Any]] = {
    bool: _flag,
    int: _count,
    datetime: _moment,
    datetime | None: _moment,
    Bound: _bound,
    tuple[str, ...]: _names,
    tuple[Any, ...]: _choices,
    OnError | None: _on_error,
}
_TICKS, _LANDING, _FLOW_OUTPUT = _of_fields(Ticks), _of_fields(Landing), _of_fields(FlowOutput)
_EXPECT = _of_fields(Expect)
_OUTPUT: Kinds = {"as": _kept_as, "description": _text}
_SHARDS: Kinds = {"count": _count, "replicate": _names}
_SAID: Kinds = {
    "program": _program,
    "description": _text,
    "owners": _listed("a list of texts", "such as `[ann@example.org, team:data]`"),
    "sample_keys": _count,
    "on_error": _on_error,
}
_READ = {
    "shards": _shards,
    "spark": _spark,
    "params": _params,
    "ticks": _ticks,
    "inputs": _inputs,
    "expect": _expect,
    "schemas": _texts,
    "outputs": _outputs,
}
_PARTS = (*_SAID, *_READ)
