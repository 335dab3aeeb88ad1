"""What is done to a pipeline that is to forget a person, and to one that never knew them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.store.ledger.records import standing_counts
from hydrotick.quality.judge import measure
from hydrotick.runner.forgetting import ForgetPlan, forget, forget_plan
from tests.orchestration.late import Late, Row
from tests.orchestration.small import contents

BY_KEY = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> delta() -> totals
payments -> prev() -> before
"""
IN_ALL = BY_KEY + 'payments -> persist() -> aggregate(total=sum("amount")) -> whole\n'
MOMENTS = [
    "state/",
    "outputs/totals",
    "ledger",
    "dropped",
    "vacuumed state/",
    "noted",
    "erased the log of outputs",
]
"""The steps at which it is ended."""
PERSON = "zz-person-7"
"""No other file has such a word."""


class Story:
    """What is done to a pipeline, and to a second one in which the person's rows never land."""

    def __init__(self, home: Path, program: str, **how: str) -> None:
        self.mine, self.never = Late(home / "mine", **how), Late(home / "never", **how)
        for one in (self.mine, self.never):
            one.edit(program)
            one.open()

    def land(self, rows: Sequence[Row], name: str = "") -> Story:
        self.mine.land([(tick, named(user), n) for tick, user, n in rows], name)
        others = [row for row in rows if row[1] != "ann"]
        if others:
            self.never.land(others, name)
        return self

    def ran(self, *ranges: tuple[int, int]) -> Story:
        self.mine.ran(*ranges)
        self.never.ran(*ranges)
        return self

    def plan(self) -> ForgetPlan:
        return forget_plan(self.mine.runner, self.mine.flow, {"payments": ("user", PERSON)})

    def forget(self) -> Story:
        """Takes the rows out of the landing and forgets them; the others are corrected."""
        self.clean()
        plan = self.plan()
        forget(plan, lambda _: None)
        self.mine.open()
        if plan.first is not None:
            self.never.correct(plan.first)
        return self.agrees()

    def clean(self) -> None:
        """Takes the rows out of the landing, as their owner does it."""
        if self.mine.kind == "delta":
            DeltaTable(self.mine.place).delete(f"user = '{PERSON}'")
            return
        for file in self.mine.place.glob("*.parquet"):
            rows = pq.ParquetFile(file).read()
            left = rows.filter(ds.field("user") != PERSON)
            if left.num_rows < rows.num_rows:
                pq.write_table(left, file)

    def agrees(self) -> Story:
        assert tables(self.mine) == tables(self.never)
        directory = self.mine.runner.directory(self.mine.flow)
        assert verify(directory, measure).problems == ()
        assert [*having(directory, PERSON)] == []
        assert counts(self.mine) == counts(self.never)
        assert self.plan().is_nothing
        return self


def named(user: str) -> str:
    return PERSON if user == "ann" else user


def tables(one: Late) -> Mapping[str, list[str]]:
    return contents(one.flow, one.runner)


def counts(one: Late) -> Mapping[str, Mapping[int, int | None]]:
    commits = one.runner.pipeline(one.flow).ledger.commits()
    return {n: {t: c for t, c in of.items() if c} for n, of in standing_counts(commits).items()}


def having(directory: Path, user: str) -> Sequence[Path]:
    """The files below a directory that have a value, read as what they are and as bytes."""
    return [file for file in sorted(directory.rglob("*")) if file.is_file() and has(file, user)]


def has(file: Path, user: str) -> bool:
    rows = pq.ParquetFile(file).read().to_pylist() if file.suffix == ".parquet" else ()
    return user in str(rows) or user.encode() in file.read_bytes()


class Ended(BaseException):
    """As when the machine takes the process away."""


def end_at(story: Story, moment: str) -> bool:
    """Forgets, and ends when a step is done; whether that step is one."""

    def step(name: str) -> None:
        if name.startswith(moment):
            raise Ended

    pipeline = story.mine.runner.pipeline(story.mine.flow)
    pipeline.step = step
    try:
        forget(story.plan(), lambda _: None)
    except Ended:
        return True
    finally:
        story.mine.open()
        # As the next tick does it.
        pipeline = story.mine.runner.pipeline(story.mine.flow)
        pipeline.store.recover(pipeline.ledger.refresh())
    return False
