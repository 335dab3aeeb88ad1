from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from hydro_core.cli.main import main

PROGRAM = "a -> persist() -> out\na -> sort_by_key(lambda x: -x) -> down\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.hydro").write_text(PROGRAM)
    (tmp_path / "t.json").write_text(
        '{"schemas": {"a": "long"}, "ticks": [{"a": [2, 3]}, {}, {"a": [1]}]}'
    )
    return tmp_path


def test_ticks(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.hydro", "--ticks", "t.json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ticks": [
            {"out": [2, 3], "down": [3, 2]},
            {"out": [2, 3], "down": []},
            {"out": [1, 2, 3], "down": [1]},
        ]
    }


def test_shards(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.hydro", "--ticks", "t.json"]) == 0
    whole = capsys.readouterr().out
    assert main(["run", "p.hydro", "--ticks", "t.json", "--shards", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.out == whole
    assert printed.err == "2 shards: each input by its whole items; sorted again: down\n"


def test_what_cannot_be_cut_is_refused_with_the_operator_and_a_cure(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.hydro").write_text("a -> cross(right=b) -> cross(right=c) -> cross(right=d) -> out")
    schemas = dict.fromkeys("abcd", "long")
    (here / "t.json").write_text(json.dumps({"schemas": schemas, "ticks": [{"b": [1]}]}))
    words = ["run", "p.hydro", "--ticks", "t.json", "--shards", "2"]
    assert main([*words, "--format", "json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["operator"], error["line"]) == ("config", "cross", 1)
    assert "`--replicate a --replicate b --replicate c`" in error["help"]
    assert main([*words, "--replicate", "a", "--replicate", "b", "--replicate", "c"]) == 0


def test_files_in_shards(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.csv").write_text("v,t\n1,0\n2,0\n3,1\n")
    (here / "p.hydro").write_text('a = source("v long"); a -> persist() -> out')
    words = ["run", "p.hydro", "--input", "a=a.csv:t", "--shards", "2", "--out"]
    assert main([*words, "cut"]) == 0
    rows = pyarrow.parquet.read_table("cut/out").to_pylist()
    assert [(row["tick"], row["v"]) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]


def test_a_list_of_ticks_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "t.json").write_text('[{"a": [1]}]')
    assert main(["run", "p.hydro", "--ticks=t.json", "--no-optimize", "--range"]) == 0
    assert json.loads(capsys.readouterr().out)["ticks"] == [{"out": [1], "down": [1]}]


@pytest.mark.parametrize(
    ("ticks", "code"),
    [
        ("{", "input"),
        ("3", "input"),
        ('{"tick": []}', "input"),
        ("[3]", "input"),
        ('[{"a": 3}]', "input"),
        ('[{"b": []}]', "input"),
        ('[{"a": [1]}, {"a": [9223372036854775808]}]', "input"),
        ('{"schemas": {"a": "lung"}, "ticks": []}', "input"),
        ('{"schemas": {"b": "long"}, "ticks": []}', "input"),
        ('{"schemas": [], "ticks": []}', "input"),
        ("[]", "input"),
        ('[{"a": ["x"]}]', "type"),
    ],
)
def test_wrong_ticks(here: Path, capsys: pytest.CaptureFixture[str], ticks: str, code: str) -> None:
    (here / "t.json").write_text(ticks)
    assert main(["run", "p.hydro", "--ticks", "t.json", "--format", "json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["code"] == code
    assert said.err == ""


def test_a_failed_tick_ends_the_run_without_partial_output(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.hydro").write_text("a\n  -> map(lambda x: 6 // x) -> out")
    (here / "t.json").write_text('[{"a": [1]}, {"a": [2, 0]}]')
    assert main(["run", "p.hydro", "--ticks", "t.json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "p.hydro:2:" in said.err
    assert "ZeroDivisionError" in said.err
    assert main(["run", "p.hydro", "--ticks", "t.json", "--format=json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["line"], error["operator"]) == ("runtime", 2, "map")
    assert "tick 1" in error["message"]
    assert " 0:" in error["message"]


def test_debug_shows_where_an_error_came_from(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "p.hydro").write_text("a -> map(lambda x: 6 // x) -> out")
    (here / "t.json").write_text('[{"a": [0]}]')
    assert main(["run", "p.hydro", "--ticks", "t.json"]) == 1
    assert "Traceback" not in capsys.readouterr().err
    for words in (["--debug", "run"], ["run", "--debug"]):
        assert main([*words, "p.hydro", "--ticks", "t.json", "--format", "json"]) == 1
        said = capsys.readouterr()
        assert "Traceback" in said.err
        assert json.loads(said.out)["error"]["code"] == "runtime"


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "p.hydro"],
        ["run", "--ticks", "t.json"],
        ["run", "p.hydro", "--batch", "jobs.jsonl"],
        ["run", "p.hydro", "--ticks", "t.json", "--input", "a=x.csv"],
        ["run", "p.hydro", "--ticks", "t.json", "--out", "x"],
        ["run", "p.hydro", "--ticks", "t.json", "--engine", "storm"],
        ["run", "p.hydro", "--ticks", "t.json", "--schema", "a=long"],
        ["run", "p.hydro", "--ticks", "t.json", "--ticks-at-once", "2"],
        ["run", "p.hydro", "--ticks", "t.json", "--on", "a=x"],
        ["run", "p.hydro", "--ticks", "t.json", "--replicate", "a"],
        ["run", "p.hydro", "--ticks", "t.json", "--shards", "2", "--on", "a"],
        ["run", "p.hydro", "--input", "a=x.csv", "--ticks-at-once", "2"],
        ["run", "p.hydro", "--input", "a=x.csv", "--engine", "spark", "--ticks-at-once", "0"],
    ],
)
def test_misuse(here: Path, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2


def test_what_is_not_there_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "p.hydro", "--ticks", "nope.json"]) == 1
    assert "error[input]" in capsys.readouterr().err


def batch(here: Path, capsys: pytest.CaptureFixture[str], *jobs: Any) -> list[dict[str, Any]]:
    folder = here / "folder"
    folder.mkdir()
    (folder / "q.hydro").write_text("b -> q")
    lines = (job if isinstance(job, str) else json.dumps(job) for job in jobs)
    (folder / "jobs.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["run", "--batch", "folder/jobs.jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_batch(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = batch(
        here,
        capsys,
        {"name": "one", "program": "a -> out", "schemas": {"a": "long"}, "ticks": [{"a": [1]}]},
        {"name": "two", "program": "a -> frobnicate() -> out", "ticks": []},
        {"name": "three", "file": "q.hydro", "ticks": [{"b": ["x"]}, {}]},
        {"name": "four", "program": "a -> map(lambda x: 1 // x) -> out", "ticks": [{"a": [0]}]},
        "not JSON",
        {"name": "six", "ticks": []},
        {"name": "seven", "file": "nope.hydro", "ticks": []},
        {"name": 8, "program": "source_iter([1]) -> out", "ticks": [{}]},
    )
    assert answers[0] == {"name": "one", "ticks": [{"out": [1]}]}
    assert answers[2] == {"name": "three", "ticks": [{"q": ["x"]}, {"q": []}]}
    assert answers[7] == {"name": 8, "ticks": [{"out": [1]}]}
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes[:6] == [None, "unknown-operator", None, "runtime", "input", "input"]
    assert codes[6] is not None
    assert answers[3]["name"] == "four"


def test_jobs_end_at_line_feeds_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A CR between the tokens of a line is a space of JSON, and U+2028 is text."""
    text = "a\u2028b\u2029c\u0085d"
    job = {"name": text, "program": "a -> out", "ticks": [{"a": [text]}]}
    written = json.dumps(job, ensure_ascii=False)
    (here / "jobs.jsonl").write_bytes(f"{written}\r\n{{\r{written[1:]}\n".encode())
    assert main(["run", "--batch", str(here / "jobs.jsonl")]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]
    assert answers == [{"name": text, "ticks": [{"out": [text]}]}] * 2


def test_a_bug_in_one_job_does_not_end_the_others(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("hydro_core.cli.run.run_json", broken)
    job = {"name": "one", "program": "source_iter([1]) -> out", "ticks": [{}]}
    jobs = here / "jobs.jsonl"
    jobs.write_text(json.dumps(job) + "\n" + json.dumps({**job, "name": "two"}))
    assert main(["run", "--batch", str(jobs)]) == 0
    said = capsys.readouterr()
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert [a["name"] for a in answers] == ["one", "two"]
    assert {(a["error"]["code"], a["error"]["message"]) for a in answers} == {
        ("runtime", "internal error")
    }
    assert "KeyError" in said.err


def files_of_tests(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "p.hydro").write_text(
        "a -> sort_by_key(lambda r: -r.v) -> down\na -> aggregate(n=count()) -> n"
    )
    (here / "a.csv").write_text("day,v\n2024-01-01,1\n2024-01-03,2\n2024-01-01,3\n")
    words = ["run", "p.hydro", "--input", "a=a.csv:day", "--schema", "a=v long"]
    assert main([*words, "--format", "json"]) == 0
    said = capsys.readouterr()
    rows = [{"down": 2, "n": 1}, {"down": 0, "n": 1}, {"down": 1, "n": 1}]
    assert json.loads(said.out) == {"ticks": rows}
    assert "tick 3 of 3 (2024-01-03T00:00:00Z), in: a 1; out: down 1, n 1" in said.err
    assert main([*words, "--every", "1mo", "--out", "results"]) == 0
    table = pyarrow.parquet.read_table(here / "results" / "down")
    assert table.to_pylist() == [
        {"tick": 0, "v": v, "position": i} for i, v in enumerate([3, 2, 1])
    ]
    assert "3 rows" in capsys.readouterr().out


def test_an_input_that_the_program_does_not_have(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "b.csv").write_text("item\n1\n")
    assert main(["run", "p.hydro", "--input", "b=b.csv"]) == 1
    assert "error[input]: `b` of `--input` is not an input" in capsys.readouterr().err
    # and one that gets no file has no schema: it may be a misspelling
    (here / "p.hydro").write_text("a -> union(c) -> out")
    assert main(["run", "p.hydro", "--input", "a=b.csv"]) == 1
    assert "error[input]: `c`" in capsys.readouterr().err
