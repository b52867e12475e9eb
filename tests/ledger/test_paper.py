"""Tests of statements and conventions of a paper in Markdown, and of the mark of a check."""

from __future__ import annotations

import pytest

from dpaudit import ArgumentError, StoreError
from dpaudit.ledger.paper import Convention, Statement, paper_at, read_paper
from dpaudit.ledger.rows import LedgerVerdict, StatementResult, shaken
from dpaudit.ledger.statements import marked, statement
from dpaudit.properties.attempt import Attempt, Method

TEXT = """# A paper (its authors)

Words that nobody reads.

## Conventions

- delta <= 1/2: a larger one allows
  to publish half of the time.
- n >= 2: one user has no neighbour.

## toy.a: Lemma 1, Section 2

|x| <= 1, for all
x of the domain

$$\\lvert x \\rvert
\\le 1$$

> exactly so: "one"

- kind: lemma
- hides: C

## toy.b

y follows

- rests on: toy.a
"""


@pytest.fixture
def table(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()

    def write(text):
        path = folder / "statements.md"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_paper_is_read_whole(table):
    paper = read_paper(table(TEXT))
    assert (paper.name, paper.title) == ("toy", "A paper (its authors)")
    assert paper.conventions == (
        Convention("delta <= 1/2", "a larger one allows to publish half of the time."),
        Convention("n >= 2", "one user has no neighbour."),
    )
    assert paper.convention("n >= 2") is paper.conventions[1]
    assert paper.convention("n") is None
    assert paper.statements == (
        Statement(
            "toy.a",
            "toy",
            "lemma",
            "|x| <= 1, for all x of the domain",
            "C",
            "Lemma 1, Section 2",
            "\\lvert x \\rvert \\le 1",
            'exactly so: "one"',
        ),
        Statement("toy.b", "toy", "statement", "y follows", premises=("toy.a",)),
    )


def test_the_paper_of_a_ledger_file_lies_beside_it(table):
    path = table(TEXT)
    assert paper_at(path.parent / "ledger_part.py") == read_paper(path)
    assert paper_at(path.parent.parent / "ledger_other.py").statements == ()


def test_an_edited_file_is_read_again(table):
    path = table(TEXT)
    read_paper(path)
    table(TEXT.replace("y follows", "y follows at once"))
    assert read_paper(path).rows["toy.b"].text == "y follows at once"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing here", "must hold at least one statement. Add headings"),
        ("## a.b\n\nx\n\n## a.b\n\ny\n", ":5 must have a new id, got a.b again"),
        ("## Lemma 1\n\nx\n", ':1 must be "## Conventions" or "## paper.name'),
        ("## a.b\n\n- kind: lemma\n", ":1 must give the text of a.b"),
        (
            "## a.b\n\nx\n\n- proof: none\n",
            ":1 has an unknown field 'proof' of a.b. Known fields are kind, rests on",
        ),
        (
            "## a.b\n\nx\n\n- rests on: a.c\n",
            "a.b must rest only on statements of the file, got a.c",
        ),
        (
            "## a.b\n\nx\n\n- rests on: a.c\n\n## a.c\n\ny\n\n- rests on: a.b\n",
            "a.b rests on a.c rests on a.b",
        ),
        (
            "## a.b\n\nx\n\n- same as: a.c\n",
            "a.b must be the same as an original statement, got a.c",
        ),
        (
            "## a.b\n\nx\n\n- same as: a.c\n\n## a.c\n\ny\n\n- same as: a.b\n",
            "same as an original statement, got a.c, which is the same as a.b",
        ),
        (
            "## Conventions\n\n- n >= 2\n\n## a.b\n\nx\n",
            ":3 must give a reason. Write - n >= 2: why",
        ),
        (
            "## Conventions\n\n- n >= 2: one\n- all numbers\n  are real.\n\n## a.b\n\nx\n",
            ":4 must give a reason. Write - all numbers are real: why",
        ),
    ],
)
def test_damaged_files_are_refused_with_their_line(table, text, words):
    with pytest.raises(StoreError, match=words.replace("(", r"\(")):
        read_paper(table(text))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(StoreError, match="cannot read"):
        read_paper(tmp_path / "missing.md")


# --- the mark ---


def test_a_mark_leaves_the_function_as_it_is():
    @statement("gm.lemma1", kind="lemma", expected="refuted")
    def check(ledger):
        """The statement, on
        two lines

        The findings, on
        two lines.

        And more.
        """  # noqa: D205, D400
        return 5

    assert check(None) == 5
    mark = marked(check)
    assert (mark.id, mark.kind, mark.expected) == ("gm.lemma1", "lemma", LedgerVerdict.REFUTED)
    assert mark.text == "The statement, on two lines"
    assert mark.found == "The findings, on two lines.\nAnd more."
    assert marked(len) is None


def test_a_check_without_words_has_none():
    @statement("gm.lemma1")
    def check(ledger):
        pass

    assert (marked(check).text, marked(check).found) == ("", "")


@pytest.mark.parametrize("id", ["lemma1", "", "gm.", "gm lemma", ".x"])
def test_ids_have_a_paper_and_a_name(id):
    with pytest.raises(ArgumentError, match=r"paper\.name|id must be a text"):
        statement(id)


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ArgumentError, match="expected must be one of"):
        statement("gm.x", expected="true")


# --- premises ---


def row(name, verdict="holds", *premises, covered=""):
    made = Attempt("x", Method.EXACT, 1, tightest=1.0, covered=covered)
    stated = Statement(f"p.{name}", "p", premises=tuple(f"p.{other}" for other in premises))
    return StatementResult(stated, LedgerVerdict(verdict), Method.EXACT, (made,))


def words(rows):
    return {id: [one.words for one in found] for id, found in shaken(rows).items() if found}


def test_what_rests_on_a_refuted_row_says_so_at_any_distance():
    rows = [row("c", "holds", "b"), row("b", "holds", "a"), row("a", "refuted"), row("d")]
    assert words(rows) == {
        "p.b": ["rests on p.a, refuted"],
        "p.c": ["rests on p.a, refuted, by way of p.b"],
    }


def test_a_broken_proof_shakes_too_and_other_verdicts_do_not():
    rows = [
        row("a", "holds_proof_broken"), row("b", "ambiguous"), row("c", "holds", "a", "b", "x")
    ]  # fmt: skip
    assert words(rows) == {"p.c": ["rests on p.a, holds, proof broken"]}


def test_a_test_of_small_sizes_clears_no_premise():
    rows = [row("a", "refuted"), row("b", "holds", "a", covered="n = 2"), row("c", "holds", "b")]
    assert words(rows) == {
        "p.b": ["rests on p.a, refuted"],
        "p.c": ["rests on p.a, refuted, by way of p.b"],
    }
    assert rows[1].covered == ("n = 2",)
