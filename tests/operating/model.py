"""What the pages promise of a flow that is operated: worked out anew, of what landed and was read.

A flow is judged by few things: which rows lie in each landing (`landed`), which rows came with each
committed tick (`State.read`), and which program serves. All else follows:

- **Outputs** are what the program that serves gives at every committed tick, run on what was read,
  each row at the tick with which it came. One rule for ticks, deployments, rollbacks and
  corrections: a row stands where it arrived, not at the tick that it is of.
- **Late** are the rows that lie there for committed ticks and were not read: only a surplus. A row
  that went and returned is no row that came.
- **Changed** are the ticks that have lost rows which were read, until they are computed again, or
  somebody has accepted it. Rows that return cancel it.
- A **correction** from a tick on leaves what arrived before that tick, has the rows of that tick
  and of those after it where they belong, and lets arrive with that tick what lies there for
  earlier ones and has not arrived before it (the table in `docs/late-rows.md`).
- A **deployment** and a **rollback** change the program and nothing that was read. Where rows that
  were read are gone they may refuse to be done, and then nothing has changed; else they must be
  done.
- A **rollback** goes to the deployment that served before the one that serves: from a deployment
  that followed a rollback not to the one that was given up.
- A flow **waits** while rows are gone that were read of an input with `removed: hold`: no tick
  runs, and none is open, until they return, their ticks are computed again, or it is accepted.
- A **deployment `--from`** a tick leaves the outputs that change as they are before it, one that is
  `--forward-only` at all committed ticks: what is kept has the columns of the new program, and
  nulls where the old one had none. It goes with the deployment, wherever that serves; of ticks that
  are computed again nothing is kept. With `--from-now` what has lost its past begins without one:
  nothing is promised of the outputs then.
- A tick **waits** for `wait: landed` until a row of a later one is there.
- **Accepting** leaves what was read as it is, and lets late rows arrive with the next tick, but not
  of an input that is corrected: there they wait for the next correction, and only what is gone is
  let go. What is refused is to be decided again when more comes or goes.
- **Forgetting** whoever has a value is refused while rows that have it lie there. Else it is a
  correction from the first tick that has read one of the rows that went, or none where no tick has.
  No deployment is there any more but the one that serves; what that has kept of its past stays for
  the ticks before the first that was computed again. Copies keep what they have: of one that is put
  back, what was forgotten is gone from the landing.
- What is **killed** has happened as far as the ledger says, commit by commit.

The pages leave one thing open: of a tick that has lost rows, which of the rows that came are the
new form of those that went, and wait for a correction. Of such a tick all of them may be told as
late, or none of those that have not arrived before; what is told must be done. After the rows that
went were accepted, nothing waits any more but what waited then; after they have returned, nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.operating.programs import NamedRows, Outputs, Values, in_order, run, with_past

Row = tuple[int, *tuple[object, ...]]
"""The tick that a row is of, and its columns."""
Rows = Counter[Row]
ByTick = Mapping[int, int]
TICKS = 12
"""How many ticks flows have, from `START` on; all may run."""


class UnclearError(Exception):
    """What is told fits more than one reading of the pages: nothing after it can be judged."""


Past = Mapping[str, Sequence[NamedRows]]
"""Of outputs the rows of their first ticks, as other programs have left them."""


@dataclass(frozen=True)
class Served:
    """A deployment: its number, its program, the past that it has kept from those before it."""

    number: int
    text: str
    kept: Past = field(default_factory=dict)
    is_unreported: bool = False
    """Whether something of it began without a past: of its outputs nothing is promised."""

    def up_to(self, tick: int) -> Served:
        """The same after the ticks from one on were computed again."""
        return replace(self, kept={name: past[:tick] for name, past in self.kept.items()})


@dataclass
class State:
    """What a pipeline stands for; a copy of it is a copy of the pipeline."""

    read: dict[str, list[Rows]]
    """Of each input the rows that came with each committed tick."""
    served: list[Served] = field(default_factory=list)
    """The deployments that serve and served before: the last one serves."""
    cleared: int = 0
    """How many of the first of them may have no tables any more: a process that removes what
    served before was killed, and what it had removed by then is gone.
    """
    accepted: dict[str, Rows] = field(default_factory=dict)
    """Rows that are gone, and that somebody has let go."""
    decided: dict[str, Rows] = field(default_factory=dict)
    """Rows that are late, and that somebody has accepted."""
    ignored: dict[str, Rows] = field(default_factory=dict)
    """Rows that waited for a correction when somebody accepted that there is none, as long as
    something of their tick is away.
    """
    arrived: dict[str, ByTick] = field(default_factory=dict)
    """How many rows came late with the last commit of ticks, by the ticks that they are of; of an
    input that is not named it is left open, since another program has taken over.
    """
    began: int = 0
    """The first tick of that commit."""

    @property
    def done(self) -> int:
        """How many ticks are committed."""
        return len(next(iter(self.read.values())))


class Flow:
    """A flow as it should be.

    Args:
        name: of the flow.
        late: of each input what becomes of late rows.
        holding: the inputs for which it waits while rows are gone.
        landed: gives the rows that lie there for an input.
        text: its program.
    """

    def __init__(
        self,
        name: str,
        late: Mapping[str, str],
        holding: Collection[str],
        landed: Callable[[str], Rows],
        text: str,
    ) -> None:
        self.name, self.late, self.holding, self._landed = name, late, holding, landed
        self.written = text
        """The program as it stands in its file."""
        self.state = State({name: [] for name in late})
        self.withheld: dict[str, Rows] = {}
        """Rows that wait for a correction, as it was told."""

    @property
    def done(self) -> int:
        """How many ticks are committed."""
        return self.state.done

    @property
    def text(self) -> str:
        """The program that serves."""
        return self.state.served[-1].text

    def landed(self, name: str, first: int = 0, end: int = TICKS) -> Rows:
        """The rows that lie there of the ticks from `first` to before `end`."""
        return of_ticks(self._landed(name), first, end)

    def read(self, name: str, end: int | None = None) -> Rows:
        """All rows that came with the ticks before `end`."""
        found: Rows = Counter()
        for rows in self.state.read[name][:end]:
            found += rows
        return found

    def gone(self, name: str) -> Rows:
        """Rows that were read, and do not lie there any more."""
        return self.read(name) - self.landed(name, 0, self.done)

    def changed(self, name: str) -> Rows:
        """Those of them that nobody has accepted."""
        return self.gone(name) - self.state.accepted.get(name, Counter())

    def surplus(self, name: str) -> Rows:
        """Rows of committed ticks that lie there, and were not read."""
        return self.landed(name, 0, self.done) - self.read(name)

    def waiting(self, name: str) -> Rows:
        """Those of them that are late."""
        return self.surplus(name) - self.withheld.get(name, Counter())

    @property
    def is_whole(self) -> bool:
        """Whether all that was read still lies there."""
        return not any(self.gone(name) for name in self.late)

    def outputs(self) -> list[Outputs]:
        """The outputs at every committed tick."""
        batches = [
            {
                name: [row[1:] for row in rows[tick].elements()]
                for name, rows in self.state.read.items()
            }
            for tick in range(self.done)
        ]
        return with_past(self.text, run(self.text, batches), self.state.served[-1].kept)

    def told(
        self, name: str, late: ByTick, changed: Sequence[tuple[int, int, int | None]]
    ) -> Iterator[str]:
        """What is wrong with what is told of an input: late rows by ticks, and which ticks (first
        and last) have changed, with how many rows they have lost.

        Rows of which the pages leave it open are late from now on if they are told.
        """
        surplus, lost = self.surplus(name), self.changed(name)
        self._forget_returned(name)
        ignored = self.state.ignored.get(name, Counter())
        withheld: Rows = Counter()
        for tick in sorted({*by_tick(surplus), *late}):
            rows = of_ticks(surplus, tick, tick + 1)
            may_wait = rows if by_tick(lost).get(tick) else rows & ignored
            withheld += _those_that_wait(rows, may_wait, late.get(tick, 0), f"{name}, tick {tick}")
            told = late.get(tick, 0)
            if not rows.total() - may_wait.total() <= told <= rows.total():
                yield f"`{name}`: {told} late rows of tick {tick} are told, and {shown(rows)} are"
        self.withheld[name] = withheld
        for first, last, removed in changed:
            rows = of_ticks(lost, first, last + 1)
            if (removed is not None and removed != rows.total()) or not rows:
                yield f"`{name}`: {removed} rows removed of ticks {first} to {last}: {shown(rows)}"
            lost = lost - rows
        if lost:
            yield f"`{name}`: nothing tells of rows that are gone: {shown(lost)}"

    def _forget_returned(self, name: str) -> None:
        state = self.state
        state.decided[name] = state.decided.get(name, Counter()) & self.surplus(name)
        away = by_tick(self.gone(name))
        ignored = state.ignored.get(name, Counter()) & self.surplus(name)
        state.ignored[name] = Counter({row: n for row, n in ignored.items() if row[0] in away})

    def undecided(self, name: str) -> Rows:
        """What of an input that refuses somebody has to decide on."""
        if self.late[name] != "refuse":
            return Counter()
        return (self.waiting(name) - self.state.decided.get(name, Counter())) + self.changed(name)

    def refuses(self, first: int | None = None) -> bool:
        """Whether somebody has to decide before a tick runs, or a correction from `first` on."""
        found = [row for name in self.late for row in self.undecided(name)]
        return any(first is None or row[0] < first for row in found)

    @property
    def is_held(self) -> bool:
        """Whether no tick runs since rows are gone, and nobody has accepted that."""
        return any(self.changed(name) for name in self.holding)

    def to_correct(self) -> int | None:
        """The first tick that is corrected before the next one runs."""
        names = [name for name, late in self.late.items() if late == "correct"]
        found = [row[0] for n in names for row in self.waiting(n) + self.changed(n)]
        return min(found, default=None)

    def tick(self, last: int) -> None:
        """The ticks up to `last` are committed together."""
        first, waiting = self.done, {name: self.waiting(name) for name in self.late}
        accepted = self.state.accepted
        for name, late in waiting.items():
            # A tick sees what has returned: once it goes again, somebody has to look again.
            accepted[name] = accepted.get(name, Counter()) & self.gone(name)
            self.state.arrived[name] = by_tick(late)
            self.state.began = first
            ticks = [self.landed(name, tick, tick + 1) for tick in range(first, last + 1)]
            ticks[0] = ticks[0] + late
            self.state.read[name] += ticks

    def correct(self, first: int, late: Mapping[str, ByTick]) -> Iterator[str]:
        """The ticks from `first` on are computed again, and so many rows came late with that one.

        Gives what is wrong with these numbers.
        """
        for name, ticks in self.state.read.items():
            before, done = self.read(name, first), self.done
            again = self.read(name) - before
            there = self.landed(name, 0, first)
            surplus, lost = there - before, before - there
            came: Rows = Counter()
            told = late.get(name, {})
            for tick in sorted({*by_tick(surplus), *told}):
                rows = of_ticks(surplus, tick, tick + 1)
                # What had arrived arrives again.
                may_wait = rows - again if by_tick(lost).get(tick) else Counter()
                number, at = told.get(tick, 0), f"{name}, tick {tick}"
                came += rows - _those_that_wait(rows, may_wait, number, at)
                if not rows.total() - may_wait.total() <= number <= rows.total():
                    yield (
                        f"`{name}`: {number} rows of tick {tick} came with the first corrected "
                        f"tick {first}, and {shown(rows)} are to come"
                    )
            self.state.read[name] = ticks[:first] + [
                self.landed(name, tick, tick + 1) for tick in range(first, done)
            ]
            self.state.read[name][first] += came
            self.state.arrived[name] = by_tick(came)
            self.state.began = first
            self.state.accepted[name] = of_ticks(self.state.accepted.get(name, Counter()), 0, first)
            self.state.decided[name] = Counter()
        self.state.served[:] = [one.up_to(first) for one in self.state.served]

    def accept(self) -> None:
        """Somebody accepts all that came and went."""
        for name in self.late:
            self.state.accepted[name] = self.gone(name)
            self.state.decided[name] = self.waiting(name)
            self.state.ignored[name] = self.surplus(name) - self.waiting(name)

    def copied(self) -> State:
        """The state as it is now."""
        return copy.deepcopy(self.state)


def of_ticks(rows: Rows, first: int, end: int) -> Rows:
    """The rows of the ticks from `first` to before `end`."""
    return Counter({row: n for row, n in rows.items() if first <= row[0] < end})


def by_tick(rows: Rows) -> ByTick:
    """How many there are of each tick."""
    found: Counter[int] = Counter()
    for row, number in rows.items():
        found[row[0]] += number
    return dict(sorted(found.items()))


def shown(rows: Rows) -> str:
    """The rows, for people."""
    return f"{rows.total()} ({', '.join(map(str, sorted(rows.elements(), key=repr)))})"


def of_values(rows: Iterable[Values]) -> list[Values]:
    """Rows of an output, to be compared."""
    return in_order([tuple(row) for row in rows])


def _those_that_wait(rows: Rows, may_wait: Rows, told: int, where: str) -> Rows:
    """Which rows of a tick wait for a correction, where so many are told as late."""
    if told >= rows.total():
        return Counter()
    if told <= (rows - may_wait).total() or len(may_wait) == 1:
        taken = rows.total() - told
        only = next(iter(may_wait), None)
        return may_wait if len(may_wait) != 1 or only is None else Counter({only: taken})
    raise UnclearError(f"{where}: {told} of {shown(rows)}")
