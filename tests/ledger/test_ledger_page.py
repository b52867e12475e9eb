"""Tests that the page of the ledger is complete, safe and in order, also in a real browser."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace

import pytest

from dpaudit.ledger.coverage import erratum_problems, open_row
from dpaudit.ledger.erratum import mathml, with_formulas
from dpaudit.ledger.paper import Convention, Erratum, Paper, Statement
from dpaudit.ledger.rows import Harm, LedgerVerdict, StatementResult
from dpaudit.ledger.section import STATEMENTS
from dpaudit.ledger.words import (
    as_python,
    case_line,
    exact,
    parts_of,
    power_words,
    ratio_words,
    remark,
    replay_words,
    tally,
    tally_lines,
)
from dpaudit.properties.attempt import Attempt, Counterexample, Method, Power, Role, Trace
from dpaudit.report.pages import write_report
from dpaudit.results import MutantResult, MutantStatus
from dpaudit.store import KeptRecord
from tests.browser import act, violations
from tests.report.test_pages import Reader, run_of

ORIGIN = {
    "kind": "statement",
    "path": "audits/ledger_paper.py",
    "item": "check",
    "profile": "quick",
    "versions": {"numpy": "2.0"},
}
NASTY = "<script>alert('1')</script> & \"x\" </details>"
POINTS = [[0.5, math.inf], [-1.0, 2.0]]
FOUND = Counterexample({"points": POINTS, "n": 3, "what": NASTY}, math.inf, 0.1 + 0.2, exact=True)
KILLED = Attempt(
    "it stands",
    Method.PROPERTY,
    1300,
    12,
    0.97,
    where={"x": 0.25},
    power=Power.KILLED,
    mutant="the mutant",
)
SURVIVED = Attempt(
    f"so does {NASTY}",
    Method.EXACT,
    7,
    tightest=0.4,
    power=Power.SURVIVED,
    mutant="another",
    weak=("few cases",),
)
REPAIRED = replace(KILLED, role=Role.REPAIR, subject=f"fix {NASTY}")


def row(name, verdict, *attempts, **more) -> StatementResult:
    method = attempts[0].method if attempts else None
    stated = Statement(name, "paper", "lemma", f"text of {name}", **more.pop("stated", {}))
    found = StatementResult(stated, verdict, method, attempts, expected=verdict)
    return replace(found, **{"origin": ORIGIN, "seconds": 1.5, **more})


def broken(*where) -> Attempt:
    counterexample = FOUND if not where else Counterexample(*where)
    return Attempt(
        "it breaks",
        Method.NUMERIC,
        31,
        tightest=math.inf,
        where=counterexample.case,
        counterexample=counterexample,
    )


ROWS = [
    row("p.one", LedgerVerdict.HOLDS, KILLED, note="a note\nof two lines"),
    row("p.two", LedgerVerdict.REFUTED, broken(), replace(KILLED, subject="a part"), REPAIRED),
    open_row(Statement("p.three", "paper", "claim", NASTY), "No check was written yet."),
    row("p.four", LedgerVerdict.REFUTED, broken({"k": 1.0}, 2.0, 1.0), broken({"k": 2.0}, 3.0, 1)),
    row("p.five", LedgerVerdict.HOLDS, SURVIVED, Attempt("clear", Method.ARGUMENT, 0)),
    row("p.six", LedgerVerdict.NOT_EXECUTABLE, note="It has no meaning."),
    row("p.seven", LedgerVerdict.AMBIGUOUS, KILLED),
    row("p.eight", LedgerVerdict.VACUOUS, KILLED),
    row("p.nine", LedgerVerdict.REFUTED, broken({}, 2.0, 1.0), expected=LedgerVerdict.HOLDS),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("ledger")
    write_report(out, run_of([]), ROWS)
    return out


@pytest.fixture(scope="module")
def page(folder) -> str:
    return (folder / "ledger.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader(page) -> Reader:
    return Reader(page)


def finding_of(page, name) -> str:
    """Return the text of one opened row."""
    found = re.search(rf'<article id="{re.escape(name)}">(.*?)</article>', page, re.DOTALL)
    assert found is not None
    return Reader(found[1]).text()


# --- one file, safe ---


def test_page_asks_nothing_of_anyone(page, reader):
    links = {link for link in reader.values("href") if not link.startswith(("#", "statements/"))}
    assert {link for link in links if not link.startswith("data:")} == {
        "results.json",
        "index.html",
        "erratum-paper.html",
    }
    assert reader.values("src") == []
    assert not re.search(r"https?://|@import|url\(", page)
    assert "default-src 'none'" in page


def test_what_users_wrote_is_text(page, reader):
    assert reader.tags.count("script") == 1
    assert reader.tags.count("details") == len(ROWS)
    text = reader.text()
    assert text.count(NASTY) >= 4  # in the statement, the case, the claim and the repair


def test_ids_are_unique_and_every_reference_has_its_target(reader):
    ids = reader.values("id")
    assert len(ids) == len(set(ids))
    targets = {link[1:] for link in reader.values("href") if link.startswith("#")}
    assert targets | set(reader.values("aria-labelledby")) <= set(ids)
    assert {row.id for row in ROWS} <= set(ids)


# --- content ---


def test_rows_come_in_the_order_of_concern_and_then_of_the_paper(page):
    assert re.findall(r'<article id="([^"]*)">', page) == [
        "p.two", "p.four", "p.nine", "p.seven", "p.eight", "p.three", "p.one", "p.five", "p.six",
    ]  # fmt: skip


def test_head_counts_the_verdicts(reader):
    text = reader.text()
    assert "9 statements of paper with the quick profile" in text
    assert "3 REFUTED A counterexample was found" in text
    assert "All 9 REFUTED 3 AMBIGUOUS 1 VACUOUS 1 OPEN 1 HOLDS 2 NOT EXECUTABLE 1" in text
    assert "0 by argument only · 1 with a surviving mutant · 0 that hold without a mutant" in text
    assert "1 with a weak attempt" in text
    assert "2 not as declared p.nine: the verdict is refuted, holds was declared" in text


def test_a_counterexample_is_readable_and_exact(page):
    text = finding_of(page, "p.two")
    assert "Counterexample it breaks lhs = ∞ > rhs = 0.30000000000000004" in text
    assert "Computed in exact or high-precision arithmetic as well." in text
    assert "points [[0.5, ∞] [-1, 2]]" in text
    assert "n 3" in text
    assert "[[0.5, ∞]\n [-1, 2]]" in page
    assert "Largest ratio found" not in text  # the counterexample has the largest ratio
    both = finding_of(page, "p.four")
    assert "Counterexample it breaks lhs = 2 > rhs = 1" in both
    assert "Counterexample it breaks lhs = 3 > rhs = 1" in both


def test_a_counterexample_can_be_pasted_into_python(page):
    pasted = [
        html.unescape(t) for t in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.S)
    ]
    assert len(pasted) == 3
    names: dict[str, object] = {}
    exec(pasted[0], names)
    assert names["case"] == FOUND.case
    assert pasted[1] == "case = {'k': 1.0}"


def test_cases_that_are_pasted_keep_every_digit_and_huge_ones_are_left_out():
    case = {
        "x": 0.1 + 0.2,
        "big": [[float(i), -math.inf] for i in range(40)],
        "s": 'a"\n',
        "b": None,
    }
    text = as_python(case)
    assert max(map(len, text.splitlines())) <= 110
    names: dict[str, object] = {}
    exec(text, names)
    assert names["case"] == case
    assert as_python({"x": list(range(10_000))}).startswith("# too long")


def test_a_repair_stands_with_its_verdict_and_its_attempts(page):
    text = finding_of(page, "p.two")
    assert f"Repair HOLDS fix {NASTY}" in text
    assert text.count("it stands property 1,300 12 not applicable 0.97 killed (the mutant)") == 2
    assert "repair it stands" in text
    assert "Repair" not in finding_of(page, "p.one")


def test_a_row_that_held_says_how_hard_it_was_tried(page):
    text = finding_of(page, "p.one")
    for words in (
        "text of p.one p.one · lemma",
        "HOLDS, by property testing. No attempt refuted the statement",
        "a note of two lines",
        "Tightest: ratio 0.97",
        "x 0.25",
        "1.5 s",
        "statements/p.one.json",
        "numpy 2.0",
    ):
        assert words in text
    assert "Counterexample" not in text


def test_weak_attempts_and_arguments_are_told(page):
    text = finding_of(page, "p.five")
    assert "survived (another) few cases" in text
    assert "clear argument none – not needed" in text


def test_open_rows_say_why_and_offer_no_replay(page):
    text = finding_of(page, "p.three")
    assert "OPEN. Nothing decides the statement, no check was written yet" in text
    assert "No check was written yet." in text
    assert "Replay" not in text


def test_commands_redo_a_row(page, tmp_path, monkeypatch):
    assert (
        "python -m pytest --dpaudit audits/ledger_paper.py::check --dpaudit-profile=quick "
        "--dpaudit-seed=0" in finding_of(page, "p.one")
    )
    monkeypatch.chdir(tmp_path)
    write_report(tmp_path / "my out", run_of([]), ROWS)
    text = Reader((tmp_path / "my out" / "ledger.html").read_text()).text()
    assert "dpaudit replay 'my out/statements/p.one.json'" in text
    assert replay_words(ROWS[2]) == ""


def test_index_links_to_the_ledger_and_counts(folder):
    text = Reader(index := (folder / "index.html").read_text()).text()
    assert 'href="ledger.html"' in index
    assert "9 statements with the quick profile" in text
    assert (
        "The ledger 9 statements of paper 3 refuted 1 ambiguous 1 vacuous 1 open 2 holds "
        "1 not executable 2 not as declared" in text
    )
    assert "This run made no audits." in text


def test_without_statements_there_is_no_page_and_an_old_one_is_removed(tmp_path):
    write_report(tmp_path, run_of([]), ROWS)
    write_report(tmp_path, run_of([]), [])
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]  # no erratum either
    assert "ledger.html" not in (tmp_path / "index.html").read_text()


def test_interruption_problems_and_skips_are_told_on_this_page_too(tmp_path):
    run = run_of([], complete=False, problems=("a <b>problem</b>",), skipped=("one: no time",))
    write_report(tmp_path, run, ROWS)
    text = Reader((tmp_path / "ledger.html").read_text()).text()
    for words in ("This run was interrupted", "--resume", "a <b>problem</b>", "one: no time"):
        assert words in text


def test_rows_of_older_runs_are_marked(tmp_path):
    made = "2026-11-19T08:01:00+00:00"
    kept = (
        KeptRecord("statement", "p.one", made, "dpaudit ledger", current=True),
        KeptRecord("statement", "p.six", made, "dpaudit ledger", current=False),
        KeptRecord("audit", "p.two", made, "dpaudit run", current=False),
    )
    write_report(tmp_path, run_of([], kept=kept), ROWS)
    page = (tmp_path / "ledger.html").read_text()
    assert page.count('<span class="pill">of 19 November 2026') == 1
    assert page.count('<span class="pill stale">of 19 November 2026') == 1
    assert page.count("settings, versions or sources have changed since") == 1


def test_one_id_in_two_papers_keeps_the_links_apart(tmp_path):
    write_report(
        tmp_path,
        run_of([]),
        [ROWS[0], replace(ROWS[0], stated=replace(ROWS[0].stated, paper="other"))],
    )
    reader = Reader((tmp_path / "ledger.html").read_text())
    ids = reader.values("id")
    assert len(ids) == len(set(ids))
    assert "2 statements of paper, other" in reader.text()


def test_same_rows_give_the_same_page(folder, page):
    write_report(folder, run_of([]), ROWS)
    assert (folder / "ledger.html").read_text(encoding="utf-8") == page


# --- what authors need ---

STEP = replace(
    broken({"k": 1}, 2.0, 1.0), role=Role.STEP, subject="line 7", fix="another line",
    lhs="what it is", rhs="what it should be",
)  # fmt: skip
STEP = replace(STEP, counterexample=replace(STEP.counterexample, snippet="print(2, '>', 1)"))
EDGE = replace(broken({"n": 1}, 3.0, 1.0), role=Role.EDGE, subject="n >= 2")
AUDITED = replace(
    KILLED,
    claim="f is 1-DP",
    mutant="1 of 2",
    mutants=(
        MutantResult("no noise", MutantStatus.KILLED, 3.0, 1e-6, 200),
        MutantResult("half the noise", MutantStatus.SURVIVED, 0.0, 1e-6, 900),
    ),
    survivors="There is slack.",
)
TRACED = replace(
    KILLED,
    trace=Trace(
        ("x", "n"), (True, False), tuple((10.0**-k, float(k), k / 30) for k in range(1, 30))
    ),
)
AUTHORS = [
    row("q.low", LedgerVerdict.REFUTED, broken(), harm=Harm.WORDS, consequence="Nobody is hurt."),
    row(
        "q.proof", LedgerVerdict.HOLDS_PROOF_BROKEN, AUDITED, STEP, harm=Harm.PRIVACY,
        stated={"place": "Lemma 7", "latex": r"\frac{1}{2}", "quote": "exactly so"},
    ),
    row(
        "q.words", LedgerVerdict.AMBIGUOUS, replace(KILLED, role=Role.READING, subject="in order"),
        replace(broken(), role=Role.READING, subject="in any order"), note="It depends.",
    ),
    row("q.top", LedgerVerdict.HOLDS, TRACED, EDGE, stated={"premises": ("q.low", "q.proof")}),
    row("q.ratio", LedgerVerdict.HOLDS, TRACED, replace(KILLED, role=Role.SHARPER, claim="2")),
]  # fmt: skip


@pytest.fixture(scope="module")
def authors(tmp_path_factory):
    out = tmp_path_factory.mktemp("authors")
    paper = Paper("paper", "A Paper", (Convention("n >= 2", "one is alone"),))
    write_report(out, run_of([], facts={"statement": (paper,)}), AUTHORS)
    return out


def test_a_broken_proof_shows_its_step_and_what_mends_it(authors):
    text = finding_of((authors / "ledger.html").read_text(), "q.proof")
    assert "HOLDS, PROOF BROKEN, by property testing" in text
    assert "A step of the proof fails: line 7 it breaks what it is 2 what it should be 1" in text
    assert "print(2, '>', 1)" in text
    assert "Repair of the proof: another line" in text


def test_statements_are_mathematics_with_place_and_exact_words(authors):
    page = (authors / "ledger.html").read_text()
    assert "<mfrac>" in page
    text = finding_of(page, "q.proof")
    assert "Lemma 7 · q.proof · lemma" in text
    assert "exactly so" in text


def test_a_formula_that_cannot_be_read_stays_as_it_was_written():
    assert mathml(r"\right) \left<b>").startswith("<code>")
    assert "<b>" not in mathml("a <b> c")
    assert "<script>" not in mathml(r"\text{<script>alert(1)</script>}")


def test_formulas_between_dollar_signs_are_mathematics_and_prices_are_not():
    found = with_formulas(r"Between $5 and $6, a < b and $\frac{a}{b}$ is below $c$.")
    assert found.startswith("Between $5 and $6, a &lt; b and <math")
    assert found.endswith("</math>.")
    assert found.count("<math") == 2
    assert "<mfrac>" in found
    assert with_formulas("see $$a$$ and `$HOME` or `$PATH`").count("$") == 2
    assert with_formulas("<script>").startswith("&lt;")


def test_edges_and_conventions_are_told(authors):
    page = (authors / "ledger.html").read_text()
    assert "Edge case, outside the convention n >= 2" in finding_of(page, "q.top")
    assert "n >= 2 one is alone" in Reader(page).text()


def test_premises_are_linked_drawn_and_said_where_they_shake(authors):
    page = (authors / "ledger.html").read_text()
    text = finding_of(page, "q.top")
    assert "rests on q.low, q.proof" in text
    assert "Rests on q.low, refuted; rests on q.proof, holds, proof broken." in text
    assert 'aria-label="Premises of 3 statements"' in page
    assert page.count('<a href="#q.low"') == 2  # one link in the picture, one in the row above


def test_each_paper_has_a_graph_of_its_own(tmp_path):
    others = [
        row("r.low", LedgerVerdict.HOLDS, KILLED),
        row("r.top", LedgerVerdict.HOLDS, KILLED, stated={"premises": ("r.low",)}),
    ]
    write_report(tmp_path, run_of([]), [*AUTHORS, *others])
    page = (tmp_path / "ledger.html").read_text()
    assert [f"Premises of {n} statements" in page for n in (2, 3)] == [True, True]
    assert "<summary>Premises of the statements of q</summary>" in page
    assert "<summary>Premises of the statements of r</summary>" in page
    statements = page.index('<section id="statements"')
    assert statements < page.index("<summary>Premises") < page.index("How to read this</h2>")


def test_mutants_of_a_mechanism_are_a_table_and_survivors_explained(authors):
    text = finding_of((authors / "ledger.html").read_text(), "q.proof")
    assert "f is 1-DP: 1 of 2 mutants killed" in text
    assert "no noise killed" in text
    assert "half the noise survived" in text
    assert "There is slack." in text


def test_the_ratio_is_drawn_over_what_was_searched(authors):
    page = (authors / "ledger.html").read_text()
    assert 'aria-label="Ratio against x"' in page
    assert 'aria-label="Ratio against n"' in page


def test_an_erratum_holds_what_is_wrong_the_most_harmful_first(authors):
    assert 'href="erratum-paper.html"' in (authors / "ledger.html").read_text()
    text = (authors / "erratum-paper.md").read_text()
    assert text.startswith("# Erratum: A Paper\n")
    assert re.findall(r"^## (.*)$", text, re.M) == [
        "1. Lemma 7 (q.proof)",
        "2. q.low",
        "Appendix: words that can be read in several ways",
        "Appendix: edge cases",
        "Appendix: constants that could be better",
    ]
    for words in (
        "*Holds, proof broken, harms privacy.*",
        "```math\n\\frac{1}{2}\n```",
        "**Step that fails.** line 7",
        "what it is is 2, what it should be is 1, at k = 1.",
        "```python\nprint(2, '>', 1)\n```",
        "**Repair of the proof.** another line",
        "**Consequence.** Nobody is hurt.",
        "### q.words",
        "- in order: holds",
        "- in any order: fails",
        "**Found.** It depends.",
        "- q.top: needs n >= 2.",
        "- q.ratio: 2",
    ):
        assert words in text
    reading = text[text.index("- in any order: fails") : text.index("Appendix: edge cases")]
    assert "**Counterexample.**" in reading
    page = Reader((authors / "erratum-paper.html").read_text()).text()
    assert "in any order: fails" in page
    assert page.index("1. Lemma 7") < page.index("2. q.low") < page.index("Appendix: edge cases")


def test_a_ledger_in_which_nothing_is_wrong_has_no_erratum(tmp_path):
    write_report(tmp_path, run_of([]), AUTHORS)
    assert (tmp_path / "erratum-paper.md").is_file()
    write_report(tmp_path, run_of([]), ROWS[:1])
    assert list(tmp_path.glob("erratum-*")) == []


WRITTEN = """# Erratum: A Paper

## Lemma 7

<!-- rows: q.proof, q.low -->

Read $x^2 \\le 1$, see `program`.
"""


def written(text: str = WRITTEN, programs: str = "") -> Paper:
    return Paper("paper", "A Paper", statements=tuple(r.stated for r in AUTHORS),
                 erratum=Erratum(text, programs))  # fmt: skip


def test_a_written_erratum_replaces_the_draft_and_links_to_the_rows(tmp_path):
    facts = {"statement": (written(programs="print(1)\n"),)}
    write_report(tmp_path, run_of([], facts=facts), AUTHORS)
    assert (tmp_path / "erratum-paper.md").read_text() == WRITTEN
    assert (tmp_path / "erratum-paper.py").read_text() == "print(1)\n"
    page = (tmp_path / "erratum-paper.html").read_text()
    assert '<a href="ledger.html#q.low">q.low</a>' in page
    assert '<math display="inline"' in page
    assert 'href="erratum-paper.py"' in page
    write_report(tmp_path, run_of([]), AUTHORS)
    assert not (tmp_path / "erratum-paper.py").exists()


def test_a_written_erratum_is_printed(tmp_path):
    pytest.importorskip("typst", reason="needs dpaudit[pdf]")
    facts = {"statement": (written(),)}
    write_report(tmp_path, run_of([], facts=facts), AUTHORS)
    assert (tmp_path / "erratum-paper.pdf").read_bytes().startswith(b"%PDF")
    assert 'href="erratum-paper.pdf"' in (tmp_path / "erratum-paper.html").read_text()


def test_a_written_erratum_must_explain_the_mistakes_and_only_these():
    assert erratum_problems(written(), AUTHORS) == []
    assert erratum_problems(written(""), AUTHORS) == []
    assert erratum_problems(written("<!-- rows: q.low, q.ratio, q.words, q.gone -->"), AUTHORS) == [
        "paper/erratum.md must name statements of the paper, got q.gone",
        "paper/erratum.md must explain q.proof, which holds, proof broken, but does not",
        "paper/erratum.md must not explain q.ratio, which holds",
    ]
    misprint = replace(AUTHORS[-1], misprints=(("x", "y"),))
    (problem,) = erratum_problems(written(), [misprint])
    assert problem == "paper/erratum.md must explain q.ratio, which has a misprint, but does not"


# --- words ---


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (None, "–"), (0.0, "0"), (0.12345, "0.1235"), (0.99991, "0.9999"), (1 - 1e-12, "1"),
        (1.0, "1"), (1 + 1e-10, "1"), (1.00002, "1 + 2e-5"), (1.2, "1.2"), (math.inf, "unbounded"),
        (-1.0, "-1"), (1e3, "1000"), (5e5, "> 1,000"),
    ],
)  # fmt: skip
def test_ratios_show_their_side_of_one(ratio, words):
    assert ratio_words(ratio) == words


def test_tally_counts_what_rests_on_less():
    argued = row("p.x", LedgerVerdict.HOLDS, Attempt("clear", Method.ARGUMENT, 0))
    alone = row("p.y", LedgerVerdict.HOLDS, replace(KILLED, power=Power.NONE))
    left = open_row(Statement("p.z", "paper"), "not run: its check is elsewhere")
    found = tally([*ROWS, argued, alone, left])
    assert (found.total, found.argued, found.survived, found.powerless) == (12, 1, 1, 1)
    assert (found.weak, found.mismatches, found.not_run) == (1, 2, 1)
    lines = tally_lines([*ROWS, argued, alone, left])
    assert lines == [
        "12 statements: 3 refuted, 1 ambiguous, 1 vacuous, 2 open (1 not run, and not listed), "
        "4 hold, 1 not executable",
        "of these 2 not as declared, 1 by argument only, 1 whose mutant survived, 1 that held "
        "without a mutant, 1 with a weak attempt",
    ]
    assert tally_lines(ROWS[:1]) == ["1 statement: 1 holds"]
    broken_proofs = [replace(AUTHORS[1], verdict=LedgerVerdict.HOLDS_PROOF_BROKEN)] * 2
    assert tally_lines([*broken_proofs, ROWS[0]])[0] == (
        "3 statements: 2 hold with a broken proof, 1 holds"
    )
    assert [power_words(r) for r in (alone, argued, ROWS[4], ROWS[0])] == [
        "no mutant", "–", "survived, weak", "killed"
    ]  # fmt: skip


def test_cases_are_exact_and_in_rows():
    case = {"a": [[1.0, 0.1], [2.0, 1e300]], "b": {"c": [1, "x"]}, "d": None, "e": 1e-7}
    assert dict(parts_of(case)) == {
        "a": "[[1, 0.1]\n [2, 1e+300]]", "b": "c = [1, x]", "d": "None", "e": "1e-07"
    }  # fmt: skip
    assert case_line(case) == "a = [[1, 0.1] [2, 1e+300]], b = c = [1, x], d = None, e = 1e-07"
    assert [exact(x) for x in (3.0, 0.1 + 0.2, -math.inf, 1e20)] == [
        "3", "0.30000000000000004", "-∞", "1e+20"
    ]  # fmt: skip


def test_finding_names_the_repair_that_broke():
    again = replace(broken({"z": 1.0}, 5.0, 4.0), role=Role.REPAIR, subject="fix")
    wrong = replace(ROWS[1], attempts=(broken(), replace(REPAIRED, subject="fix"), again))
    assert wrong.mismatch == "the repair is refuted, too"
    lines = STATEMENTS.finding(wrong).splitlines()
    assert lines[0] == "REFUTED (the repair is refuted)  p.two"
    assert "  found      lhs = 5 > rhs = 4" in lines
    assert remark(wrong) == "the repair is refuted, too"
    assert remark(ROWS[1]).startswith("repair holds: fix")


def test_rows_come_back_from_json_as_they_are_shown():
    for shown in ROWS:
        text = json.dumps(shown.to_json(), allow_nan=False)
        assert StatementResult.from_json(json.loads(text)) == shown


# --- in a browser ---


@pytest.mark.slow
def test_browser_opens_the_row_that_a_link_points_to(folder, opened):
    with opened(folder / "ledger.html", at="#p.one") as page:
        shown = page.locator("details.audit[open] article")
        assert [article.get_attribute("id") for article in shown.all()] == ["p.one"]


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["ledger", "erratum-paper"])
def test_axe_finds_no_barrier(authors, opened, name, width):
    with opened(authors / f"{name}.html", width=width) as page:
        act(page, "for (const one of document.querySelectorAll('details')) one.open = true;")
        assert violations(page) == []


def test_the_letters_of_a_graph_are_large_and_two_nodes_do_not_fill_a_screen(tmp_path, opened):
    rows = [
        row("r.low", LedgerVerdict.HOLDS, KILLED),
        row("r.top", LedgerVerdict.HOLDS, KILLED, stated={"premises": ("r.low",)}),
    ]
    write_report(tmp_path, run_of([]), rows)
    with opened(tmp_path / "ledger.html") as page:
        page.click(".about summary")
        letters, width, height = act(
            page,
            """
            const box = q(".premises svg").getBoundingClientRect();
            const scale = box.width / q(".premises svg").viewBox.baseVal.width;
            const size = parseFloat(getComputedStyle(q(".premises text")).fontSize);
            return [size * scale, box.width, box.height];
            """,
        )
    assert letters >= 11
    assert width < 400
    assert height < 100


def test_browser_filters_by_verdict_and_by_words(folder, opened):
    with opened(folder / "ledger.html") as page:
        said = act(
            page,
            """
            const shown = () => [...document.querySelectorAll("details.audit:not([hidden]) .title")]
              .map((title) => title.textContent);
            const steps = [];
            q("[data-filter=refuted]").click();
            steps.push(shown(), q(".shown").textContent);
            type("TEXT of p.four"); steps.push(shown());
            type("nowhere"); steps.push(shown(), q("#nothing").hidden);
            q("[data-clear]").click(); steps.push(shown().length);
            q("[data-filter=holds]").click();
            location.hash = "#p.two";
            await new Promise((done) => setTimeout(done, 50));
            steps.push(shown().length, document.querySelectorAll("details[open]").length);
            q("[data-all=open]").click();
            steps.push(document.querySelectorAll("details[open]").length);
            return steps;
            """,
        )
    assert said == [
        ["p.two", "p.four", "p.nine"], "3 of 9 shown", ["p.four"], [], False, 9, 9, 1, 9
    ]  # fmt: skip
