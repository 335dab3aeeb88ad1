"""Deployments: a program, the plan by which it runs, and why that plan; as a record and as files.

It is built once, by `deployment_of`, and read back as it was: no optimizer, no Spark and no module
of the program is needed to load it. Its name is the hash of what it says.

`deployments/N/` of a pipeline's directory has its files, which are written once. `plan.json` is the
program and the plan as data, `explanation.json` the rules that led there, `program.json` the files
that the program was read from, `deployment.json` the rest. A directory is staged and renamed, so it
exists as a whole or not at all; in a store `deployment.json` is written last, if it is absent, and
a deployment without it does not exist.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hydro_core.analysis.infer import Typed
from hydro_core.artifact.codecs import PLAN, DecodedTables, EncodedTables
from hydro_core.errors import DataError
from hydro_core.ir.graph import Endpoint, NodeId
from hydro_core.machine.faults import raise_outage
from hydro_core.plan.semantic_hash import hash_of, program_hashes
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.storage.places import remove_tree
from hydro_core.storage.remote import DataPlace, RemotePath
from hydro_core.types.item import ItemType, StreamType
from hydro_core.types.records import IF_GIVEN

FORMAT = 7
"""The format of a deployment's files; any other is refused."""

PACKAGE = "hydrotick"
"""The name of this package among the versions of a deployment."""


@dataclass(frozen=True, slots=True)
class WrittenProgram:
    """The program as it was written: its files by name, and what they were read as."""

    texts: Mapping[str, str]
    typed: Typed


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the pipeline, and the stream that it holds."""

    name: str
    """The id of the state slot, or the name of the output."""
    role: Literal["state", "output"]
    item: ItemType
    kind: str
    """How rows change over ticks: the form of a state table, the kind of an output's stream."""
    ordered: bool
    semantic_hash: str
    """The stored stream's identity: the same in every plan that stores it in the same way."""
    version: str = ""
    """Its semantic hash when its rows were computed: a program that is proved the same keeps it."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Rows that a tick costs by the model, as the program was written and by the plan."""

    before: float
    after: float
    statistics: Mapping[str, Any] = field(default_factory=dict)
    """Statistics of the data, as `optimize --stats` reads them; empty where none were known."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Random runs in which the plan was compared with the program before it was deployed."""

    runs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Sharding:
    """Into how many shards a program is cut, and how that was asked for."""

    count: int
    on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By which fields inputs are routed; a derived choice is taken where none is named."""
    replicate: tuple[str, ...] = ()
    """The inputs that every shard has whole."""
    says: str = field(default="", compare=False)
    """The routing of each input in words, and the steps that follow the shards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A program, its plan, and how it came to be."""

    format: int = FORMAT
    flow: str
    program: WrittenProgram
    plan: TickPlan
    explanation: Mapping[str, str] = field(default_factory=dict)
    """The rules that lead to each output's plan, with both sides, by the output's node."""
    tables: tuple[Table, ...] = ()
    costs: Costs
    notes: tuple[str, ...] = ()
    """Parts of the plan that are not incremental, functions that are referred to by name."""
    routing: str = ""
    """The ways to cut the program into shards, or the obstacles, in words."""
    repeatable: bool = True
    """A tick that runs again gives the same: no function asks for the time, for example."""
    params: Mapping[str, str] = field(default_factory=dict, metadata=IF_GIVEN)
    """The constants that the program was given by name, each as Python writes it."""
    sharding: Sharding | None = field(default=None, metadata=IF_GIVEN)
    """The cut of the plan into shards; None where it is not cut."""
    streams: Mapping[NodeId, NodeId] = field(default_factory=dict)
    """The plan's nodes that compute a stream of the program: its name there."""
    validated: Validation | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of hydrotick, Spark and Delta."""

    def statement(self, node: NodeId) -> str:
        """The statement of the program that a node of the plan comes from; empty if from none."""
        span = self.plan.graph[node].span
        return "" if span is None else f"{span.file}:{span.line}:{span.column}"


FOLDER = "deployments"
_PLAN, _EXPLANATION = "plan.json", "explanation.json"
_ABOUT, _PROGRAM = "deployment.json", "program.json"
_IN = "in"
"""The key of the folder of the other files, in the file of a deployment in a store."""
_TABLES = PLAN.of(tuple[Table, ...])
_REST = PLAN.fields_of(Deployment, "program", "plan", "explanation", "tables")
"""The codec of the rest of a deployment."""


def deployment_numbers(directory: DataPlace) -> tuple[int, ...]:
    """The numbers of the deployments that are written, in order."""
    folder = directory / FOLDER
    if isinstance(folder, RemotePath):
        names = [file.parent.name for file in folder.files() if file.name == _ABOUT]
    else:
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    return tuple(sorted(int(name) for name in names if name.isdecimal()))


@dataclass(frozen=True, slots=True)
class WrittenDeployment:
    """A deployment as it is written: its number, its name, and what it says."""

    number: int
    name: str
    deployment: Deployment


def newest_deployment(directory: DataPlace, name: str | None = None) -> WrittenDeployment | None:
    """The deployment that was written last, or the last of that name; None where there is none.

    Raises:
        DataError: it cannot be read (code `state`).
    """
    for number in reversed(deployment_numbers(directory)):
        if name is None or name == name_at(directory, number):
            deployment = read_deployment(directory, number)
            return WrittenDeployment(number, name or name_at(directory, number) or "", deployment)
    return None


def remove_deployment(directory: DataPlace, number: int) -> None:
    """Removes a deployment that nothing needs any more."""
    folder = directory / FOLDER / str(number)
    if isinstance(folder, RemotePath):
        (folder / _ABOUT).unlink(missing_ok=True)
    remove_tree(folder, ignore_errors=True)


def name_at(directory: DataPlace, number: int) -> str | None:
    """The name of the deployment of that number; None where it cannot be read."""
    try:
        about = _about((directory / FOLDER / str(number) / _ABOUT).read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise_outage(problem, str(directory))
        return None
    name = about.get("name")
    return name if isinstance(name, str) else None


def deployment_name(deployment: Deployment) -> str:
    """The deployment's name: the hash of all that it says."""
    return _name(_files(deployment))


def write_deployment(directory: DataPlace, deployment: Deployment) -> int:
    """Writes a deployment as the next one of the pipeline, and gives its number.

    It does not make it the current one.

    Raises:
        ProgramError: a function cannot be stored (code `config`).
        DataError: the directory cannot be written (code `state`).
    """
    files = _files(deployment)
    files[_ABOUT] = _json({**json.loads(files[_ABOUT]), "name": _name(files)})
    folder = directory / FOLDER
    if isinstance(folder, RemotePath):
        return _put(files, folder, directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Who else may read it, or write beside it, says the umask, as of all that is stored.
        made = folder / f".{uuid.uuid4().hex[:8]}"
        made.mkdir()
        try:
            for name, text in files.items():
                with (made / name).open("w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
            return _placed(made, folder, directory)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as problem:
        raise_outage(problem, str(folder))
        message = f"the deployment cannot be written to {folder}: {problem.strerror or problem}"
        cure = "make room there, or give the pipeline a directory to write"
        raise _error(message, cure) from None


def _put(files: Mapping[str, str], folder: RemotePath, directory: DataPlace) -> int:
    """In a store: under the first number that nobody has, and read by nobody before the end."""
    number = max(deployment_numbers(directory), default=0)
    while True:
        number += 1
        place = folder / str(number)
        # Others that write this number meanwhile have files of the same names: each writes its own.
        mine = place / uuid.uuid4().hex[:8]
        about = {**json.loads(files[_ABOUT]), _IN: mine.name}
        for name, text in files.items():
            if name != _ABOUT:
                (mine / name).write_bytes(text.encode())
        target = place / _ABOUT
        content = _json(about).encode()
        if target.store.write_if_absent(target.key, content) is not None:
            return number
        if target.read_bytes() == content:
            # It was written, and the answer got lost.
            return number
        remove_tree(mine)


def _placed(made: Path, folder: Path, directory: DataPlace) -> int:
    while True:
        number = max(deployment_numbers(directory), default=0) + 1
        try:
            made.rename(folder / str(number))
        except OSError:
            if not (folder / str(number)).exists():
                raise
            continue  # someone else wrote one meanwhile
        return number


def read_deployment(directory: DataPlace, number: int) -> Deployment:
    """The deployment of that number.

    Raises:
        DataError: it is not there, was changed, or is of another format (code `state`).
    """
    folder = directory / FOLDER / str(number)
    try:
        texts = _texts(folder)
        about = _about(texts[_ABOUT])
    except (OSError, KeyError, ValueError) as problem:
        raise_outage(problem, str(directory))
        there = ", ".join(map(str, deployment_numbers(directory))) or "none"
        message = f"deployment {number} in {directory} cannot be read: {problem}"
        raise _error(message, f"those that are written: {there}") from None
    if about["format"] != FORMAT:
        raise _of_another_format(f"deployment {number} in {directory}", about)
    name = about.pop("name", None)
    if name != _name({**texts, _ABOUT: _json(about)}):
        message = f"deployment {number} in {directory} is not what was written: a file was changed"
        raise _error(message, "restore the file, or deploy the flow again")
    return _deployment(texts, about)


def why_unreadable(directory: DataPlace, number: int) -> str:
    """The reason why a deployment cannot be read; empty if it can be."""
    try:
        read_deployment(directory, number)
    except DataError as error:
        return error.diagnostics[0].message
    return ""


def _about(text: str) -> dict[str, Any]:
    """The record in the file of a deployment; `ValueError` if it is none."""
    match json.loads(text):
        case {"format": int()} as about if isinstance(about.get(_IN, ""), str):
            return dict(about)
    raise ValueError(f"{_ABOUT} says no format, or not where the other files are")


def _texts(folder: DataPlace) -> dict[str, str]:
    about = _about((folder / _ABOUT).read_text("utf-8"))
    if _IN not in about and not isinstance(folder, RemotePath):
        return {p.name: p.read_text("utf-8") for p in folder.iterdir() if p.suffix == ".json"}
    # One that was copied is as it was where it was written.
    within = folder / about.pop(_IN, "")
    parts = (_PLAN, _EXPLANATION, _PROGRAM)
    return {_ABOUT: _json(about), **{name: (within / name).read_text("utf-8") for name in parts}}


def _of_another_format(deployment: str, about: Mapping[str, Any]) -> DataError:
    versions = about.get("versions")
    release = versions.get("hydrotick", "") if isinstance(versions, dict) else ""
    made = f"{deployment} was made by hydrotick {release}".rstrip()
    if about["format"] > FORMAT:
        cure = "run the flow with that version, or deploy it again with this one"
        return _error(f"{made}, which is newer", cure)
    cure = "run the flow with that version, or move its folder away and run its ticks again"
    return _error(f"{made}, whose deployments this version does not read", cure)


def _deployment(texts: Mapping[str, str], about: Mapping[str, Any]) -> Deployment:
    data = json.loads(texts[_PLAN])
    tables = DecodedTables(data["tables"])
    program = PLAN.of(Typed).read(tables, data["program"])
    return Deployment(
        program=WrittenProgram(json.loads(texts[_PROGRAM]), program),
        plan=PLAN.of(TickPlan).read(tables, data["plan"]),
        explanation=json.loads(texts[_EXPLANATION]),
        tables=_TABLES.read(tables, data["stored"]),
        **_REST.read(tables, about),
    )


def _files(deployment: Deployment) -> dict[str, str]:
    tables = EncodedTables()
    program = PLAN.of(Typed).write(tables, deployment.program.typed)
    plan = PLAN.of(TickPlan).write(tables, deployment.plan)
    stored = _TABLES.write(tables, deployment.tables)
    data = {"tables": tables.tables(), "program": program, "plan": plan, "stored": stored}
    return {
        _PLAN: _json(data, indent=None),
        _EXPLANATION: _json(dict(deployment.explanation)),
        _PROGRAM: _json(dict(deployment.program.texts)),
        _ABOUT: _json({**_REST.write(tables, deployment), "format": FORMAT}),
    }


def _json(value: Any, indent: int | None = 1) -> str:
    return json.dumps(value, ensure_ascii=True, indent=indent) + "\n"


def _name(files: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{files[name]}\0".encode())
    return digest.hexdigest()[:24]


def _error(message: str, help_: str) -> DataError:
    return DataError.of("state", message, help=help_)


class ProgramMeaning(NamedTuple):
    """The types of a program's inputs, and each output's type and semantic hashes."""

    inputs: dict[str, StreamType]
    outputs: dict[str, tuple[StreamType, tuple[str, ...]]]


def program_meaning(typed: Typed) -> ProgramMeaning:
    """The meaning of a program by its text: equal ones have the same outputs at every tick.

    Names of streams, places in a file and the spelling of functions do not count. No optimizer is
    needed, and fewer programs are found equal than by it.
    """
    hashes = program_hashes(typed)
    inputs = {name: typed.types[Endpoint(node.id)] for name, node in typed.graph.sources.items()}
    outputs = {
        name: (
            typed.outputs[name],
            tuple(sorted(hash_of(sink.inputs[0], hashes) for sink in sinks)),
        )
        for name, sinks in typed.graph.sinks.items()
    }
    return ProgramMeaning(inputs, outputs)
