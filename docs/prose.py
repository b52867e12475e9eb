"""Check the English of pages, docstrings, comments and messages; draw a sample of sentences.

    python docs/prose.py check [PATH ...]   # print each fault; the exit code is 1 if there is any
    python docs/prose.py sample SEED        # draw sentences for first-time readers

The rules are banned words with their replacements, banned openings of a sentence, and a maximum
number of words. `EXCEPTIONS` lists sentences that are allowed anyway, and `QUOTED` lists files that
quote papers. A row of a ledger begins with a quoted statement, which is skipped.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import random
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

ROOT = Path(__file__).parents[1]
MOST_WORDS = {"page": 30, "cell": 30, "docstring": 30, "comment": 30, "message": 40}
"""Maximum number of words in a sentence."""

SAMPLE = {"docstring": 100, "page": 60, "message": 60}

BANNED = {
    r"\bsilence\b": "no violation found",
    r"\blooks? at\b": "audit, test, examine",
    r"\btold\b": "reported, described",
    r"\bdear\b": "expensive",
    r"\bmended\b": "fixed",
    r"\bknown law\b|\blaws? of (?:the )?outputs?\b": "distribution",
    r"\bcures?\b": "fix",
    r"\bat fair coins\b": "randomised draws",
    r"\bwould see\b": "detectable epsilon",
    r"\bunnoticed\b": "undetected",
    r"\bis no (?:truth value|news|counterexample)\b": "has no, is not",
    r"\bloud users?\b": "a user with a distinctive gradient (a canary)",
    r"\bboldness\b|\bstakes?\b": "bet size",
    r"\badversarial places?\b": "adversarial value",
    r"\bgets? along\b": "needs only",
    r"\bbeside(?:s)? (?:it|them|that)\b": "next to, in addition to",
    r"\bas ever\b": "as always",
    r"\bbetray(?:s|ed)?\b": "reveal",
}
"""Patterns, and what to write instead."""

OPENINGS = {
    r"Of (?!course\b|all\b|these\b|[\d0-9])": "put the subject first",
    r"What (?:is|are|was|does|do|has|can|no)\b[^?]*$": "name the thing",
    r"(?:Nor|Whom|Wherever|Whatever)\b": "put the subject first",
    r"(?:That|Those) (?:of|which|that)\b": "repeat the noun",
}
"""Openings of a sentence, and what to do instead."""

EXCEPTIONS: dict[str, str] = {}
"""Sentences that are allowed anyway, by their beginning, with the reason."""

QUOTED = ("audits/*/statements.md",)
"""Files of quotations, which neither the rules nor the sample read."""

_NOT_A_SENTENCE = re.compile(r"(\be\.g|\bi\.e|\bvs|\bcf|\bet al|\bLemma|\bsec|\bfig|\bp)\.$", re.I)
_BORDER = re.compile(r"^\s*=+(?: +=+)+\s*$")
_UNDERLINE = re.compile(r"^\s*[-=~^]{3,}\s*$")


@dataclass(frozen=True)
class Sentence:
    """A sentence that a person reads, with its position."""

    kind: str
    path: Path
    line: int
    text: str

    @property
    def place(self) -> str:
        """The file and the line, relative to the root."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def split(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph."""
    begun = ""
    for part in re.split(r"(?<=[.?!:])\s+(?=[\"'`(A-Z]|dpaudit\b)", " ".join(text.split())):
        begun = f"{begun} {part}".strip()
        opened, closed = (sum(map(begun.count, marks)) for marks in ("([", ")]"))
        is_open = opened > closed or any(begun.count(mark) % 2 for mark in '"`')
        if not is_open and not _NOT_A_SENTENCE.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun


def of_page(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a page, and of the cells of its tables, without its code.

    A formula counts as one word.
    """
    reader = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, allow_space=False)
    tokens = reader.parse(path.read_text(encoding="utf-8"))
    in_table, line = False, 0
    for token in tokens:
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        line = token.map[0] + 1 if token.map else line
        if token.type == "inline":
            words = "".join(
                {
                    "softbreak": "\n",
                    "hardbreak": "\n",
                    "code_inline": f"`{child.content}`",
                    "math_inline": "x",
                }.get(child.type, child.content)
                for child in token.children or []
            )
            # In the glossary, the first line of a paragraph is the term.
            parts = words.split("\n", 1) if path.name == "glossary.md" else [words]
            if not words.startswith((":::", "{")):
                for text in (one for part in parts for one in split(part)):
                    yield Sentence("cell" if in_table else "page", path, line, text)


def of_module(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of docstrings, comments and messages of a module."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[0] if node.body else None
            if isinstance(body, ast.Expr) and isinstance(body.value, ast.Constant):
                text = ast.get_docstring(node) or ""
                quoted = "@statement" in source and any(map(_is_row, _decorators(node)))
                for at, paragraph in list(_paragraphs(text))[int(quoted) :]:
                    for one in split(paragraph):
                        yield Sentence("docstring", path, body.lineno + at, one)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for text in (_words(argument) for argument in node.exc.args):
                for one in split(text):
                    yield Sentence("message", path, node.lineno, one)
    comments = (
        (token.start[0], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )
    block: list[tuple[int, str]] = []
    for line, text in [*comments, (-1, "")]:
        if block and line != block[-1][0] + 1:
            for one in split(" ".join(words for _, words in block)):
                if not one.startswith(("noqa", "type:", "fmt:", "---", "pragma")):
                    yield Sentence("comment", path, block[0][0], one)
            block = []
        block.append((line, text))


def _decorators(node: ast.AST) -> list[ast.expr]:
    """Return the decorators of a function or class."""
    return getattr(node, "decorator_list", [])


def _is_row(decorator: ast.expr) -> bool:
    """Return whether a decorator makes a function a row of a ledger."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "statement"


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the prose of a docstring: no section heads, no types of parameters, no examples."""
    lines = inspect.cleandoc(text).split("\n")
    begun: list[str] = []
    start, skips, in_table = 0, False, False
    for at, line in enumerate([*lines, ""]):
        after = lines[at + 1] if at + 1 < len(lines) else ""
        is_head = bool(_UNDERLINE.match(after)) or bool(_UNDERLINE.match(line))
        is_code = line.lstrip().startswith((">>>", "...", "::", "|", "..")) or (
            skips and line.startswith("    ")
        )
        is_parameter = re.match(r"^\*{0,2}\w[\w., *]* : ", line) is not None
        # The name of a parameter or an item, or a type, with its description indented below.
        deeper = len(after) - len(after.lstrip()) > len(line) - len(line.lstrip())
        is_item = re.match(r"\s*(?:[-*]|\d+\.|\(\w+\)) ", line) is not None
        is_type = deeper and not is_item and not line.rstrip().endswith((".", ",", ";", ":"))
        in_table = bool(line.strip()) and (in_table or bool(_BORDER.match(line)))
        is_parameter = is_parameter or is_type or in_table
        if not line.strip() or is_head or is_code or is_parameter:
            if begun:
                yield start, " ".join(begun)
            begun, skips = [], line.lstrip().startswith(">>>") or (is_code and bool(line.strip()))
            continue
        if not begun:
            start = at
        begun.append(line.strip())


def _words(node: ast.expr) -> str:
    """Return the text of a message, with "<name>" or "…" in place of inserted values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_words, node.values))
    if isinstance(node, ast.FormattedValue):
        name = getattr(node.value, "attr", getattr(node.value, "id", ""))
        return f"<{name}>" if name else "…"
    if isinstance(node, ast.BinOp):
        return _words(node.left) + _words(node.right)
    return "…"


def faults(sentence: Sentence) -> Iterator[str]:
    """Yield descriptions of what is wrong with a sentence."""
    text = sentence.text
    if any(text.startswith(start) for start in EXCEPTIONS):
        return
    plain = re.sub(r"``.*?``|`.*?`|\"[^\"]*\"|\$.*?\$", "X", re.sub(r"<\w+>", "…", text))
    for pattern, instead in BANNED.items():
        found = re.search(pattern, plain, re.IGNORECASE)
        if found:
            yield f"'{found[0]}': write {instead}"
    for pattern, instead in OPENINGS.items():
        found = re.match(pattern, plain)
        if found:
            yield f"begins with '{found[0].strip()[:20]}': {instead}"
    words, most = len(re.findall(r"[\w'-]+", plain)), MOST_WORDS[sentence.kind]
    if words > most:
        yield f"{words} words: at most {most} in a {sentence.kind}"


def sentences(paths: list[Path]) -> Iterator[Sentence]:
    """Yield the sentences of all files that git does not ignore, or of those below some paths."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.split("\n"):
        path = ROOT / name
        if not name or name.startswith("reports/") or not path.is_file():
            continue
        if any(Path(name).match(pattern) for pattern in QUOTED):
            continue
        if not paths or any(path.is_relative_to(one.resolve()) for one in paths):
            yield from of_page(path) if path.suffix == ".md" else of_module(path)


def _is_whole(sentence: Sentence) -> bool:
    """Return whether a reader can judge a sentence alone: it is complete and has several words."""
    ends = sentence.kind == "message" or sentence.text.endswith((".", "?", "!", ".)", ":"))
    return ends and len(re.findall(r"[A-Za-z]{2,}", sentence.text)) > 3


def main() -> int:
    """Print the faults, or a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="print each fault")
    checking.add_argument("paths", nargs="*", type=Path)
    commands.add_parser("sample", help="draw sentences").add_argument("seed")
    asked = parser.parse_args()
    if asked.command == "sample":
        every = sorted(set(sentences([])), key=lambda s: (str(s.path), s.line, s.text))
        rng = random.Random(asked.seed)
        for kind, count in SAMPLE.items():
            chosen = [s for s in every if s.kind == kind and _is_whole(s)]
            for one in rng.sample(chosen, min(count, len(chosen))):
                print(f"{one.kind:10} {one.place}  {one.text}")
        return 0
    count = 0
    for sentence in sentences(asked.paths):
        for fault in faults(sentence):
            count += 1
            print(f"{sentence.place}: {fault}\n    {sentence.text}")
    print(f"{count} faults")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
