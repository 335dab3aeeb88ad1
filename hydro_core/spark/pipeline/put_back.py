"""A copied pipeline in the place of one in a store: by one commit of its ledger.

A folder of a store cannot change places with another. But what a ledger does not name has not
happened: the copied files are put beside those that are there, tables hold them by one more commit
of their logs, and then the ledger has the copied rows and no others, by one commit of its own,
which conflicts with whatever another writer commits. What ends the process before that leaves
tables that are ahead of the ledger, and these are set back.

The last row of the ledger names the tables' new versions. Of a table whose log is the copied one,
and goes on from there, the rows before it name versions that are there still. Of another they say
nothing: its past is not to be had by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from hydro_core.artifact.files import FOLDER, bring
from hydro_core.files.transfer import hash_of
from hydro_core.machine.faults import faults_as_errors
from hydro_core.spark.pipeline.comparison import COMPARED
from hydro_core.spark.pipeline.copy import others_in
from hydro_core.spark.pipeline.rework import STAGING
from hydro_core.spark.store.delta.actions import summed_to
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.ledger.commit import Commit
from hydro_core.spark.store.ledger.ledger import LEDGER, Ledger, replace_rows, state_error
from hydro_core.spark.store.ledger.lock import LOCK_FILE, WriterLock
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydro_core.spark.store.schema import recorded_table
from hydro_core.spark.store.store import OnStep
from hydro_core.spark.store.stored_format import NOTE, refuse_other_format
from hydro_core.storage.delta import entry_of, opened_table
from hydro_core.storage.places import carry, entries_in, files_in, remove_tree
from hydro_core.storage.remote import DataPlace, Remote, name_below

_LOG = "_delta_log"
_CHECKPOINTED = 10


class PutBack:
    """A copied pipeline that is put in the place of what is in a store, whose right to write is
    held meanwhile.
    """

    def __init__(
        self, source: DataPlace, to: Remote, step: OnStep = lambda _: None, work: str = ""
    ) -> None:
        """Nothing is done yet.

        Args:
            source: the directory of the copied pipeline.
            to: the pipeline's place.
            step: called with the name of each step.
            work: what others are told that goes on.
        """
        self._source, self._to, self._step, self._work = source, to, step, work
        self._ledger = Ledger(to)
        self._lock = WriterLock(to, self._ledger.fence)
        self._commits: Sequence[Commit] = ()

    def __enter__(self) -> PutBack:
        self._lock.acquire(self._work)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def prepare(self) -> None:
        """Puts all that is copied beside what is there; nobody sees a difference.

        Raises:
            DataError: there is nothing in the copy, or a newer version wrote it (code `state`).
        """
        with faults_as_errors(f"the pipeline in {self._to}"):
            refuse_other_format(self._source)
            commits = Ledger(self._source).commits(since=-1)
            if not commits:
                raise state_error(f"there is no flow in {self._source}", "name another directory")
            self._ledger.create()
            here: dict[str, int] = {}
            anew = set()
            for name, version in commits[-1].versions.items():
                self._step(name)
                table = self._files(name)
                if not self._continues_the_copy(name, version):
                    anew.add(name)
                here[name] = self._held(commits[-1], name, version, table)
            self._step(FOLDER)
            bring(self._source, self._to)
            self._others()
            earlier = (
                replace(one, versions={n: v for n, v in one.versions.items() if n not in anew})
                for one in commits[:-1]
            )
            self._commits = [*earlier, replace(commits[-1], versions=here)]

    def commit(self) -> None:
        """Makes it count.

        Raises:
            TransientError: another writer has taken over (code `state`).
        """
        with faults_as_errors(f"the pipeline in {self._to}"):
            # They say which commit they show by its number, which another may have next.
            self._lock.refuse_lost()
            remove_tree(self._to / PUBLISHED)
            self._step(LEDGER)
            replace_rows(self._to, self._commits, self._lock.number, self._lock.doubts)
            self._step("committed")

    def settle(self) -> None:
        """Removes what the ledger does not speak of any more."""
        with faults_as_errors(f"the pipeline in {self._to}"):
            self._lock.refuse_lost()
            known = {name for commit in self._commits for name in commit.tables}
            for role in ("state", "outputs"):
                for place in entries_in(self._to / role):
                    if name_below(place, self._to) not in known:
                        remove_tree(place)
            for scratch in (STAGING, COMPARED):
                remove_tree(self._to / scratch)
            kept = {LOCK_FILE, NOTE, *(file.name for file in entries_in(self._source))}
            for place in entries_in(self._to):
                if place.suffix == ".json" and place.name not in kept:
                    place.unlink()

    def _files(self, name: str) -> Mapping[str, DataPlace]:
        """Puts the data files of a table where they are not there as they were copied."""
        source, to = self._source / name, self._to / name
        there = {name_below(file, to): file.stat().st_size for file in files_in(to)}
        found = {}
        for file in files_in(source):
            below = PurePath(name_below(file, source)).as_posix()
            if below.startswith(f"{_LOG}/"):
                continue
            found[below] = to / below
            is_there = there.get(below) == file.stat().st_size
            if not is_there or hash_of(file) != hash_of(to / below):
                carry(file, to / below)
        return found

    def _continues_the_copy(self, name: str, version: int) -> bool:
        """Whether the table's log is the copied one up to a version, and maybe beyond."""
        copied, there = (entry_of(at / name, version) for at in (self._source, self._to))
        try:
            return copied.read_bytes() == there.read_bytes()
        except FileNotFoundError:
            return False

    def _held(self, commit: Commit, name: str, version: int, files: Mapping[str, DataPlace]) -> int:
        """Has a table hold what was copied, by one commit of its log; gives its version then."""
        spec = recorded_table(name, commit.tables[name])
        table = StoredTable(self._to, spec, checkpoint_interval=_CHECKPOINTED)
        copied = StoredTable(self._source, spec, checkpoint_interval=1)
        held = copied.files_at(version)
        firsts = [file.first for file in held]
        log = opened_table(copied.path, version)
        summed = summed_to(log, copied.path, firsts, whole=True)
        if not table.exists:
            table.create()
        moved = [replace(f, path=files[name_below(f.path, copied.path)]) for f in held]
        table.hold(moved, summed_to=summed)
        if table.spec.forgets and table.summed_to() != summed:
            table.note_summed(summed)
        return table.version

    def _others(self) -> None:
        """Puts what else belongs to a pipeline; lists of what has landed are named by what is in
        them, and of deployments this is not all.
        """
        for file in others_in(self._source):
            below = PurePath(name_below(file, self._source))
            if below.parts[0] not in (FOLDER, NOTE):
                self._step(str(below))
                carry(file, self._to / below.as_posix())
