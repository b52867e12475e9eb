"""Tests of README and the other pages at the root.

Their code must run, and their files and anchors must exist. `test_docs.py` tests the pages of the
site.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("[egr]*/*.md")),
)


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def example(page, number):
    """Run one block of Python of a page."""
    names = {"__name__": "__main__"}  # as in a script, so that its functions can be sent to workers
    code = re.findall(r"```python\n(.*?)```", text_of(page), flags=re.DOTALL)[number]
    name = "your_file.py" if page == "README.md" else page  # the result names lines of this file
    exec(compile(code, name, "exec"), names)
    return names


@pytest.mark.slow
def test_first_example_runs_and_refutes_as_shown():
    names = example("README.md", 0)
    shown = re.search(r"```text\n(REFUTED.*?)```", text_of("README.md"), re.DOTALL)[1]
    for line in shown.splitlines():
        assert line in str(names["result"])
    result = names["result"]
    assert str(result).startswith("REFUTED")
    assert 2.8 <= result.certified_epsilon < 2.9


@pytest.mark.parametrize("page", PAGES)
def test_linked_files_and_places_exist(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, place = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        if "papers/" in name:  # the build of the site creates and checks these links
            assert (ROOT / "docs" / "make_papers.py").exists()
            continue
        assert file.exists(), target
        if place:
            assert place in places(file), target


def places(file):
    """Return the anchors of a page.

    The result contains the anchors of headings, as GitHub and MyST make them, and named anchors.
    """
    text = file.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE))
