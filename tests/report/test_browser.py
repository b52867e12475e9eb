"""Tests of the page in a browser, and of the effect of its buttons and links."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit.report.pages import write_report
from dpaudit.results.result import AuditResult
from dpaudit.store import KeptRecord, kinds
from tests.report.test_pages import STRANGE, results_of_all_kinds, run_of

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=3000",
]
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")


@pytest.fixture(scope="module")
def results() -> list[AuditResult]:
    return results_of_all_kinds()


@pytest.fixture(scope="module")
def path(results, tmp_path_factory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"), run_of(results), results)


@pytest.fixture(scope="module")
def page(path) -> str:
    return path.read_text(encoding="utf-8")


def in_browser(path: Path, profile: Path, fragment: str = "", *flags: str) -> str:
    """Return the page after its script has run."""
    command = [str(BROWSER), *FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom"]
    command.append(path.as_uri() + fragment)
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout.decode()


def act(page: str, actions: str, tmp_path: Path, *flags: str) -> object:
    """Run `actions` in the page after its own script, and return their result."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    probe = (
        "<script>(async () => { const q = (s) => document.querySelector(s);"
        "const rows = () => [...document.querySelectorAll('#summary tbody tr')]"
        ".filter((r) => !r.hidden).map((r) => r.cells[1].querySelector('a').textContent);"
        "const head = (i) => document.querySelectorAll('#summary th')[i];"
        "let said; try { said = await (async () => {" + actions + "})(); }"
        "catch (error) { said = String(error); }"
        "const pre = document.createElement('pre'); pre.id = 'said';"
        "pre.textContent = JSON.stringify(said); document.body.append(pre); })()</script></body>"
    )
    path = tmp_path / "acted.html"
    path.write_text(page.replace("</body>", probe), encoding="utf-8")
    dom = in_browser(path, tmp_path / "profile", "", *flags)
    found = re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]))


@needs_browser
def test_browser_runs_the_script_that_the_policy_allows(path, tmp_path):
    dom = in_browser(path, tmp_path / "profile")
    assert dom.count('<button type="button">') >= 7  # the headers became buttons
    assert re.search(
        r'<div class="tools">\s*<div class="filters"', dom
    )  # the tools are visible now


@needs_browser
def test_browser_opens_the_finding_that_a_link_points_to(path, results, tmp_path):
    anchor = f"audit-{kinds()['audit'].file_name(STRANGE).removesuffix('.json')}"
    dom = in_browser(path, tmp_path / "profile", f"#{anchor}")
    opened = re.findall(r'<details[^>]* open=""[^>]*>.*?<article id="([^"]*)"', dom, re.DOTALL)
    assert opened == [anchor]


def printed_pages(path: Path, tmp_path: Path) -> int:
    """Return how many sheets of paper a page takes."""
    target = tmp_path / "printed.pdf"
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--no-pdf-header-footer", f"--print-to-pdf={target}", path.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    return len(re.findall(rb"/Type\s*/Page\b", target.read_bytes()))


@needs_browser
@pytest.mark.slow
def test_sixty_audits_are_printed_on_ten_pages(results, tmp_path):
    many = [replace(results[i % 7], id=f"audit_x::many[{i}]") for i in range(60)]
    path = write_report(tmp_path, run_of(many), many)
    assert printed_pages(path, tmp_path) <= 10


WIDE = """
    for (const details of document.querySelectorAll("details")) details.open = true;
    const inside = (e) => e.closest("thead, .datasets .scroll, .ranking .scroll");
    const cut = [...document.querySelectorAll("main *")]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !inside(e))
      .map((e) => `${e.tagName}.${e.className}`);
    const root = document.documentElement;
    return [cut, root.scrollWidth > root.clientWidth];
"""


@needs_browser
@pytest.mark.parametrize("width", [1280, 1000, 500])
def test_nothing_is_cut_at_the_right(results, tmp_path, width):
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
    page = write_report(tmp_path, run_of([], kept=(kept,)), shown)
    text = page.read_text(encoding="utf-8")
    assert act(text, WIDE, tmp_path, f"--window-size={width},900") == [[], False]


@needs_browser
def test_browser_sorts_by_a_header(page, results, tmp_path):
    said = act(
        page,
        """
        const certified = head(3).querySelector("button"), name = head(1).querySelector("button");
        const steps = [];
        certified.click(); steps.push([head(3).ariaSort, rows()]);
        certified.click(); steps.push([head(3).ariaSort, rows()]);
        name.click(); steps.push([head(1).ariaSort, rows()]);
        steps.push([head(3).ariaSort, head(0).ariaSort]);
        return steps;
        """,
        tmp_path,
    )
    assert isinstance(said, list)
    value = {result.id: result.certified_epsilon for result in results}
    falling = sorted(value.values(), reverse=True)
    assert said[0][0] == "descending"
    assert [value[row] for row in said[0][1]] == falling
    assert said[0][1][0] == "audit_x::sure"  # the value is inf
    assert said[1][0] == "ascending"
    assert [value[row] for row in said[1][1]] == falling[::-1]
    assert said[2][0] == "ascending"
    assert sorted(said[2][1], key=str.lower)[1:] == [r for r in said[2][1] if r != STRANGE]
    assert said[3] == [None, None]


@needs_browser
def test_browser_filters_by_verdict_and_by_words(page, results, tmp_path):
    said = act(
        page,
        """
        const steps = [], search = q(".search input");
        const type = (words) => { search.value = words; search.dispatchEvent(new Event("input")); };
        q("[data-filter=refuted]").click();
        steps.push(rows(), q(".shown").textContent, q("[data-filter=refuted]").ariaPressed);
        steps.push(document.querySelectorAll("details.audit:not([hidden])").length);
        type("SURE"); steps.push(rows());
        type("nowhere"); steps.push(rows(), q("#nothing").hidden);
        q("[data-clear]").click(); steps.push(rows().length, search.value);
        q("[data-filter=known]").click();
        location.hash = q("#summary tbody tr[hidden] a").hash;
        await new Promise((done) => setTimeout(done, 50));
        steps.push(rows().length, document.querySelectorAll("details[open]").length);
        return steps;
        """,
        tmp_path,
    )
    assert said == [
        ["audit_x::sure", "audit_x::refuted"],
        "2 of 7 shown",
        "true",
        2,
        ["audit_x::sure"],
        [],
        False,
        7,
        "",
        7,
        1,
    ]


@needs_browser
def test_browser_opens_and_closes_all(page, tmp_path):
    said = act(
        page,
        """
        const open = () => document.querySelectorAll("details[open]").length;
        const steps = [open()];
        q("[data-all=open]").click(); steps.push(open());
        q("[data-all=close]").click(); steps.push(open());
        return steps;
        """,
        tmp_path,
    )
    assert said == [0, 7, 0]


@needs_browser
def test_a_long_page_unpacks_a_finding_when_it_is_opened(results, tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.report.pages.PLAIN", 2)
    long = write_report(tmp_path / "long", run_of(results), results)
    text = long.read_text(encoding="utf-8")
    assert text.count('class="packed"') == len(results) - 2
    assert text.count("Back to all audits") == 2
    name = re.findall(r'<article id="([^"]+)">', text)[-1]
    seen = in_browser(long, tmp_path / "profile", f"#{name}")  # the page runs under its own policy
    assert seen.count('class="packed"') == len(results) - 3
    assert seen.partition(f'<article id="{name}">')[2].count("Back to all audits") == 1
    opened = act(
        text,
        "q('[data-all=open]').click(); await new Promise((r) => setTimeout(r, 1000));"
        "return [document.querySelectorAll('.packed').length,"
        " document.querySelectorAll('article .back').length];",
        tmp_path,
    )
    assert opened == [0, len(results)]
