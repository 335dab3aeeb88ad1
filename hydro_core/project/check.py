"""Judges what an asset folder declares: alone, against its program, and against other flows.

All that is wrong is told at once, each with where it stands in the asset and what was likely meant.

Values that `expect` names are read by the type of the column that they are compared with. A number
is rounded to the column's type only where that changes no comparison: `at_least: 0.5` of a `long`
is 1, `at_most: 0.5` is 0. Of a `double` or `float` it is the nearest number of the type, as it is
where data are read, so a column of `float` that holds 0.1 is at its bound 0.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hydro_core.errors import Diagnostic, HydroError, ProgramError, TypeProblem
from hydro_core.lang.source import did_you_mean
from hydro_core.machine.environment import wrong_conf, wrong_master
from hydro_core.project.flow_asset import Expect, FlowAsset, FlowOutput, Landing, Shards
from hydro_core.project.yaml_text import is_within_project
from hydro_core.settings import MOST_SHARDS
from hydro_core.storage.remote import place_at
from hydro_core.storage.settings import StorageSettings
from hydro_core.ticks.calendar import Feed
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    FLOATS,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UNKNOWN,
    WRONG,
    ItemType,
    Row,
    Scalar,
    declared_columns,
    is_integer,
    is_numeric,
    required_columns,
)
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.values import ValueProblem, check_long, conform, print_moment, sort_key, unfit

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


_DIGITS_OF_LONG = 19
_MOST_DIGITS = 400
"""No exact number that is compared has more: a double of 309 digits has no fraction."""


def at_least(value: Any, of: ItemType) -> Any:
    """The smallest value of the type that is not below `value`; `ValueProblem` if none is read."""
    return _value_read(value, of, ROUND_CEILING)


def at_most(value: Any, of: ItemType) -> Any:
    """The largest value of the type that is not above `value`; `ValueProblem` if none is read."""
    return _value_read(value, of, ROUND_FLOOR)


def equal_value(value: Any, of: ItemType) -> Any:
    """The value of the type that `value` is; `ValueProblem` if it is none."""
    found = _value_read(value, of, ROUND_FLOOR)
    if is_exact(of) and found != value and found != _exact(value, of):
        raise unfit(value, of)
    return found


def is_exact(of: ItemType) -> bool:
    return is_integer(of) or isinstance(of, DecimalType)


def digits_of(of: ItemType) -> tuple[int, int]:
    return (of.precision, of.scale) if isinstance(of, DecimalType) else (_DIGITS_OF_LONG, 0)


def _value_read(value: Any, of: ItemType, rounding: str) -> Any:
    is_no_time = type(value) is date and of in (TIMESTAMP, TIMESTAMP_NTZ)
    if isinstance(value, bool) is not (of == BOOLEAN) or is_no_time:
        raise unfit(value, of)
    if is_exact(of):
        precision, scale = digits_of(of)
        with localcontext(prec=2 * _MOST_DIGITS):
            # What is beyond all values of the type is as good as the first number that is.
            first = Decimal(1).scaleb(precision - scale)
            number = max(-first, min(first, _exact(value, of)))
            return number.quantize(Decimal(1).scaleb(-scale), rounding=rounding)
    if of not in _EXAMPLES:
        raise unfit(value, of)
    try:
        return conform(value, of)
    except OverflowError:
        raise unfit(value, of) from None


def _exact(value: Any, of: ItemType) -> Decimal:
    if not isinstance(value, int | float | Decimal) or math.isnan(value):
        raise unfit(value, of)
    if isinstance(value, int) and is_integer(of):
        check_long(value)
    # A float is meant as it is written: 0.1 is no 0.1000000000000000055…
    number = Decimal(repr(value) if isinstance(value, float) else value)
    if number.is_finite() and number and abs(number.adjusted()) > _MOST_DIGITS:
        raise unfit(value, of)
    return number


def value_text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case date():
            return print_moment(value)
        case str():
            return repr(value)
        case _:
            return str(value)


def expected_problems(
    flow: FlowAsset, place: str, expect: Expect, of: ItemType
) -> Iterator[Diagnostic]:
    said = (expect.at_least, expect.at_most, expect.matches)
    is_said = any(value is not None for value in said)
    if not (is_said or expect.not_null or expect.unique or expect.one_of):
        yield flow.problem_at(
            place, "nothing is expected", "say `not_null`, `unique`, `at_least`, …"
        )
    yield from _pattern(flow, f"{place}.matches", expect.matches, of)
    yield from _bounds(flow, place, expect, of)


def _pattern(
    flow: FlowAsset, place: str, pattern: str | None, of: ItemType
) -> Iterator[Diagnostic]:
    if pattern is None:
        return
    if of != STRING:
        message = f"only text matches a pattern, and the column is {of}"
        yield flow.problem_at(place, message, "leave `matches` out, or say it of a column of text")
    try:
        re.compile(pattern)
    except (re.error, TypeError) as problem:
        message = f"{pattern!r} is no regular expression: {problem}"
        yield flow.problem_at(place, message, "write one of Python's, such as `[a-z]+`")


def _bounds(flow: FlowAsset, place: str, expect: Expect, of: ItemType) -> Iterator[Diagnostic]:
    wanted: list[tuple[str, Any, Callable[[Any, ItemType], Any]]] = [
        *([("at_least", expect.at_least, at_least)] if expect.at_least is not None else []),
        *([("at_most", expect.at_most, at_most)] if expect.at_most is not None else []),
        *(("one_of", value, equal_value) for value in expect.one_of),
    ]
    read: dict[str, Any] = {}
    for name, value, reading in wanted:
        try:
            if name != "one_of" and isinstance(value, float) and math.isnan(value):
                raise unfit(value, of)
            read[name] = reading(value, of)
        except ValueProblem:
            text = value_text(value) if flow.places else repr(value)
            is_long = type(value) is int and is_integer(of)
            why = ", as it is beyond 64 bits" if is_long else ""
            message = f"{text} cannot be compared with a column of type {of}{why}"
            cure = _cure(value, of, in_yaml=bool(flow.places))
            yield flow.problem_at(f"{place}.{name}", message, cure)
    both = [sort_key(read[name]) for name in ("at_least", "at_most") if name in read]
    if len(both) == 2 and both[0] > both[1]:
        message = f"no value is at least {expect.at_least} and at most {expect.at_most}"
        cure = "leave one of the two out, or exchange them"
        yield flow.problem_at(f"{place}.at_least", message, cure)


def _cure(value: Any, of: ItemType, *, in_yaml: bool) -> str:
    if is_numeric(of):
        return "write a number, such as 0"
    if of not in _EXAMPLES:
        return "columns of this type have no bounds"
    what, text, python = _EXAMPLES[of]
    if type(value) is date and of != STRING:
        text = f"{value.isoformat()}{text.partition('T')[1]}{text.partition('T')[2]}"
    return f"write {what}, such as `{text if in_yaml else python}`"


_EXAMPLES: dict[ItemType, tuple[str, str, str]] = {
    **{Scalar(name): ("a number", "0", "0") for name in FLOATS},
    DATE: ("a date", "2026-01-01", "date(2026, 1, 1)"),
    TIMESTAMP: ("a time", "2026-01-01T00:00:00Z", "datetime(2026, 1, 1)"),
    TIMESTAMP_NTZ: ("a time without a zone", "2026-01-01T00:00:00", "datetime(2026, 1, 1)"),
    STRING: ("a text", "'EWR'", "'EWR'"),
    BOOLEAN: ("true or false", "true", "True"),
}
"""Types whose values are compared as they are, and how a value of each is written."""


_OF_TABLES = frozenset({"tick", "position", "copies"})
"""Columns that the tables of outputs have beside those of their items."""


def reads_wrong(
    flows: Sequence[FlowAsset], broken: Sequence[str] = ()
) -> Iterator[tuple[str, ProgramError]]:
    """What is wrong with what flows read of each other, by their names (code `config`).

    Args:
        flows: those of a project that are right by themselves.
        broken: the names of its other flows.
    """
    known = {flow.name: flow for flow in flows}
    for flow in flows:
        problems = [
            _problem(flow, name, said)
            for name, read in flow.reads.items()
            if (said := _wrong_read(flow, read, known, broken)) is not None
        ]
        if problems:
            yield flow.name, ProgramError(*problems)


def _wrong_read(
    flow: FlowAsset, read: FlowOutput, known: Mapping[str, FlowAsset], broken: Sequence[str]
) -> tuple[str, str] | None:
    other = known.get(read.flow)
    if other is None:
        if read.flow in broken:
            return f"the flow `{read.flow}` cannot be loaded", "mend that flow"
        there = ", ".join(f"`{name}`" for name in known)
        cure = did_you_mean(read.flow, known) or f"there are {there}"
        return f"there is no flow `{read.flow}`", cure
    circle = _circle(flow.name, known, [read.flow])
    if circle:
        listed = ", which reads ".join(f"`{name}`" for name in circle)
        return f"a circle: it reads {listed}", "let one of them read what has landed instead"
    return _ticks_differ(flow, other)


def _circle(end: str, known: Mapping[str, FlowAsset], way: list[str]) -> list[str]:
    """The flows up to `end`, each of which reads the next; none: empty."""
    if way[-1] == end:
        return way
    flow = known.get(way[-1])
    for read in flow.reads.values() if flow else ():
        if read.flow not in way and (found := _circle(end, known, [*way, read.flow])):
            return found
    return []


def _ticks_differ(flow: FlowAsset, other: FlowAsset) -> tuple[str, str] | None:
    feed = Feed(flow.ticks.calendar, other.ticks.calendar)
    if feed.is_one_to_one or (feed.is_coarser and flow.ticks.zone == other.ticks.zone):
        return None
    says, own = (
        f"every {calendar.every} from {calendar.shown(calendar.origin)}"
        for calendar in (feed.other, feed.own)
    )
    message = f"`{other.name}` has ticks that do not fit: {says}, and `{flow.name}` {own}"
    return message, (
        f"give both the same `every` and `zone`, with starts that are whole ticks apart, or "
        f"`{flow.name}` shorter ticks than `{other.name}`"
    )


def no_such_output(flow: FlowAsset, name: str, outputs: Collection[str]) -> ProgramError:
    """An input of a flow is to be an output that another flow, which has these, does not have."""
    read = flow.reads[name]
    there = ", ".join(f"`{output}`" for output in outputs)
    cure = did_you_mean(read.output, outputs) or f"there are {there}"
    says = f"the flow `{read.flow}` has no output `{read.output}`"
    return ProgramError(_problem(flow, name, (says, cure)))


def columns_wrong(
    flow: FlowAsset, inputs: Mapping[str, ItemType], outputs: Mapping[str, Mapping[str, ItemType]]
) -> ProgramError | None:
    """What is wrong with the columns that a program reads of other flows' programs; None: nothing.

    Args:
        flow: reads outputs of other flows.
        inputs: the types of its program's inputs.
        outputs: by the names of other flows, the types of their programs' outputs.
    """
    problems: list[Diagnostic] = []
    for name, read in flow.reads.items():
        there = outputs.get(read.flow)
        if there is None:
            continue
        if read.output not in there:
            return no_such_output(flow, name, there)
        given = declared_columns(there[read.output])
        wanted = declared_columns(inputs.get(name, UNKNOWN))
        if given is not None and wanted is not None:
            listed = ", ".join(f"`{column}`" for column in given)
            problems += [
                _problem(flow, name, (f"{read} has no column `{column}`", f"it has {listed}"))
                for column in wanted
                if column not in given and column not in _OF_TABLES
            ]
    return ProgramError(*problems) if problems else None


def takes_back(flow: FlowAsset, name: str) -> ProgramError:
    """An input of a flow is a log of changes, and its program does not read what they do."""
    says = f"{flow.reads[name]} takes rows back: they are in its table with negative `copies`"
    cure = (
        "have the program read the column `copies long` too, or the other flow end that output "
        "with `delta()`, whose rows are events"
    )
    return ProgramError(_problem(flow, name, (says, cure)))


def _problem(flow: FlowAsset, name: str, said: tuple[str, str]) -> Diagnostic:
    place = f"inputs.{name}"
    return flow.problem_at(place, *said, at=f"{place}.flow")
