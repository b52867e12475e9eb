"""The README tells the truth: its code runs, its files exist, its commands are commands."""

from __future__ import annotations

import re
from pathlib import Path

from dpaudit.cli import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_first_example_runs_and_refutes():
    (code, *_) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    result = names["result"]
    assert str(result).startswith("REFUTED")
    assert 2.8 <= result.certified_epsilon < 2.9


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
