"""Metrics are in the text format that Prometheus reads."""

from __future__ import annotations

import re

import yaml

from hydrotick.cli.worker import FLOW_METRICS, MetricFamily, _of_worker, as_text
from tests.pages.blocks import ALL

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(\{{{LABEL}(,{LABEL})*\}})? "
    r"(NaN|[+-]Inf|-?\d+(\.\d+)?(e[+-]?\d+)?)"
)
STATUS = {
    "takes": True,
    "running": [{"flow": "year"}, {"flow": "day"}],
    "waiting": [{"flow": "year"}],
    "processes": [{"memory_mb": 3}, {"memory_mb": 4}],
    "counts": {
        "ends": [["day", "done", 2], ["day", "gone", 1]],
        "seconds": [["day", 1.5]],
        "checks": [["day", "totals:unique", "error", 4]],
    },
}


def parsed(text: str) -> dict[str, str]:
    """The samples by name and labels; every line is one, or says what the name is."""
    found, told = {}, ""
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, _ = line[2:].split(" ", 2)
            assert word == ("TYPE" if told == f"HELP {name}" else "HELP"), line
            told = f"{word} {name}"
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample is not None, line
        assert told == f"TYPE {sample['name']}"
        of, _, value = line.rpartition(" ")
        assert of not in found
        found[of] = value
    assert text.endswith("\n")
    return found


def test_whatever_a_label_has_is_escaped() -> None:
    family = MetricFamily("a", 'says "so" \\ and\nthen', "counter")
    family.add(1.0, path='C:\\d "x"\nnext')
    text = as_text([family, MetricFamily("empty", "has no samples")])
    assert text.splitlines()[0] == r'# HELP a says "so" \\ and\nthen'
    assert parsed(text) == {r'a{path="C:\\d \"x\"\nnext"}': "1"}


def test_numbers() -> None:
    family = MetricFamily("a", "of all kinds")
    for number, value in enumerate((0, True, 2.5, 1e20, 1e-9, float("inf"), float("nan"))):
        family.add(value, number=str(number))
    found = list(parsed(as_text([family])).values())
    assert found == ["0", "1", "2.5", "100000000000000000000", "1e-09", "+Inf", "NaN"]


def test_the_alerts_on_the_page_are_about_metrics_that_there_are() -> None:
    (block,) = [block for block in ALL if block.file == "alerts.yaml"]
    rules = yaml.safe_load(block.text)["groups"][0]["rules"]
    asked = {name for rule in rules for name in re.findall(r"hydrotick_\w+", rule["expr"])}
    of_flows = {f"hydrotick_{name}" for name in FLOW_METRICS}
    assert asked <= of_flows | {family.name for family in _of_worker(STATUS)}
    assert len(asked) >= len(rules)


def test_the_worker_by_its_status() -> None:
    found = parsed(as_text(_of_worker(STATUS)))
    assert found["hydrotick_worker_up"] == "1"
    assert found["hydrotick_worker_waiting"] == "1"
    assert found['hydrotick_worker_flow_running{flow="day"}'] == "1"
    assert found["hydrotick_worker_memory_bytes"] == str(7 * 1024 * 1024)
    assert found['hydrotick_worker_work_total{flow="day",end="gone"}'] == "1"
    of = 'flow="day",check="totals:unique",severity="error"'
    assert found[f"hydrotick_worker_checks_failed_total{{{of}}}"] == "4"
    assert parsed(as_text(_of_worker({}))) == {"hydrotick_worker_up": "0"}
