"""Dagster's instance of a project: a directory with the shipped settings, made when first
needed.

The settings follow the installed version: a `dagster.yaml` that nobody changed is replaced by the
one that is shipped; one that somebody changed stays, and the shipped one is put beside it. An
instance that somebody else has made is left as it is.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

from hydro_core.errors import DataError, Diagnostic
from hydro_core.machine.locks import FileLock

SETTINGS = "dagster.yaml"
SHIPPED_BESIDE = "dagster.yaml.shipped"
"""Where the shipped settings are put when those in use were changed by hand."""

_COPIED = "dagster.yaml.copied"
"""Holds what `dagster.yaml` was when it was copied, as a hash."""

_FORMER = frozenset(
    {
        "44c0107db8e652bb65e6d48b6b87115fe79da7666f49c621422c8a6f7e92f908",
        "bcf3eebb5893118c0e088d7ea1a251e68291568a2ffc57b3a82ce970bd75e915",
        "b41630f72cb12132b376da0659252739cb154fa2bc2b3ede76dcfc1b0ae3fff1",
    }
)
"""The hashes of shipped settings from before they were noted in the home."""


_FORMER_LAUNCHER = b"hydrotick.resident.launcher"

_RECORDS = ("history", "storage", "schedules")
"""Files that Dagster creates in an instance whose settings name no storage."""


def prepare_instance(directory: Path) -> Path:
    """Makes the instance's directory, with `dagster.yaml` as this version ships it unless somebody
    changed that, or has made the instance; gives the directory.

    Raises:
        DataError: what somebody changed names what there is no more (code `config`).
    """
    directory.mkdir(parents=True, exist_ok=True)
    shipped = (files("hydrotick.instance") / SETTINGS).read_bytes()
    file = directory / SETTINGS
    content = file.read_bytes() if file.exists() else b""
    ours = _hash(content) in _FORMER | {_copied(directory)}
    if _FORMER_LAUNCHER in content and not ours:
        raise DataError.of(
            "config",
            f"{file} was changed by hand, and names a launcher that there is no more",
            help="write `module: hydrotick.worker.launcher` and `class: WorkerRunLauncher` "
            "below `run_launcher`, or remove the file: it is made again",
        )
    if _is_anothers(directory, shipped):
        return directory
    beside = directory / SHIPPED_BESIDE
    if file.exists():
        if content == shipped:
            beside.unlink(missing_ok=True)
            return directory
        if not ours:
            _write(beside, shipped)
            return directory
    _write(directory / _COPIED, _hash(shipped).encode())
    _write(file, shipped)
    return directory


def has_own_settings(directory: Path) -> bool:
    """True if the settings in use were changed by hand, and differ from this version's."""
    return (directory / SHIPPED_BESIDE).exists()


def is_made_here(directory: Path) -> bool:
    """True if hydrotick created the instance for the project."""
    return (directory / _COPIED).exists()


def dev_lock(directory: Path) -> FileLock:
    return FileLock(directory / "dev.lock")


def _is_anothers(directory: Path, shipped: bytes) -> bool:
    """True if somebody else created the instance: by its settings, or by records without any."""
    target = directory / SETTINGS
    if is_made_here(directory):
        return False
    if target.exists():
        present = target.read_bytes()
        return present != shipped and _hash(present) not in _FORMER
    return any((directory / name).exists() for name in _RECORDS)


def _write(path: Path, content: bytes) -> None:
    """Replaces a file as a whole: another process may read it at the same time."""
    if path.exists() and path.read_bytes() == content:
        return
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def _copied(directory: Path) -> str:
    path = directory / _COPIED
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
