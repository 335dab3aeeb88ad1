"""How functions run is said without a Spark, and is what the compiler does with one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydro_core.errors import TypeProblem
from hydro_core.spark.lower.explained import runtime
from hydro_core.types.ddl import parse_ddl
from tests.spark.cases import CASES
from tests.support.functions import text

PROGRAM = """rows = source("k string, v long, at date")
rows -> map(lambda r: {"k": r.k.upper(), "v": r.v // 2}) -> mapped
rows -> filter(lambda r: r.v > 1 and
   f"{r.v:^5}" != "a") -> filtered
rows -> fold((0, ""), lambda s, r: (s[0] + r.v if r.v else s[0], max(s[1], r.k)),
  commutative=True) -> totals
rows -> reduce_keyed(lambda a, b: a if a.at > b.at else b, by="k", commutative=True) -> last
rows -> fold(0, lambda s, r: s * 2 + r.v, commutative=True) -> odd
rows -> fold_keyed("", lambda s, r: s + f"{r.v:x}", by="k", commutative=True) -> hexadecimal
rows -> aggregate(by="k", n=sum(lambda r: r.v * 2)) -> doubled
rows -> sort_by_key(lambda r: r.at) -> scan(0, lambda s, r: s + r.v) -> so_far
rows -> inspect(lambda r: r) -> seen
"""


@pytest.mark.parametrize("name", CASES)
def test_the_compiler_says_it_without_a_spark(name: str) -> None:
    case = CASES[name]
    item = parse_ddl(case.ddl)
    for sources, how in ((case.compiled, "column"), (case.python, "arrow udf")):
        for source in sources.strip().splitlines():
            try:
                found = runtime(text(source.strip()), (item,))
            except TypeProblem:
                continue
            assert found.how == how, source


def test_check_says_how_every_function_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.hydro"
    file.write_text(PROGRAM)
    assert main(["check", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["functions"]
    gathered = "over the items of a group, gathered in any order"
    assert [(f["operator"], f["runs_as"], f["why"], f["why_line"]) for f in found] == [
        ("map_1", "column", None, None),
        ("filter_1", "arrow udf", "a format specification", 4),
        ("fold_1", "aggregate", None, None),
        ("reduce_keyed_1", "column", gathered, None),
        ("fold_2", "column", gathered, None),
        ("fold_keyed_1", "arrow udf", f"{gathered}: a format specification", 9),
        ("aggregate_1", "column", None, None),
        ("sort_by_key_1", "column", None, None),
        ("scan_1", "arrow udf", "`scan` goes from item to item", None),
        ("inspect_1", "nowhere", "Spark gives no place to look from", None),
    ]
    assert main(["check", str(file)]) == 0
    assert "arrow udf  a format specification (line 4)" in capsys.readouterr().out


def test_a_condition_of_pairs_is_one_of_two_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.hydro"
    file.write_text(
        'a = source("k long, x long")\nb = source("k long, y long")\n'
        'a -> join(b, on="k", where=lambda l, r: l.x < r.y) -> out\n'
        'a -> join(b, suffix="_r", where=lambda l, r: f"{l.x:^5}" < f"{r.y:^5}") -> texts\n'
    )
    assert main(["check", str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["functions"]
    assert [f["runs_as"] for f in found] == ["column", "arrow udf"]


def test_no_jvm_is_started(tmp_path: Path) -> None:
    file = tmp_path / "p.hydro"
    file.write_text(PROGRAM)
    script = (
        "import sys; from hydro_core.cli.main import main; status = main(['check', sys.argv[1]]);"
        "from pyspark import SparkContext; assert SparkContext._gateway is None; sys.exit(status)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr.decode()
