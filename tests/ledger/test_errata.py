"""Tests that each written erratum is short, and that its programs show what it says."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

from dpaudit.ledger.paper import paper_at

ROOT = Path(__file__).parents[2]
PAPERS = sorted(path.parent for path in ROOT.glob("audits/*/erratum.md"))
papers = pytest.mark.parametrize("folder", PAPERS, ids=lambda folder: folder.name)


def programs_of(folder):
    return runpy.run_path(str(folder / "counterexamples.py"))["COUNTEREXAMPLES"]


@papers
def test_every_program_shows_a_counterexample(folder):
    for program in programs_of(folder):
        words, smaller, larger = program()
        assert smaller > larger, f"{program.__name__}: {words}"


@papers
def test_the_text_names_every_program_and_no_other(folder):
    text = (folder / "erratum.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]\w+)`", text))
    assert named == {program.__name__ for program in programs_of(folder)}


@papers
def test_programs_need_only_numpy(folder):
    tree = ast.parse((folder / "counterexamples.py").read_text(encoding="utf-8"))
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    assert set(names) <= {"collections", "fractions", "itertools", "math", "numpy", "__future__"}


@papers
def test_an_erratum_has_at_most_four_pages(folder):
    typst = pytest.importorskip("typst", reason="needs dpaudit[pdf]")
    from dpaudit.ledger.erratum import as_typst

    pages = typst.compile(
        as_typst((folder / "erratum.md").read_text(encoding="utf-8")), format="png", ppi=20.0
    )
    assert len(pages if isinstance(pages, list) else [pages]) <= 4


def test_images_of_an_erratum_become_links_but_not_in_code():
    pytest.importorskip("pypandoc", reason="needs dpaudit[pdf]")
    from dpaudit.ledger.erratum import as_typst

    found = as_typst("![secret](/etc/passwd)\n\n| a |\n|--|\n| ![b](c.png) `![d](e)` |\n").decode()
    assert "image(" not in found
    assert '#link("/etc/passwd")[secret]' in found
    assert "`![d](e)`" in found


@papers
def test_rows_of_an_erratum_are_statements_of_the_paper(folder):
    paper = paper_at(folder / "ledger_.py")
    assert set(paper.erratum.rows) <= set(paper.rows)
