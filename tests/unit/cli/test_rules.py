"""Commands about rules: what they become, how messages are delivered, how they are cut."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hydro_core import Flow
from hydro_core.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "rules"
REACH = """
.input edge(src: long, dst: long)
.output path
edge(x, y)@next :- edge(x, y).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z), z < limit.
"""
ACKS = """
.input request(c: long, n: long)
.output done
ack(c, n)@async :- request(c, n).
done(c) :- ack(c, _).
done(c)@next :- done(c).
"""
EDGES = [{"edge": [{"src": 1, "dst": 2}]}, {"edge": [{"src": 2, "dst": 3}, {"src": 2, "dst": 9}]}]
REQUESTS: list[dict[str, Any]] = [{"request": [{"c": 1, "n": 5}]}, {}, {}, {}, {}, {}]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("reach.dl").write_text(REACH)
    Path("acks.dl").write_text(ACKS)
    Path("edges.json").write_text(json.dumps(EDGES))
    Path("requests.json").write_text(json.dumps(REQUESTS))
    shutil.copytree(EXAMPLES, "examples")
    return tmp_path


def printed(capsys: Capture, *words: str) -> Any:
    assert main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


def test_rules_run_with_parameters(here: Path, capsys: Capture) -> None:
    found = printed(capsys, "run", "reach.dl", "--ticks", "edges.json", "--param", "limit=5")
    paths = [[(row["x"], row["y"]) for row in tick["path"]] for tick in found["ticks"]]
    assert paths == [[(1, 2)], [(1, 2), (1, 3), (2, 3), (2, 9)]]


def test_what_is_kept_whole_is_incremental_and_what_may_go_is_told(
    here: Path, capsys: Capture
) -> None:
    """Recursion over what only grows starts from what is new; a fact that may go has a note."""
    words = ["optimize", "reach.dl", "--param", "limit=5", "--strict"]
    plan = printed(capsys, *words, "--format", "json")
    assert plan["notes"] == []
    assert "(old path_new)" in plan["outputs"]["path"]
    kept = "edge(x, y)@next :- edge(x, y)."
    Path("reach.dl").write_text(
        REACH.replace(kept, ".input cut(a: long)\nedge(x, y)@next :- edge(x, y), !cut(x).")
    )
    assert main(words) == 1
    told = capsys.readouterr().err
    assert "`edge` reads all that holds in each tick: this rule carries it" in told
    assert "reach.dl:5:1" in told


def test_what_rules_become_runs_and_gives_the_same(here: Path, capsys: Capture) -> None:
    assert main(["rules", "examples/paxos.dl"]) == 0
    text = capsys.readouterr().out
    Path("paxos.hydro").write_text(text)
    Path("ticks.json").write_text(json.dumps([{}] * 8))
    # As written: plans of rules are judged by the laws, and that of Paxos takes ten seconds.
    run = "run", "--no-optimize", "--ticks", "ticks.json"
    written = printed(capsys, *run, "paxos.hydro")
    assert written == printed(capsys, *run, "examples/paxos.dl")
    assert written["ticks"][-1]["learned"] == [{"v": "red"}]
    again = printed(capsys, "rules", "examples/paxos.dl", "--format", "json")
    assert again["program"] == text


def test_a_column_that_is_a_word_of_python_cannot_be_printed(here: Path, capsys: Capture) -> None:
    rules = ".decl next(class: long)\nnext(x + 1) :- course(x).\n.input course(x: long)\n"
    Path("words.dl").write_text(rules)
    Path("ticks.json").write_text(json.dumps([{"course": [{"x": 1}]}]))
    assert main(["rules", "words.dl"]) == 1
    told = capsys.readouterr().err
    assert "`class` is a word of Python" in told
    assert "words.dl:2:1" in told
    assert "call it `class_` in `.decl`" in told
    found = printed(capsys, "run", "words.dl", "--ticks", "ticks.json")
    assert found["ticks"] == [{"next": [{"class": 2}]}]
    Path("words.dl").write_text(rules.replace("class:", "class_:"))
    assert main(["rules", "words.dl"]) == 0
    assert "class_=" in capsys.readouterr().out


def test_jobs_name_files_of_rules(here: Path, capsys: Capture) -> None:
    job = {"name": "acks", "file": "acks.dl", "ticks": REQUESTS}
    Path("jobs.jsonl").write_text(json.dumps(job))
    found = printed(capsys, "run", "--batch", "jobs.jsonl")
    assert found["ticks"][1] == {"done": [{"c": 1}]}


def test_deliveries(here: Path, capsys: Capture) -> None:
    run = ["run", "acks.dl", "--ticks", "requests.json"]
    following = [tick["done"] for tick in printed(capsys, *run)["ticks"]]
    assert following == [[], *[[{"c": 1}]] * 5]
    seeds = [printed(capsys, *run, "--deliver", seed)["ticks"] for seed in ("1", "1", "2", "3")]
    assert seeds[0] == seeds[1]
    first = {next(i for i, tick in enumerate(found) if tick["done"]) for found in seeds}
    assert len(first) > 1
    assert seeds[0][0]["ack_async"] == [{"c": 1, "n": 5}]
    late = [*REQUESTS[:4], {"ack": [{"c": 1, "n": 5}]}]
    Path("late.json").write_text(json.dumps(late))
    given = printed(capsys, "run", "acks.dl", "--ticks", "late.json", "--deliver", "given")
    assert [bool(tick["done"]) for tick in given["ticks"]] == [False] * 4 + [True]
    with pytest.raises(SystemExit, match="2"):
        main([*run, "--deliver", "soon"])
    Path("p.hydro").write_text("a -> out\n")
    assert main(["run", "p.hydro", "--ticks", "requests.json", "--deliver", "1"]) == 1
    assert "holds no rules" in capsys.readouterr().err


def test_a_protocol_is_cut_as_it_is_cut_by_hand(here: Path, capsys: Capture) -> None:
    """Acceptors by themselves, proposers by ballots, votes by values; transactions by their own."""
    paxos = printed(capsys, "partition", "examples/paxos.dl", "--format", "json")
    assert paxos["keys"] == [{"prepare": ["a"], "accept": ["a"], "promise": ["b"], "vote": ["v"]}]
    commit = printed(capsys, "partition", "examples/two_phase_commit.dl", "--format", "json")
    assert commit["keys"] == [{"vote": ["t"], "timeout": ["t"]}]
    log = printed(capsys, "partition", "examples/multi_paxos.dl", "--format", "json")
    leader = ("command", "promise", "promised_count", "promised_log", "promised_none")
    assert {"prepare": ["a"], "accept": ["a"], "vote": ["place"]} | {
        name: ["b"] for name in leader
    } in log["keys"]


def test_schedules_of_a_broken_protocol(here: Path, capsys: Capture) -> None:
    text = Path("examples/paxos.dl").read_text()
    Path("half.dl").write_text(text.replace("quorum(2)", "quorum(1)"))
    explore = ["--schedules", "2000", "--out", "found.json"]
    assert main(["simulate", "half.dl", *explore]) == 1
    said = capsys.readouterr().out
    assert "half: what must never hold does, in schedule" in said
    assert ".never chosen(b1, v1), chosen(b2, v2), v1 != v2" in said
    assert "half.dl:" in said
    # What was found is a run like any other, and shows it.
    run = ["run", "half.dl", "--ticks", "found.json", "--deliver", "given"]
    assert printed(capsys, *run)["ticks"]
    assert main(["simulate", "half.dl", *explore, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["violation"]["ticks"] == json.loads(Path("found.json").read_text())["ticks"]
    assert found["violation"]["values"]["v1"] != found["violation"]["values"]["v2"]


def test_schedules_with_what_comes_in(here: Path, capsys: Capture) -> None:
    words = ["simulate", "acks.dl", "--schedules", "50", "--ticks", "requests.json"]
    assert main(words) == 1
    assert "says nothing that must never hold" in capsys.readouterr().err
    Path("acks.dl").write_text(ACKS + ".never ack(c, n), !done(c).\n")
    assert main(words) == 0
    assert "what must never hold never does" in capsys.readouterr().out
    Path("acks.dl").write_text(ACKS + ".never done(c), request(_, n), n > 5.\n")
    two = [*REQUESTS[:3], {"request": [{"c": 2, "n": 6}]}]
    Path("requests.json").write_text(json.dumps(two))
    assert main(words) == 1
    assert "comes in  request(2, 6)" in capsys.readouterr().out


def test_a_flow_is_loaded_from_rules(here: Path) -> None:
    outputs = [*Flow.load("acks.dl").run(REQUESTS[:2])]
    assert outputs == [{"done": []}, {"done": [{"c": 1}]}]
