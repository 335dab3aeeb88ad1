"""Lives through stories: does each operation to real flows, and says what is wrong afterwards."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from hydro_core.settings import Settings
from hydrotick.project.settings import ProjectSettings
from tests.operating.asked import Declared
from tests.operating.hands import Hands
from tests.operating.landing import Place
from tests.operating.model import TICKS, Flow, Rows, State, UnclearError, of_values
from tests.operating.operations import LANDINGS, OPERATIONS, THOROUGH
from tests.operating.programs import Outputs, Values, outputs_of
from tests.operating.story import FEED, MAIN, Op, Setting, Story, WrongError


class World:
    """The flows of a story: as they are, and as they should be."""

    def __init__(self, setting: Setting, home: Path, hands: type[Hands] = Hands) -> None:
        self.setting = setting
        self.troubled: set[str] = set()
        """The flows of which something failed or was killed last: their records may say so."""
        is_fed = "flow" in setting.kinds.values()
        declared = {
            MAIN: {
                name: Declared(late, FEED)
                if setting.kinds[name] == "flow"
                else Declared(
                    late,
                    holds=name in setting.holds,
                    waits=name in setting.waits,
                    column=setting.columns.get(name, "tick"),
                )
                for name, late in setting.late.items()
            }
        }
        declared |= {FEED: {"a": Declared(setting.feed_late)}} if is_fed else {}
        self.hands = hands(home, declared, setting.sample_keys, setting.has_tables)
        self.behind: set[str] = set()
        """The flows whose tables may be behind: a process was killed, or a copy was put back."""
        self.places = {
            (flow, name): Place(
                self.hands.landing(flow, name), name, self._kind(flow, name), of.column
            )
            for flow, inputs in declared.items()
            for name, of in inputs.items()
            if not of.fed_by
        }
        self.flows = {
            flow: Flow(
                flow,
                {name: of.late for name, of in inputs.items()},
                [name for name, of in inputs.items() if of.holds],
                self._landed(flow),
                setting.versions_of(flow)[0],
            )
            for flow, inputs in declared.items()
        }
        self.copies: dict[str, State] = {}
        self.copied: dict[str, State] = {}
        """All flows as they were when the project was copied."""
        for flow in self.flows.values():
            self.write(flow)

    def write(self, flow: Flow) -> None:
        """The program of a flow lies there as it is written."""
        shards = self.setting.shards_of(flow.written) if flow.name == MAIN else 1
        self.hands.write(flow.name, flow.written, shards)

    def _kind(self, flow: str, name: str) -> str:
        return self.setting.kinds[name] if flow == MAIN else "parquet"

    def _landed(self, flow: str) -> Callable[[str], Rows]:
        def landed(name: str) -> Rows:
            place = self.places.get((flow, name))
            if place is not None:
                return place.rows()
            ticks = self.flows[FEED].outputs() if self.flows[FEED].done else []
            return Rows((tick, *row) for tick, found in enumerate(ticks) for row in found["o"])

        return landed

    def limit(self, flow: Flow) -> int:
        """How many ticks may run."""
        is_fed = flow.name == MAIN and FEED in self.flows
        waited = self.setting.waits if flow.name == MAIN else ()
        # Rows after the last tick, too: they are of a later one.
        there = [flow.landed(name, end=2 * TICKS) for name in waited]
        landed = [max((row[0] for row in rows), default=0) for rows in there]
        return min(self.flows[FEED].done if is_fed else TICKS, *landed, TICKS)

    def step(self, op: Op) -> Iterator[str]:
        """Does something, and gives what is wrong with what came of it."""
        flow = self.flows.get(op.flow)
        if flow is None:
            return
        place = self.places.get((op.flow, op.input))
        if op.what in LANDINGS:
            if place is not None:
                LANDINGS[op.what](place, op)
        else:
            found = list(OPERATIONS[op.what](self, flow, op))
            yield from found
            if found:
                return
        for each in self.flows.values():
            yield from self.judged(each, thorough=bool(op.kill) or op.what in THOROUGH)

    def judged(self, flow: Flow, *, thorough: bool = False) -> Iterator[str]:
        """What is wrong with a flow as it is now."""
        told = self.hands.status(flow.name)
        yield from self._status(flow, told.code, told.flow)
        if not flow.done:
            return
        for name in flow.late:
            yield from flow.told(name, told.late(name), told.changed(name))
            arrived = flow.state.arrived.get(name)
            if arrived is not None and told.arrived(name) != arrived:
                yield f"`{name}`: {told.arrived(name)} is told to have arrived late, not {arrived}"
        if not flow.state.served[-1].is_unreported:
            yield from _differences(flow, self.hands.outputs(flow.name, flow.text))
            if flow.name == MAIN and flow.name not in self.behind:
                yield from _of_tables(flow, self.hands.tables(flow.name, flow.text))
        if thorough:
            yield from self.hands.problems(flow.name)

    def _status(self, flow: Flow, code: int, told: Mapping[str, object]) -> Iterator[str]:
        may_run = flow.done if flow.is_held else self.limit(flow)
        wanted = {"committed": flow.done, "open": max(0, may_run - flow.done)}
        if flow.done:
            wanted["deployment"] = flow.state.served[-1].number
        for what, value in wanted.items():
            if told[what] != value:
                yield f"`{flow.name}`: status says {what}={told[what]}, and it is {value}"
        if flow.name not in self.troubled and (code or told["stopped"]):
            yield f"`{flow.name}`: status ends with {code}: {told['next']}"
        if not flow.done:
            return
        is_told, same = bool(told["undeployed"]), flow.written == flow.text
        maybe_same = self.setting.is_maybe_same(flow.written, flow.text)
        if (same and is_told) or not (maybe_same or is_told):
            yield f"`{flow.name}`: status says of changes: {told['undeployed']!r}"


def _differences(flow: Flow, found: Mapping[str, Sequence[Sequence[object]]]) -> Iterator[str]:
    """Which outputs are not what the program gives."""
    wanted: Sequence[Outputs] = flow.outputs()
    if set(found) != outputs_of(flow.text):
        yield f"`{flow.name}` has the outputs {sorted(found)}"
        return
    for output, ticks in found.items():
        for tick, rows in enumerate(ticks):
            should, has = wanted[tick][output], of_values(rows)  # type: ignore[arg-type]
            if has != should:
                yield f"`{output}` of `{flow.name}` at tick {tick} is {has}, not {should}"
                return


def _of_tables(flow: Flow, found: Mapping[str, Sequence[Values]]) -> Iterator[str]:
    """Which outputs that are tables are not what the program gives at the last tick."""
    wanted = flow.outputs()[-1]
    for output, rows in found.items():
        if of_values(rows) != wanted[output]:
            yield f"the table of `{output}` has {of_values(rows)}, not {wanted[output]}"


@contextmanager
def _holding(rows: int) -> Iterator[None]:
    """Processes hold so many stored rows at once, within it; 0: as ever."""
    if not rows:
        yield
        return
    settings = Settings().with_(held_rows=rows)
    with mock.patch.object(ProjectSettings, "core_with", return_value=settings):
        yield


def run(story: Story, home: Path, hands: type[Hands] = Hands) -> int:
    """Lives through a story, and gives how many of its operations could be judged.

    Raises:
        WrongError: something is not as it must be.
    """
    with _holding(story.setting.held):
        return _lived(story, World(story.setting, home, hands))


def _lived(story: Story, world: World) -> int:
    for number, op in enumerate(story.ops):
        try:
            problems = list(world.step(op))
        except UnclearError:
            return number
        except Exception as error:  # noqa: BLE001 - whatever a command ends with is told with the story
            problems = ["".join(traceback.format_exception(error))]
        if problems:
            raise WrongError(number, op, problems)
    return len(story.ops)
