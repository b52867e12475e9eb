"""The README tells the truth: its code runs, its files exist, its commands are commands."""

from __future__ import annotations

import re
from pathlib import Path

from dpaudit.ledger.attempts import Ledger
from dpaudit.ledger.rows import LedgerVerdict, Power
from dpaudit.ledger.statements import marked
from dpaudit.run.cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def example(number, names=None):
    """Run one block of Python, with what earlier blocks defined."""
    names = {} if names is None else names
    code = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[number]
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_first_example_runs_and_refutes():
    names = example(0)
    result = names["result"]
    assert str(result).startswith("REFUTED")
    assert 2.8 <= result.certified_epsilon < 2.9


def test_sharper_instruments_run(capsys):
    example(2, example(0))
    printed = capsys.readouterr().out
    assert "epsilon is at least 1.1" in printed
    assert "draws per dataset refute the claim epsilon = 1" in printed


def test_check_of_a_statement_runs():
    jensen = example(3)["jensen"]
    mark = marked(jensen)
    assert mark is not None
    ledger = Ledger(mark.row, seed=1)
    jensen(ledger)
    result = ledger.result()
    assert (result.verdict, result.power) == (LedgerVerdict.HOLDS, Power.KILLED)
    assert 0.99 < result.tightest <= 1 + 1e-9


def test_linked_files_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_named_commands_and_options_exist():
    for name, command in cli.commands.items():
        assert f"dpaudit {name}" in README
        documented = README.partition("## Commands")[2].partition("```\n")[0]
        for option in re.findall(rf"dpaudit {name}(.*?)(?=\ndpaudit|\Z)", documented, re.DOTALL):
            for flag in re.findall(r"--[a-z-]+", option):
                assert any(flag in p.opts for p in command.params), (name, flag)
