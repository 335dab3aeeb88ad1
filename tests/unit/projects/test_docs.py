"""`hydrotick docs`: pages that are whole by themselves, of flows that never ran."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hydro_core.cli.main import run_command
from hydro_core.project.discover import found_in
from hydrotick.deploy.deployments import deployment_for
from tests.unit.projects.declared import declare_yaml

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """What a page links to, what can be linked to, and whether its tags are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [str(given["href"])] if "href" in given else []
        self.ids += [str(given["id"])] if "id" in given else []
        self.loads += [str(given["src"])] if "src" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HYDROTICK_HOME", "HYDROTICK_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    run_command(["init", str(tmp_path / "shop")])
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def test_a_page_has_all_of_a_flow_and_loads_nothing(shop: Path) -> None:
    assert run_command(["docs", "totals", "--out", "site"]) == 0
    text = (shop / "site" / "totals.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not page.open
    assert not page.loads
    assert not re.search(r"(https?:)?//(?!www\.w3\.org)[a-z]+\.", text)
    inner = [link.removeprefix("#") for link in page.links if link.startswith("#")]
    assert len(inner) > 10
    assert set(inner) <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    outer = {link for link in page.links if not link.startswith("#")}
    assert all((shop / "site" / link).is_file() for link in outer)
    for part in (
        "What every user has paid so far.",
        "payments.amount",
        "running_aggregate",
        "total is at least 0",
        "equals_program",
        "no_late_rows",
    ):
        assert part in page.text
    assert "<svg" in text
    assert "none yet: this is what the first tick deploys" in page.text


def test_each_operator_of_the_plan_is_beside_its_line(shop: Path) -> None:
    (shop / "assets" / "totals" / "totals.hydro").write_text(
        'payments = source("user string, amount long")\n'
        'payments -> persist() -> aggregate(by="user", total=sum("amount"), '
        'largest=max("amount"))\n'
        "  -> delta() -> totals  # <b> & more\n",
        encoding="utf-8",
    )
    run_command(["docs", "--out", "site"])
    text = (shop / "site" / "totals.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'<tr id="totals.hydro-(\d)">(.*?)</tr>', text, re.DOTALL))
    assert "<b>payments</b>" in rows["1"]
    assert "running_aggregate" in rows["2"]
    assert "<b>totals</b> output" in rows["3"]
    assert "# &lt;b&gt; &amp; more" in rows["3"]


def test_columns_say_what_the_program_says_of_them(shop: Path) -> None:
    program = shop / "assets" / "totals" / "totals.hydro"
    text = program.read_text(encoding="utf-8")
    program.write_text(
        text.replace('("user string, ', '(\n  "user string, "  # who <b>pays\n  "'),
        encoding="utf-8",
    )
    run_command(["docs", "totals", "--out", "site"])
    text = (shop / "site" / "totals.html").read_text(encoding="utf-8")
    assert text.count("<td>who &lt;b&gt;pays</td>") == 2
    assert text.count("what it is</th>") == 2


def test_a_flow_in_shards_is_told_as_its_first_tick_deploys_it(shop: Path) -> None:
    run_command(["docs", "totals", "--out", "site"])
    whole = Page((shop / "site" / "totals.html").read_text(encoding="utf-8"))
    declared = shop / "assets" / "totals" / "asset.yaml"
    declared.write_text(f"{declared.read_text(encoding='utf-8')}shards: 2\n", encoding="utf-8")
    (made,) = (flow for flow in found_in(shop).flows)
    run_command(["docs", "totals", "--out", "site"])
    page = Page((shop / "site" / "totals.html").read_text(encoding="utf-8"))
    deployment = deployment_for(made)
    assert len(deployment.plan.slots) == 2
    for slot in deployment.plan.slots:
        assert slot.id in page.text
        assert slot.id not in whole.text
    assert deployment.sharding is not None
    assert deployment.sharding.says in page.text
    assert f"{deployment.costs.after:,.0f} rows by the model" in page.text


def test_all_flows_are_listed_and_what_is_wrong_is_told(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = declare_yaml(shop, "wrong")
    (wrong / "totals.hydro").write_text("x = sourc('n long')\n", encoding="utf-8")
    declare_yaml(shop, "undeclared", more="colour: red\n")
    capsys.readouterr()
    assert run_command(["docs", "--out", "site", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert set(told["broken"]) == {"wrong", "undeclared"}
    assert [Path(file).name for file in told["files"]] == ["totals.html", "index.html"]
    index = Page((shop / "site" / "index.html").read_text(encoding="utf-8"))
    assert "totals.html" in index.links
    assert "Flows that cannot run" in index.text
    assert "sourc" in index.text
    assert "colour" in index.text


def test_neither_spark_nor_dagster_is_loaded(shop: Path) -> None:
    program = (
        "import sys; from hydro_core.cli.main import main; main(['docs', '--out', 'site']); "
        "print([m for m in ('pyspark', 'dagster', 'great_expectations') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE)
    assert done.stdout.decode().splitlines()[-1] == "[]"
