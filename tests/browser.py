"""Pages in Chromium: what their scripts do, and what the rules of axe-core find in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
Opener = Callable[..., AbstractContextManager["Page"]]

NAMES = """
    const q = (s) => document.querySelector(s);
    const type = (words) => {
      q(".search input").value = words;
      q(".search input").dispatchEvent(new Event("input"));
    };
    const rows = (table = document) => [...table.querySelectorAll("tbody tr:has(.id)")]
      .filter((row) => row.checkVisibility())
      .map((row) => row.cells[1].querySelector("a").textContent);
    const head = (i) => document.querySelectorAll("table.summary th")[i];
"""
"""Functions of JavaScript that the tests of pages use."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium) -> Opener:
    """A function that opens a page; the page must report no error and load no other file."""

    @contextmanager
    def open_page(path: Path, *, width: int = 1280, dark: bool = False, at: str = ""):
        scheme = "dark" if dark else "light"
        size = {"width": width, "height": 900}
        page = chromium.new_page(viewport=size, color_scheme=scheme)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        try:
            page.goto(path.as_uri() + at)
            yield page
        finally:
            page.close()
        assert errors == []

    return open_page


def act(page: Page, actions: str) -> object:
    """Run the body of a function of JavaScript in a page, and return its result."""
    return page.evaluate(f"async () => {{ {NAMES} {actions} }}")


def violations(page: Page) -> list[str]:
    """Return the violations of the rules of axe-core, with the first element of each."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.evaluate(AXE_SCRIPT)
    found = page.evaluate("axe.run()")["violations"]
    return [f"{rule['id']}: {rule['help']}: {rule['nodes'][0]['html']}" for rule in found]
