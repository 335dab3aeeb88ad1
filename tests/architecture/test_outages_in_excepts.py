"""No `except` takes an outage for bad data: a store that does not answer is told as such.

A handler may catch an error that an outage can be (`HydroError`, `OSError`, `DeltaError` …). Then
it raises again, says what the error says, or asks `raise_outage`, `fault_of` or who does so. All
else stands here with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hydro_core.errors import DataError, HydroError, InfrastructureError, ProgramError

ROOT = Path(__file__).parents[2]
OURS = {"HydroError", "TransientError", "InfrastructureError", "EngineEndedError"}
LIBRARIES = {
    *("OSError", "IOError", "DeltaError", "ArrowException", "BaseError", "UNREADABLE"),
    *("Exception", "BaseException"),
}
ASKS = {
    *("raise_outage", "fault_of", "_unreadable", "_without", "_lost", "problem", "refuse_delta"),
    *("refuse_file", "refuse_parquet", "refuse_csv", "refuse_text", "_error_for_people"),
}
"""Functions that raise an outage as one, or give it."""
_REASONS: Mapping[str, str] = {
    "It works on values in memory, or on code, and reads nothing.": """
        hydro_core/files/places.py _common_schema: ArrowException
        hydro_core/functions/call.py _reason: Exception
        hydro_core/reference/site.py _try: Exception
        hydro_core/spark/functions/apply.py guarded: Exception
        hydro_core/spark/store/lookups/search.py _may_pass: Exception
        hydro_core/spark/store/lookups/conditions.py _constant: Exception
        hydro_core/lang/print.py _reads_back: HydroError
        hydro_core/validation/sliced.py _is_needed: HydroError
        orchestration/code_location/records.py _covers: HydroError
        hydro_core/project/discover.py _declared: Exception
        hydro_core/cli/run.py _answer: Exception
    """,
    "It reads a text of the project or of Python, and refuses with the system's words.": """
        hydro_core/cli/run.py _read_text: OSError
        hydro_core/cli/programs.py statistics_of: OSError
        hydro_core/functions/library/calendars.py zone_of: OSError
        hydro_core/functions/reading/scope.py _syntax: OSError
        hydro_core/lang/load.py _flows_in: OSError
        hydro_core/lang/load.py read_program: OSError
        hydro_core/lang/source.py of_function: OSError
        hydro_core/project/yaml_text.py declared_text: OSError
        orchestration/project/settings_file.py worker_token: OSError
        hydro_core/machine/environment.py storage_of: OSError
    """,
    "It asks what another process or this machine is, and not what is stored.": """
        hydro_core/machine/locks.py holder: OSError
        hydro_core/machine/locks.py _number_and_start: OSError
        hydro_core/machine/locks.py _machine_start: OSError
        hydro_core/spark/executor/shell.py _configured: OSError
        hydro_core/spark/frames/materialize.py held_until_the_end: OSError
        hydro_core/spark/session/failures.py _may_be_its_end: OSError
        hydro_core/spark/session/java.py java_version: OSError
        hydro_core/spark/session/launch.py runs_jobs: OSError
        hydro_core/spark/session/launch.py _jvm_answers: OSError
        hydro_core/spark/session/launch.py discard_jvm: OSError
        hydro_core/spark/session/ready.py _alone: OSError
        hydro_core/spark/session/ready.py _size: OSError
        hydro_core/spark/session/session.py _launched: OSError
        hydro_core/storage/credentials.py _is_reachable: OSError
        orchestration/cli/worker.py metrics: OSError
        orchestration/cli/worker.py _asked: OSError
        orchestration/cli/worker.py _serve: OSError
        orchestration/project/logs.py as_it_is: OSError
        orchestration/worker/client.py worker_answers: OSError
        orchestration/worker/client.py _handed_over: OSError
        orchestration/worker/launcher.py _ask: OSError
        orchestration/worker/process.py _tell: OSError
        orchestration/worker/service.py _answer: OSError
        orchestration/worker/service.py accept: OSError
        orchestration/worker/service.py drain: OSError
        orchestration/worker/service.py _resident: OSError
        orchestration/worker/service.py _tell: OSError
        orchestration/worker/service.py begin: OSError
        orchestration/worker/service.py cancel: OSError
        orchestration/worker/service.py _with_children: OSError
        orchestration/worker/wire.py end_side: OSError
        orchestration/worker/wire.py give_up: OSError
        orchestration/worker/wire.py close: OSError
    """,
    "It hands the error whole to who has asked.": """
        hydro_core/spark/session/session.py executor_pythons: Exception
        orchestration/worker/launcher.py _executed: BaseException
        orchestration/worker/process.py _do: BaseException
        orchestration/cli/doctor.py _written: OSError
        orchestration/cli/doctor.py _difference: OSError
    """,
    "It is upkeep, or a message to others: what it has not done the next time does.": """
        hydro_core/spark/pipeline/prepared.py _end: HydroError OSError
        hydro_core/spark/pipeline/publishing.py follow: ArrowException DeltaError HydroError OSError
        hydro_core/spark/store/ledger/ledger.py _compact: DeltaError
        hydro_core/spark/store/outputs/published.py _tidy: DeltaError
        hydro_core/spark/store/store.py _compact_one: DeltaError
        hydro_core/spark/store/lookups/index_files.py left_behind: OSError
        hydro_core/spark/store/lookups/index_files.py write_checked: OSError
        hydro_core/spark/store/lookups/lookup_files.py _remove: OSError
        orchestration/code_location/sensors.py tell: OSError
        orchestration/openlineage.py with_lineage: HydroError
        orchestration/openlineage.py send: OSError
        hydro_core/storage/lease.py _keep: HydroError
    """,
    "It goes another way to the same rows, which meets the outage as well.": """
        hydro_core/files/kinds.py _unread_features: DeltaError OSError
        hydro_core/spark/inputs/snapshot.py _tick_values: UNREADABLE
        hydro_core/spark/inputs/reading.py _as_they_lie: UNREADABLE
        hydro_core/spark/pipeline/kept_plan.py run: OSError
        hydro_core/spark/pipeline/jobs.py leading_rows: OSError
        hydro_core/spark/store/lookups/lookup_files.py _looked_up: OSError
        hydro_core/spark/store/lookups/index_files.py refuse_changed: OSError
        orchestration/cli/status.py say_nothing_more: HydroError OSError
        orchestration/runner/correction.py with_another_jvm: EngineEndedError
    """,
    "Not to know is the careful answer: nothing is taken for granted.": """
        hydro_core/spark/store/ledger/lock.py is_kept: HydroError
        orchestration/cli/completion.py candidates: HydroError
        orchestration/cli/doctor.py stores_of: HydroError
    """,
}
ALLOWED = {
    line.strip(): reason
    for reason, places in _REASONS.items()
    for line in places.strip().splitlines()
}
"""Why a handler need not ask, by where it is: the file, the function, and what it catches."""


def _caught(node: ast.expr | None) -> set[str]:
    if node is None:
        return {"BaseException"}
    if isinstance(node, ast.Tuple | ast.Starred):
        parts = node.elts if isinstance(node, ast.Tuple) else [node.value]
        return set().union(*map(_caught, parts))
    return {ast.unparse(node).rpartition(".")[2]}


def _calls(body: list[ast.stmt]) -> set[str]:
    return {
        ast.unparse(n.func).rpartition(".")[2]
        for s in body
        for n in ast.walk(s)
        if isinstance(n, ast.Call)
    }


def _lets_outages_be(handler: ast.ExceptHandler, caught: set[str]) -> bool:
    walked = [n for s in handler.body for n in ast.walk(s)]
    raised = [n for n in walked if isinstance(n, ast.Raise)]
    again = any(r.exc is None or ast.unparse(r.exc) == handler.name for r in raised)
    used = any(isinstance(n, ast.Name) and n.id == handler.name for n in walked)
    if again or _calls(handler.body) & ASKS:
        return True
    # What a report says of an error of ours is what the error says.
    return used and not caught & LIBRARIES


def _wrong(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owners = {
        child: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for child in ast.walk(node)
    }

    def place(node: ast.AST, caught: set[str]) -> str:
        owner = owners.get(node)
        within = owner.name if isinstance(owner, ast.FunctionDef) else "module"
        return f"{path.relative_to(ROOT)} {within}: {' '.join(sorted(caught & RISKY))}"

    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = _caught(node.type)
            if caught & RISKY and not _lets_outages_be(node, caught):
                yield place(node, caught)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            caught = set().union(*map(_caught, node.args)) if node.args else set()
            if caught & RISKY:
                yield place(node, caught)


RISKY = OURS | LIBRARIES
FOUND = [
    found
    for folder in ("hydro_core", "orchestration")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
    for found in _wrong(path)
]


def test_what_is_no_outage_is_no_kind_of_it() -> None:
    assert not issubclass(InfrastructureError, DataError | ProgramError)
    assert not issubclass(DataError, InfrastructureError)
    assert issubclass(InfrastructureError, HydroError)


@pytest.mark.parametrize("place", dict.fromkeys(FOUND))
def test_an_outage_is_taken_for_nothing_else(place: str) -> None:
    assert ALLOWED.get(place), f"{place}: ask `raise_outage`, or say here why it need not"


def test_what_is_allowed_is_there() -> None:
    assert set(ALLOWED) <= set(FOUND)
