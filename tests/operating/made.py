"""Makes stories of seeds, and smaller ones of those that fail."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from tests.operating.landing import KINDS
from tests.operating.model import TICKS, Row
from tests.operating.programs import FAMILIES, FEEDS, Family, can_be_cut
from tests.operating.story import FEED, KEYS, MAIN, Op, Setting, Story

_WEIGHTS = {
    "land": 6,
    "late": 5,
    "remove": 3,
    "restore": 4,
    "rewrite": 3,
    "touch": 1,
    "tick": 10,
    "correct": 3,
    "accept": 2,
    "edit": 1,
    "deploy": 5,
    "rollback": 3,
    "compact": 2,
    "copy": 1,
    "put back": 1,
}
_KILLED = 0.12
"""How many processes are killed."""
_HOLD = 0.15
"""How many inputs let their flow wait while rows are gone."""
_WAIT = 0.15
"""How many let a tick wait for a row of a later one."""
_CUT = 0.25
"""How many flows have shards."""
_FORGOTTEN = 0.08
"""How many operations are followed by one that forgets somebody."""
_FEED = 0.3
"""How many deployments and rollbacks are of the flow that feeds."""
_COPIED = 0.08
"""How many operations are followed by a copy of the project, or by its return."""
_TABLES = 0.3
"""How many flows have their outputs as tables; for half of these next to no rows are few."""
_NAMED = 0.12
"""How many operations are followed by a file that gets another name, or returns with other rows."""
_BACKFILLED = 0.08
"""How many are followed by a backfill from a committed tick on, or of all ticks."""
_SEAM = 0.4
"""How many deployments leave some of the past as it is."""


def story_of(seed: int, length: int = 14, families: Mapping[str, Family] = FAMILIES) -> Story:
    """The story of a seed, of one of the programs."""
    rng = Random(seed)
    family = families[rng.choice(list(families))]
    kinds = {name: rng.choice(KINDS) for name in family.inputs}
    if rng.random() < 0.2:
        kinds["a"] = "flow"
    late = {name: rng.choice(("next", "next", "correct", "refuse")) for name in family.inputs}
    holds = frozenset(name for name in family.inputs if rng.random() < _HOLD)
    setting = Setting(
        family.versions,
        late,
        kinds,
        feed=rng.choice(list(FEEDS)),
        feed_late=rng.choice(("next", "correct")),
        sample_keys=rng.choice((0, 8)),
        refactored=family.refactored,
        holds=holds - {name for name, kind in kinds.items() if kind == "flow"},
    )
    more = Random(f"{seed}, more")
    setting = _with_tables(_with_more(setting, more), Random(f"{seed}, tables"))
    ops = [_said_how(op, more) for op in _Teller(rng, setting).ops(length)]
    if "flow" in setting.kinds.values():
        ops = list(_of_the_feed(ops, Random(f"{seed}, feed")))
    ops = list(_with_forgotten(ops, Random(f"{seed}, forgotten")))
    ops = list(_with_names(ops, Random(f"{seed}, names")))
    ops = list(_with_backfills(ops, Random(f"{seed}, backfills")))
    return Story(setting, tuple(_with_copies(ops, Random(f"{seed}, copies"))))


def _with_names(ops: Sequence[Op], rng: Random) -> Iterator[Op]:
    """The operations, and between some of them files get other names; one that went returns by its
    name, maybe much later, with other rows.
    """
    away, landed = list[Op](), [op for op in ops if op.what == "land"]
    for op in ops:
        yield op
        if away and rng.random() < 0.3:
            yield away.pop()
        if rng.random() >= _NAMED:
            continue
        where = rng.choice(landed)
        files = [one for one in landed if (one.flow, one.input) == (where.flow, where.input)]
        number, other = rng.randrange(len(files)), rng.randrange(len(files))
        what = rng.choice(("rename", "exchange", "remove"))
        moved = Op(what, number, where.flow, where.input)
        yield replace(moved, first=other) if what == "exchange" else moved
        if what == "remove":
            away.append(replace(moved, what="put anew", rows=rng.choice(files).rows))


def _with_backfills(ops: Sequence[Op], rng: Random) -> Iterator[Op]:
    """The operations, and between some of them a backfill of committed and of open ticks."""
    for op in ops:
        yield op
        if rng.random() < _BACKFILLED:
            flow = op.flow if rng.random() < 0.5 else MAIN
            kill = rng.randint(1, 9) if rng.random() < _KILLED else 0
            backfill = Op("backfill", rng.randrange(4), flow, kill=kill, first=rng.randrange(3))
            yield backfill if rng.random() < 0.7 else Op("again", rng.randrange(3), flow)


def _with_copies(ops: Sequence[Op], rng: Random) -> Iterator[Op]:
    """The operations, and between some of them the project is copied, or put back."""
    for op in ops:
        yield op
        if rng.random() < _COPIED:
            yield Op(rng.choice(("copy all", "put back all")))


def _of_the_feed(ops: Sequence[Op], rng: Random) -> Iterator[Op]:
    """The operations, some of them on the flow that feeds, which may forget somebody alone."""
    for op in ops:
        of_feed = op.what in {"deploy", "rollback"} and op.how != "now" and rng.random() < _FEED
        yield replace(op, flow=FEED) if of_feed else op
        if rng.random() < _FORGOTTEN:
            yield Op("forget", rng.randrange(len(KEYS)), FEED)


def _with_forgotten(ops: Sequence[Op], rng: Random) -> Iterator[Op]:
    """The operations, and between some of them somebody is forgotten."""
    for op in ops:
        yield op
        if rng.random() < _FORGOTTEN:
            kill = rng.randint(1, 9) if rng.random() < _KILLED else 0
            yield Op("forget", rng.randrange(len(KEYS)), kill=kill)


def _with_more(setting: Setting, rng: Random) -> Setting:
    """The same with other columns of ticks, inputs that are waited for, shards."""
    landed = [name for name, kind in setting.kinds.items() if kind != "flow"]
    columns = {name: rng.choice(("tick", "tick", "day", "at")) for name in landed}
    waits = frozenset(name for name in landed if rng.random() < _WAIT)
    cut = rng.random() < _CUT
    shards = tuple(
        rng.choice((1, 2, 2, 3)) if cut and can_be_cut(text) else 1 for text in setting.versions
    )
    return replace(setting, columns=columns, waits=waits, shards=shards if cut else ())


def _with_tables(setting: Setting, rng: Random) -> Setting:
    """The same, and maybe with outputs that are tables."""
    has_tables = rng.random() < _TABLES
    held = rng.choice((0, 3)) if has_tables else 0
    return replace(setting, has_tables=has_tables, held=held)


def _said_how(op: Op, rng: Random) -> Op:
    """A deployment may leave some of the past as it is."""
    if op.what != "deploy" or rng.random() >= _SEAM:
        return op
    return replace(op, how=rng.choice(("from", "from", "forward", "now")), first=rng.randrange(6))


class _Teller:
    """Makes operations that mostly apply: it counts ticks and files, roughly."""

    def __init__(self, rng: Random, setting: Setting) -> None:
        self.rng, self.setting = rng, setting
        is_fed = "flow" in setting.kinds.values()
        self.flows = [MAIN, FEED] if is_fed else [MAIN]
        self.done = dict.fromkeys(self.flows, 0)
        places = [(MAIN, name) for name, kind in setting.kinds.items() if kind != "flow"]
        self.places = [*places, *([(FEED, "a")] if is_fed else [])]
        self.files = dict.fromkeys(self.places, 0)
        self.gone: dict[tuple[str, str], list[int]] = {place: [] for place in self.places}

    def ops(self, length: int) -> list[Op]:
        """So many operations, after what every story begins with."""
        found = [self._landed(place, 0, 4) for place in self.places for _ in range(2)]
        found += [self._ticked(flow) for flow in reversed(self.flows)]
        names = list(_WEIGHTS)
        while len(found) < length:
            (what,) = self.rng.choices(names, [_WEIGHTS[name] for name in names])
            op = self._one(what)
            found += [op] if op is not None else []
        return [*found, *(Op("tick", 1, flow) for flow in reversed(self.flows))]

    def _one(self, what: str) -> Op | None:
        rng, done = self.rng, self.done
        flow = rng.choice(self.flows)
        match what:
            case "tick":
                return self._ticked(flow)
            case "correct":
                return Op(what, rng.randrange(done[flow] or 1), flow, kill=self._kill())
            case "edit" | "deploy":
                number = rng.randrange(len(self.setting.versions))
                return Op(what, number, kill=self._kill() if what == "deploy" else 0)
            case "compact":
                return Op(what, rng.choice((168, 168, 0)), kill=self._kill())
            case "rollback":
                return Op(what, kill=self._kill())
            case "accept" | "copy" | "put back":
                return Op(what)
        return self._moved(what, rng.choice(self.places))

    def _moved(self, what: str, place: tuple[str, str]) -> Op | None:
        """Something with files."""
        (flow, name), gone, done = place, self.gone[place], self.done[place[0]]
        number = self.rng.randrange(self.files[place])
        match what:
            case "land":
                return self._landed(place, done, done + 3)
            case "late":
                return self._landed(place, 0, max(1, done))
            case "restore":
                return Op(what, gone.pop(), flow, name) if gone else None
            case "remove":
                gone.append(number)
            case "rewrite":
                return Op(what, number, flow, name, self._rows(0, done + 1))
        return Op(what, number, flow, name)

    def _ticked(self, flow: str) -> Op:
        number = self.rng.choice((1, 1, 2, 3))
        most = self.done[FEED] if flow == MAIN and FEED in self.done else TICKS
        self.done[flow] = min(most, self.done[flow] + number)
        return Op("tick", number, flow, kill=self._kill())

    def _kill(self) -> int:
        return self.rng.randint(1, 6) if self.rng.random() < _KILLED else 0

    def _landed(self, place: tuple[str, str], first: int, end: int) -> Op:
        self.files[place] += 1
        flow, name = place
        return Op("land", 0, flow, name, self._rows(first, end))

    def _rows(self, first: int, end: int) -> tuple[Row, ...]:
        rng = self.rng
        return tuple(
            (rng.randrange(first, max(end, first + 1)), rng.choice(KEYS), rng.randint(0, 5))
            for _ in range(rng.randint(1, 4))
        )


def shrunk(story: Story, problem: Callable[[Story], str | None], seconds: float) -> Story:
    """The story without what it needs not to fail as it does, as far as that is found.

    Args:
        story: one that fails.
        problem: what goes wrong in a story; None: nothing does.
        seconds: how long a smaller one is looked for.
    """
    end = time.monotonic() + seconds
    wanted = kind_of(problem(story))
    size = max(1, len(story.ops) // 2)
    while size:
        start = len(story.ops)
        while start > 0 and time.monotonic() < end:
            start -= size
            ops = (*story.ops[: max(0, start)], *story.ops[max(0, start) + size :])
            less = Story(story.setting, ops)
            if len(ops) < len(story.ops) and kind_of(problem(less)) == wanted:
                story = less
                start = min(start, len(story.ops))
        size //= 2
    return story


def kind_of(problem: str | None) -> str | None:
    """What is wrong in words, without what another story has otherwise: operations, rows, paths.

    >>> kind_of("after 4: Op('tick', 1)\n  `o` at tick 1 is [('y', 2)], not []")
    '`o` at tick is , not'
    """
    if problem is None:
        return None
    _, _, said = problem.partition("\n")
    for left_out in _OF_THE_STORY:
        said = left_out.sub(" ", said)
    first = next((line for line in said.splitlines() if line.strip()), "")
    return " ".join(first.split())


_OF_THE_STORY = [
    re.compile(words)
    for words in (r"`/[^`]*`|/[\w./-]+", r"\[.*\]|\(.*\)|\{.*\}", r"\d{4}-\d\d-\d\d", r"-?\d+")
]
"""Paths, rows, dates and numbers."""
