"""Tests of the page in a browser, and of the effect of its buttons and links."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page

from dpaudit.report.pages import write_report
from dpaudit.results.result import AuditResult
from dpaudit.store import KeptRecord, kinds
from tests.browser import act, violations
from tests.report.test_pages import STRANGE, results_of_all_kinds, run_of


@pytest.fixture(scope="module")
def results() -> list[AuditResult]:
    return results_of_all_kinds()


@pytest.fixture(scope="module")
def path(results, tmp_path_factory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"), run_of(results), results)


@pytest.mark.slow
def test_the_script_runs_under_the_policy_of_the_page(path, opened):
    with opened(path) as page:
        assert page.locator("table.summary th button").count() == 14
        assert page.locator(".tools .filters").is_visible()


def test_a_link_opens_the_finding_that_it_points_to(path, opened):
    anchor = f"audit-{kinds()['audit'].file_name(STRANGE).removesuffix('.json')}"
    with opened(path, at=f"#{anchor}") as page:
        shown = page.locator("details.audit[open] article")
        assert [article.get_attribute("id") for article in shown.all()] == [anchor]


def printed_pages(page: Page) -> int:
    """Return how many sheets of paper a page takes."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))


@pytest.mark.slow
def test_sixty_audits_are_printed_on_ten_pages(results, opened, tmp_path):
    many = [replace(results[i % 7], id=f"audit_x::many[{i}]") for i in range(60)]
    with opened(write_report(tmp_path, run_of(many), many)) as page:
        assert printed_pages(page) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_no_barrier(path, opened, width, dark):
    with opened(path, width=width, dark=dark) as page:
        assert violations(page) == []
        act(page, OPEN)
        assert violations(page) == []


@pytest.mark.slow
def test_axe_sees_a_barrier(path, opened, tmp_path):
    poor = tmp_path / "poor.html"
    poor.write_text(path.read_text().replace('<html lang="en">', "<html>"))
    with opened(poor) as page:
        assert [words.partition(":")[0] for words in violations(page)] == ["html-has-lang"]


OPEN = "for (const details of document.querySelectorAll('details')) details.open = true;"
WIDE = """
    const inside = (e) => e.closest("thead, .datasets .scroll, .ranking .scroll");
    const cut = [...document.querySelectorAll("main *")]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !inside(e))
      .map((e) => `${e.tagName}.${e.className}`);
    const root = document.documentElement;
    return [cut, root.scrollWidth > root.clientWidth];
"""


@pytest.mark.parametrize("width", [1280, 1000, 400])
def test_nothing_is_cut_at_the_right(results, opened, tmp_path, width):
    long = "a_name_without_an_end_" * 6
    named = replace(
        results[0],
        id=long,
        mechanism=long,
        reason=long,
        notes=(long,),
        pair_words=long,
        advice=long,
    )
    kept = KeptRecord("audit", results[0].id, "2026-11-19T08:01:00+00:00", long, current=False)
    shown = [*results, named, replace(results[1], id=long)]
    with opened(write_report(tmp_path, run_of([], kept=(kept,)), shown), width=width) as page:
        assert act(page, OPEN + WIDE) == [[], False]


def test_browser_sorts_by_a_header(path, results, opened):
    with opened(path) as page:
        said = act(
            page,
            """
            const certified = head(3).querySelector("button");
            const name = head(1).querySelector("button");
            const steps = [], table = q("table.summary");
            certified.click(); steps.push([head(3).ariaSort, rows(table)]);
            certified.click(); steps.push([head(3).ariaSort, rows(table)]);
            name.click(); steps.push([head(1).ariaSort, rows(table)]);
            steps.push([head(3).ariaSort, head(0).ariaSort]);
            return steps;
            """,
        )
    assert isinstance(said, list)
    new = [result for result in results if result.status.key != "known"]
    value = {result.id: result.certified_epsilon for result in new}
    falling = sorted(value.values(), reverse=True)
    assert said[0][0] == "descending"
    assert [value[row] for row in said[0][1]] == falling
    assert said[0][1][0] == "audit_x::sure"  # the value is inf
    assert said[1][0] == "ascending"
    assert [value[row] for row in said[1][1]] == falling[::-1]
    assert said[2][0] == "ascending"
    assert sorted(said[2][1], key=str.lower)[1:] == [r for r in said[2][1] if r != STRANGE]
    assert said[3] == [None, None]


def test_browser_filters_by_verdict_and_by_words(path, opened):
    with opened(path) as page:
        said = act(
            page,
            """
            const steps = [];
            q("[data-filter=refuted]").click();
            steps.push(rows(), q(".shown").textContent, q("[data-filter=refuted]").ariaPressed);
            steps.push(document.querySelectorAll("details.audit:not([hidden])").length);
            type("SURE"); steps.push(rows());
            type("nowhere"); steps.push(rows(), q("#nothing").hidden);
            q("[data-clear]").click(); steps.push(rows().length, q(".search input").value);
            q("[data-filter=known]").click();
            steps.push(rows());
            location.hash = q("table.summary tbody tr[hidden] a").hash;
            await new Promise((done) => setTimeout(done, 50));
            steps.push(rows().length, document.querySelectorAll("details.audit[open]").length);
            return steps;
            """,
        )
    assert said == [
        ["audit_x::sure", "audit_x::refuted"],
        "2 of 7 shown",
        "true",
        2,
        ["audit_x::sure"],
        [],
        False,
        6,  # the known violation is folded
        "",
        ["audit_x::known"],
        6,
        1,
    ]


def test_browser_opens_and_closes_all(path, opened):
    with opened(path) as page:
        said = act(
            page,
            """
            const open = () => document.querySelectorAll("details[open]").length;
            const steps = [open()];
            q("[data-all=open]").click(); steps.push(open());
            q("[data-all=close]").click(); steps.push(open());
            return steps;
            """,
        )
    assert said == [0, 7, 0]


def test_a_long_page_unpacks_a_finding_when_it_is_opened(results, opened, tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.report.pages.PLAIN", 2)
    path = write_report(tmp_path, run_of(results), results)
    text = path.read_text(encoding="utf-8")
    assert text.count('class="packed"') == len(results) - 2
    assert text.count("Back to all audits") == 2
    name = re.findall(r'<article id="([^"]+)">', text)[-1]
    with opened(path, at=f"#{name}") as page:
        page.wait_for_selector(f'article[id="{name}"] .back')
        assert page.locator(".packed").count() == len(results) - 3
        page.click("[data-all=open]")
        page.wait_for_selector(".packed", state="detached")
        assert page.locator("article .back").count() == len(results)
