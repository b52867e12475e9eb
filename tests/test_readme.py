"""README and guide tell the truth: their code runs, files exist, commands are commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpaudit.ledger.attempt import Power
from dpaudit.ledger.attempts import Ledger
from dpaudit.ledger.paper import Statement
from dpaudit.ledger.rows import LedgerVerdict
from dpaudit.ledger.statements import marked
from dpaudit.run.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/guide.md", "docs/measured.md", "ARCHITECTURE.md", "CONTRIBUTING.md")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


GUIDE = text_of("docs/guide.md")


def example(page, number):
    """Run one block of Python of a page."""
    names = {}
    code = re.findall(r"```python\n(.*?)```", text_of(page), flags=re.DOTALL)[number]
    exec(compile(code, page, "exec"), names)
    return names


def test_first_example_runs_and_refutes_as_shown(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = example("README.md", 0)
    shown = re.search(r"```text\n(REFUTED.*?)```", text_of("README.md"), re.DOTALL)[1]
    for line in shown.splitlines():
        assert line.removesuffix(", ...").removesuffix("; ...") in str(names["result"])
    result = names["result"]
    assert str(result).startswith("REFUTED")
    assert 2.8 <= result.certified_epsilon < 2.9
    assert "certified lower bound" in (tmp_path / "profile.svg").read_text(encoding="utf-8")


def test_audits_look_where_the_guide_says(capsys):
    example("docs/guide.md", 0)
    where = "portfolio(n_users=20, m=8): 27 pairs and 7 spaces, "
    assert capsys.readouterr().out.startswith(where)


def test_mutants_are_made_and_killed(capsys):
    result = example("docs/guide.md", 1)["result"]
    assert result.verdict == "NOT REFUTED"
    printed = capsys.readouterr().out
    assert "2 calls for all draws" in printed
    assert "without numpy.clip" in printed


def test_sharper_instruments_run(capsys):
    example("docs/guide.md", 2)
    printed = capsys.readouterr().out
    assert "epsilon is at least 1.1" in printed
    assert "draws per dataset refute the claim epsilon = 1" in printed


def test_few_runs_one_run_and_stored_outputs_are_refuted(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    example("docs/guide.md", 3)
    printed = capsys.readouterr().out
    assert printed.count("REFUTED") == 3
    assert "guessing left where" in printed
    assert "drawn elsewhere: 300 and 280 outputs" in printed
    assert (tmp_path / "one_run.svg").stat().st_size > 1000


def test_check_of_a_statement_runs():
    jensen = example("docs/guide.md", 4)["jensen"]
    mark = marked(jensen)
    assert mark is not None
    ledger = Ledger(Statement(mark.id, "paper", text=mark.text), seed=1)
    jensen(ledger)
    result = ledger.result()
    assert (result.verdict, result.power) == (LedgerVerdict.HOLDS, Power.KILLED)
    assert 0.99 < result.tightest <= 1 + 1e-9


@pytest.mark.parametrize("page", PAGES)
def test_linked_files_exist(page):
    for target in re.findall(r"\]\(([^)#]+)\)", text_of(page)):
        assert ((ROOT / page).parent / target).exists(), target


def test_named_commands_and_options_exist():
    for name, command in cli.commands.items():
        assert f"dpaudit {name}" in GUIDE
        documented = GUIDE.partition("## Commands")[2].partition("```\n")[0]
        for option in re.findall(rf"dpaudit {name}(.*?)(?=\ndpaudit|\Z)", documented, re.DOTALL):
            for flag in re.findall(r"--[a-z-]+", option):
                assert any(flag in p.opts for p in command.params), (name, flag)
