"""Check the built site: pages load nothing from other hosts, and links have targets.

Usage: `python docs/check_site.py docs/_build/html`. The target `make docs` runs the check after the
build. If there is a Chromium, it opens each page of the site in a window of 400 pixels, every
second page in the dark theme. Nothing may be wider than the window, and the rules of axe-core must
find no violation outside of the tables that pandas writes. The tests open the pages of runs.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import sync_playwright

_LOADS = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "use": ("href",),
}
"""Attributes that a browser loads by itself. An `a` is loaded only if a person follows it."""

_NOT_LOADED = {"search", "index", "next", "prev", "canonical", "author"}
_CSS_URL = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""")


class _Page(HTMLParser):
    """Addresses that a page loads or links to, and the anchors of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and anchors of a tag."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and set(values.get("rel", "").split()) & _NOT_LOADED:
            return
        self.loads += [values[name] for name in _LOADS.get(tag, ()) if name in values]
        self.loads += _CSS_URL.findall(values.get("style", ""))


def faults(site: Path) -> Iterator[str]:
    """Yield the faults in the pages and styles of a site."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = pages[path.resolve()] = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        for address in page.loads:
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                yield f"{here} loads {address} from another host"
        if here.parts[0] == "_static":
            continue
        for address in {*page.links, *page.loads}:
            yield from _broken(path, here, address, pages)
    for path in sorted(site.rglob("*.css")):
        for address in _CSS_URL.findall(path.read_text(encoding="utf-8")):
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                yield f"{path.relative_to(site)} loads {address} from another host"


def _broken(path: Path, here: Path, address: str, pages: dict[Path, _Page]) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        yield f"{here} links to {address}, which does not exist"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
        yield f"{here} links to {address}, but that page has no such anchor"


def barriers(site: Path, chromium: str) -> Iterator[str]:
    """Yield the pages that axe-core objects to, or that are wider than a narrow screen."""
    own = [path for path in sorted(site.resolve().rglob("*.html")) if _is_ours(path, site)]
    with ProcessPoolExecutor(2) as browsers:
        halves = browsers.map(
            _barriers_of, (own[::2], own[1::2]), ("light", "dark"), [chromium] * 2
        )
        for path, words in itertools.chain.from_iterable(halves):
            yield f"{path.relative_to(site.resolve())}{words}"


def _barriers_of(
    paths: list[Path], scheme: Literal["light", "dark"], chromium: str
) -> list[tuple[Path, str]]:
    """Open pages in one browser, and return each page with what is wrong with it."""
    wrong = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 900}, color_scheme=scheme)
        for path in paths:
            page.goto(path.as_uri())
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wrong.append((path, " is wider than a screen of 400 pixels"))
            page.evaluate(AXE_SCRIPT)
            # pandas writes the tables that are left out
            found = page.evaluate("axe.run({exclude: ['.dataframe']})")
            wrong += [
                (path, f": {rule['help']}: {rule['nodes'][0]['html']}")
                for rule in found["violations"]
            ]
        browser.close()
    return wrong


def _is_ours(path: Path, site: Path) -> bool:
    return path.relative_to(site.resolve()).parts[0] not in ("_static", "reference-run")


def main(folder: str) -> int:
    """Print the faults; return 1 if there are any."""
    site = Path(folder)
    found = list(faults(site))
    names = map(shutil.which, ("chromium", "chromium-browser", "chrome"))
    if chromium := next(filter(None, names), None):
        found += barriers(site, chromium)
    elif os.environ.get("DPAUDIT_NO_SKIPS"):
        found.append("no Chromium on PATH (a skip is a failure here)")
    else:
        print("no Chromium on PATH: no page was opened")
    for fault in found:
        print(fault)
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
