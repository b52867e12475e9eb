"""Run the code of a page from top to bottom, for the tests and `python docs/snippets.py`.

Words after the language of a fence say what to do with the code.

- ```` ```python ```` runs in the one namespace of its page.
- ```` ```python file=NAME ```` is written into a file instead, in any language.
- ```` ```python needs=PACKAGE ```` runs if the package is installed, and is only compiled
  otherwise.
- ```` ```sh run ```` runs in a shell; `run=1` must end with exit code 1.
- ```` ```text output ```` is the output of the block before it; `...` stands for anything.

`python docs/snippets.py PAGE...` writes the real output into the page where the page differs. With
`--check`, it writes nothing and fails. A page may be a notebook, whose text outputs are compared.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[a-z][^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """One fence of a page."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int
    span: tuple[int, int]

    def word(self, name: str) -> str | None:
        """Return the value of ``name=value``; "" for the bare name, None if it is missing."""
        for word in self.words:
            if word.partition("=")[0] == name:
                return word.partition("=")[2]
        return None


def blocks_of(text: str) -> Iterator[Block]:
    """Return the fences of a page, in order."""
    for found in _FENCE.finditer(text):
        language, *words = found["info"].split()
        lines = found["text"].splitlines(keepends=True)
        body = "".join(line.removeprefix(found["indent"]) for line in lines)
        line = text.count("\n", 0, found.start("text"))
        yield Block(language, tuple(words), body, line, found.span("text"))


@dataclass
class Page:
    """A page whose code runs in the working directory."""

    path: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str | None = ""

    def run(self) -> Iterator[tuple[Block, str]]:
        """Run all blocks; yield each output block whose code ran, with the real output."""
        for block in blocks_of(self.path.read_text(encoding="utf-8")):
            if block.language == "text" and block.word("output") is not None:
                if self.printed is not None:
                    yield block, self.printed
            elif name := block.word("file"):
                self._write(name, block.text)
            elif block.language == "python":
                self._python(block)
            elif block.language == "sh" and block.word("run") is not None:
                self._shell(block)

    def _write(self, name: str, text: str) -> None:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        if os.getcwd() not in sys.path:  # as if the next blocks were a script beside the file
            sys.path.insert(0, os.getcwd())

    def _python(self, block: Block) -> None:
        # Results name lines of the code. These lines are numbered within their block, so the
        # numbers stay the same when the page grows.
        stem = "your_file" if self.path.stem == "index" else self.path.stem
        name = f"line {block.line}/{stem}.py"
        lines = block.text.splitlines(keepends=True)
        linecache.cache[name] = (len(block.text), None, lines, name)  # as for a cell of a notebook
        code = compile(block.text, name, "exec")
        needs = block.word("needs")
        if needs and importlib.util.find_spec(needs) is None:
            self.printed = None
            return
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        self.printed = out.getvalue()

    def _shell(self, block: Block) -> None:
        path = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        ran = subprocess.run(
            ["bash", "-c", block.text],
            env={
                **os.environ,
                "PATH": os.pathsep.join(path),
                "PYTHONPATH": os.pathsep.join([".", str(ROOT)]),
                "COLUMNS": "100",
                "PYTHONWARNINGS": "",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        expected = int(block.word("run") or 0)
        said = ran.stdout + ran.stderr
        assert ran.returncode == expected, f"{self.path}:{block.line}: {ran.returncode}\n{said}"
        self.printed = said


def agrees(shown: str, printed: str) -> bool:
    """Return whether a page shows the real output, where `...` stands for anything."""
    parts = [re.escape(part) for part in _bare(shown).split("...")]
    return re.fullmatch(".*?".join(parts), _bare(printed), re.S) is not None


def _bare(text: str) -> str:
    """Return the text without invisible spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run_notebook(path: Path, *, check: bool) -> None:
    """Run a notebook and store its outputs, or fail where a text output differs from the stored."""
    import nbformat
    from nbclient import NotebookClient

    stored, began = nbformat.read(path, as_version=4), time.perf_counter()
    fresh = nbformat.from_dict(stored)
    with tempfile.TemporaryDirectory() as scratch:
        NotebookClient(fresh, resources={"metadata": {"path": scratch}}).execute()
    for cell in fresh.cells:
        cell.metadata.pop("execution", None)  # times
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if _text_of(out) != _EMPTY]
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        shown, printed = ([_text_of(o) for o in cell.get("outputs", [])] for cell in (old, new))
        if check and shown != printed:
            sys.exit(f"{path} shows\n{shown}\nafter\n{new.source}\nbut this was printed\n{printed}")
    if not check:
        fresh.metadata.language_info = {"name": "python"}  # without the version
        nbformat.write(fresh, path)
    print(f"{path.name}: {time.perf_counter() - began:.1f} s")


_EMPTY = "<IPython.core.display.HTML object>"  # the place where progress was shown


def _text_of(output: Any) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


def main(pages: list[str]) -> None:
    """Run pages and write the real output into them, or fail where it differs."""
    check = "--check" in pages
    for name in [page for page in pages if page != "--check"]:
        path = Path(name).resolve()
        if path.suffix == ".ipynb":
            run_notebook(path, check=check)
            continue
        text, began, changed = path.read_text(encoding="utf-8"), time.perf_counter(), 0
        edits = []
        missing = {block.word("needs") for block in blocks_of(text)} - {None}
        missing = {name for name in missing if importlib.util.find_spec(name or "") is None}
        if check and missing:
            sys.exit(f"{path} needs {', '.join(sorted(map(str, missing)))}")
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
            for block, printed in Page(path).run():
                if not agrees(block.text, printed):
                    # Seconds differ from run to run.
                    shown = re.sub(r"\b\d[\d.]* s\b", "... s", _bare(printed))
                    edits.append((block.span, shown + "\n"))
        for (start, end), new in reversed(edits):
            if check:
                sys.exit(f"{name} shows\n{text[start:end]}and this was printed\n{new}")
            text = text[:start] + new + text[end:]
            changed += 1
        if not check:
            path.write_text(text, encoding="utf-8")
        print(f"{name}: {time.perf_counter() - began:.1f} s, {changed} blocks written")


if __name__ == "__main__":
    main(sys.argv[1:])
