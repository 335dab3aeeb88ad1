"""Judges what an asset folder declares, before anything of it runs: against itself and its program.

All that is wrong is told at once, each with where it stands in the asset and what was likely meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args, get_origin, get_type_hints

from hydro_core.errors import Diagnostic, HydroError, ProgramError, TypeProblem
from hydro_core.files.local_path import place_at
from hydro_core.lang.source import did_you_mean
from hydro_core.machine.environment import wrong_master
from hydro_core.machine.spark_conf import wrong_conf
from hydro_core.project.expected import expected_problems
from hydro_core.project.flow_asset import Expect, FlowAsset, FlowOutput, Landing, Shards
from hydro_core.project.yaml_text import is_within_project
from hydro_core.settings import MOST_SHARDS
from hydro_core.storage.settings import StorageSettings
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    WRONG,
    ItemType,
    Row,
    declared_columns,
    required_columns,
)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PROGRAM = re.compile(r"[^\0]+\.(hydro|dl|py)")
_FLOW = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")
_DDL = "such as `user string, amount long`"
_OWNER = re.compile(r"[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]+|team:\S+")

Problems = Iterator[Diagnostic]


def check_alone(flow: FlowAsset) -> None:
    """Judges what can be judged without the program: its place, the name, the owners, the ticks.

    Raises:
        ProgramError: everything that is wrong (code `config`).
    """
    of_spark = _spark_conf(flow)
    _raise([*_name(flow), *_program(flow), *_owners(flow), *_count(flow), *_ticks(flow), *of_spark])


def check_declaration(flow: FlowAsset, inputs: Iterable[str], outputs: Iterable[str]) -> None:
    """Judges what can be judged by the names of the program's inputs and outputs.

    Raises:
        ProgramError: everything that is wrong (code `config`).
    """
    sources, sinks = tuple(inputs), tuple(outputs)
    _raise(
        [
            *_name(flow),
            *_owners(flow),
            *_sample(flow),
            *_shards(flow, sources),
            *_ticks(flow),
            *_inputs(flow, sources),
            *_wrong_rows(flow),
            *_schemas(flow, sources),
            *_known(flow, "outputs", flow.outputs, "output", sinks),
            *_known(flow, "expect", flow.expect, "output", sinks),
        ]
    )


def check_types(
    flow: FlowAsset, inputs: Mapping[str, ItemType], outputs: Mapping[str, ItemType]
) -> None:
    """Judges what is said of the columns of inputs and outputs, whose items have these types: which
    ones files may lack, which tell the time of events, and what is expected.

    Raises:
        ProgramError: everything that is wrong (code `config`).
    """
    _raise(list(_optional(flow, inputs)))
    _raise(list(_events(flow, inputs)))
    _raise(
        [
            problem
            for output, expected in flow.expect.items()
            for expect in expected
            for problem in _expect(flow, output, expect, outputs[output])
        ]
    )


def _events(flow: FlowAsset, inputs: Mapping[str, ItemType]) -> Problems:
    for name, landing in flow.landings.items():
        if landing.event is None or name not in inputs:
            continue
        item, place = inputs[name], f"inputs.{name}.event"
        fields = item.fields if isinstance(item, Row) else ()
        columns = {field.name: field.type for field in fields if field.name not in WRONG}
        if landing.event not in columns:
            message = f"the program declares no column `{landing.event}` of it"
            yield flow.problem_at(place, message, _choice(landing.event, columns))
        elif columns[landing.event] not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            message = f"`{landing.event}` is {columns[landing.event]}, which is no time"
            yield flow.problem_at(place, message, "name a date or a timestamp")


def schemas_of(flow: FlowAsset) -> Mapping[str, ItemType]:
    """The types that the asset gives to inputs of its program; they have been judged."""
    return {name: parse_ddl(text) for name, text in flow.schemas.items()}


def _raise(problems: list[Diagnostic]) -> None:
    if problems:
        raise ProgramError(*problems)


def _name(flow: FlowAsset) -> Problems:
    if not _NAME.fullmatch(str(flow.name)):
        yield flow.problem_at(
            "name", f"{flow.name!r} is no name", "take letters, digits and underscores"
        )


def _program(flow: FlowAsset) -> Problems:
    text = str(flow.program)
    if not _PROGRAM.fullmatch(text) and not _FLOW.fullmatch(text):
        cure = "write a file `*.hydro` or `*.dl` of the asset's folder, or `module:attribute`"
        yield flow.problem_at("program", f"{text!r} is no program", cure)
        return
    folder, is_file = flow.folder, _PROGRAM.fullmatch(text)
    if folder is not None and is_file and not is_within_project(folder / text, folder):
        cure = "put the program within the project, and name it from the asset's folder"
        yield flow.problem_at("program", f"{text!r} leads out of the project", cure)


def _owners(flow: FlowAsset) -> Problems:
    for owner in flow.owners:
        if not _OWNER.fullmatch(str(owner)):
            cure = "write an e-mail address, or `team:` and its name"
            yield flow.problem_at("owners", f"{owner!r} is no owner", cure)


def _spark_conf(flow: FlowAsset) -> Problems:
    wrong = wrong_conf(flow.spark.conf)
    if wrong is not None:
        yield flow.problem_at("spark", f"`conf` is {wrong[0]}", wrong[1])
    wrong = None if flow.spark.master is None else wrong_master(flow.spark.master)
    if wrong is not None:
        yield flow.problem_at("spark", f"`master` is {wrong[0]}", wrong[1])


def _sample(flow: FlowAsset) -> Problems:
    if flow.sample_keys is not None and flow.sample_keys < 0:
        cure = "say how many keys of each output are compared; 0 compares none"
        yield flow.problem_at("sample_keys", f"{flow.sample_keys} is no number of keys", cure)


def _asked(flow: FlowAsset) -> Shards:
    return flow.shards if isinstance(flow.shards, Shards) else Shards(flow.shards)


def _count(flow: FlowAsset) -> Problems:
    count = _asked(flow).count
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_SHARDS:
        cure = f"give a number, 1 or more, at most {MOST_SHARDS:,}; 1 does not cut the flow"
        yield flow.problem_at("shards", f"there are no {count} shards", cure)


def _shards(flow: FlowAsset, sources: tuple[str, ...]) -> Problems:
    asked = _asked(flow)
    yield from _count(flow)
    yield from _known(flow, "shards", (*asked.on, *asked.replicate), "input", sources)


def _ticks(flow: FlowAsset) -> Problems:
    try:
        _ = flow.ticks.calendar
    except HydroError as error:
        for found in error.diagnostics:
            yield flow.problem_at("ticks", found.message, found.help)


def _inputs(flow: FlowAsset, sources: tuple[str, ...]) -> Problems:
    yield from _known(flow, "inputs", flow.inputs, "input", sources)
    for name in sources:
        if name not in flow.inputs:
            said = f"`{name}: {{path: …, column: …}}`"
            cure = f"say where it lands: {said} below `inputs`, or a `Landing`"
            yield flow.problem_at("inputs", f"`{name}`, which the program reads, is missing", cure)
    for name, read in flow.inputs.items():
        yield from _words(flow, f"inputs.{name}", read)
    for name, landing in flow.landings.items():
        place = f"inputs.{name}"
        if landing.wait == "landed" and landing.column is None:
            cure = "say which `column` tells the ticks, or leave `wait` out"
            yield flow.problem_at(f"{place}.wait", "nothing tells which ticks have landed", cure)
        try:
            place_at(landing.path, StorageSettings())
        except ProgramError as error:
            (found,) = error.diagnostics
            yield flow.problem_at(f"{place}.path", found.message, found.help or "")


def _wrong_rows(flow: FlowAsset) -> Problems:
    said = {f"inputs.{name}.on_error": of.on_error for name, of in flow.landings.items()}
    for place, of in {"on_error": flow.on_error, **said}.items():
        rows = None if of is None else of.quarantine
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            cure = "say how many wrong rows a tick may have, 1 or more: `OnError(100)`"
            yield flow.problem_at(place, f"{rows!r} is no number of rows", cure)


def _words(flow: FlowAsset, place: str, of: Landing | FlowOutput | Expect) -> Problems:
    """Judges the fields whose types say which words there are."""
    for name, hint in get_type_hints(type(of)).items():
        word, words = getattr(of, name), get_args(hint)
        if get_origin(hint) is Literal and word not in words:
            yield flow.problem_at(f"{place}.{name}", f"there is no {word!r}", _choice(word, words))


def _optional(flow: FlowAsset, inputs: Mapping[str, ItemType]) -> Problems:
    said = ((n, of, column) for n, of in flow.landings.items() for column in of.optional)
    for name, landing, column in said:
        if name not in inputs:
            continue
        place, columns = f"inputs.{name}.optional", declared_columns(inputs[name]) or {}
        if column not in columns:
            cure = _choice(column, columns)
            yield flow.problem_at(place, f"the program declares no column `{column}` of it", cure)
        elif column == landing.column:
            cure = "leave it out of `optional`"
            message = f"`{column}` tells the ticks, so no file may lack it"
            yield flow.problem_at(place, message, cure)
        elif column in required_columns(inputs[name]):
            cure = "leave it out of `optional`, or leave `not null` away in the schema"
            message = f"`{column}` is null where a file lacks it, and declared `not null`"
            yield flow.problem_at(place, message, cure)


def _schemas(flow: FlowAsset, sources: tuple[str, ...]) -> Problems:
    yield from _known(flow, "schemas", flow.schemas, "input", sources)
    for name, text in flow.schemas.items():
        try:
            parse_ddl(text)
        except TypeProblem as problem:
            yield flow.problem_at(f"schemas.{name}", problem.message, problem.help or _DDL)


def _known(
    flow: FlowAsset, place: str, names: Iterable[str], what: str, known: tuple[str, ...]
) -> Problems:
    for name in names:
        if name not in known:
            message = f"the program has no {what} `{name}`"
            yield flow.problem_at(place, message, _choice(name, known))


def _choice(word: object, known: Iterable[str]) -> str:
    listed = tuple(known)
    there = ", ".join(f"`{name}`" for name in listed) or "none"
    return did_you_mean(str(word), listed) or f"there are {there}"


def _expect(flow: FlowAsset, output: str, expect: Expect, item: ItemType) -> Problems:
    columns = declared_columns(item) or {"item": item}
    place = f"expect.{output}"
    if expect.column not in columns:
        cure = _choice(expect.column, columns)
        yield flow.problem_at(place, f"the output has no column `{expect.column}`", cure)
        return
    place = f"{place}.{expect.column}"
    yield from _words(flow, place, expect)
    yield from expected_problems(flow, place, expect, columns[expect.column])
