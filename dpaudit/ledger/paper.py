r"""A paper in the ledger: its statements and its conventions.

The statements and conventions are in ``statements.md``, next to the ledger files::

    # Private Geometric Median in Nearly-Linear Time (Kumar, Liu, Tian, Yang)

    - algorithms: algorithms/geometric_median, algorithms/common/noise.py

    ## Conventions

    - delta <= 1/2: a larger delta allows to publish the data half of the time.

    ## gm.lemma11: Lemma 11, Section 4.1

    For unit vectors u, v: norm(x' - y') <= max(norm(x - y), 3 eta)

    $$\lVert x' - y' \rVert \le \max(\lVert x - y \rVert, 3 \eta)$$

    > the exact words, if the wording matters

    - kind: lemma
    - rests on: gm.eq13
    - hides: the constant 3

The files after ``algorithms`` hold the paper's algorithms, of which ``dpaudit ledger --mutants``
makes mutants. Only the text of a statement is required. A check tests this text. Another version of
a paper may contain the same statement. In that case, ``- same as: gm.lemma11`` adopts the findings
on that statement.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpaudit.errors import StoreError
from dpaudit.ledger.survivors import MUTANTS, Mutants, read_mutants

TABLE = "statements.md"
"""File next to the ledger files of a paper that holds its statements."""

ERRATUM = "erratum.md"
"""File next to the ledger files of a paper in which a person describes its mistakes."""

PROGRAMS = "counterexamples.py"
"""File next to the erratum with the programs to which it refers."""

ID = re.compile(r"[A-Za-z][\w-]*(\.[\w-]+)+")

HEADING = re.compile(rf"## (?P<id>{ID.pattern})(: (?P<place>.+))?")
_FIELDS = ("kind", "rests on", "hides", "same as")
_COVERED = re.compile(r"^<!-- rows: (?P<ids>[^<>]+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """One statement of a paper.

    Parameters
    ----------
    id : str
        Short name of the paper, a dot, and a name within the paper, for example "gm.lemma11".
    paper : str
        Name of the paper, which is the name of the folder of its ledger files.
    kind : str
        Kind of statement, such as lemma, definition, runtime claim.
    text : str
        The statement, in plain words and symbols.
    hides : str
        The constants that the paper hides.
    place : str
        Number and section.
    latex : str
        The statement in mathematics.
    quote : str
        The exact words of the paper, if the wording matters.
    premises : tuple of str
        Ids of the statements on which the proof of this statement rests.
    same_as : str
        Id of an equal statement in another version of the paper. If this statement has no check, it
        gets the findings on the equal statement.
    """

    id: str
    paper: str
    kind: str = "statement"
    text: str = ""
    hides: str = ""
    place: str = ""
    latex: str = ""
    quote: str = ""
    premises: tuple[str, ...] = ()
    same_as: str = ""


@dataclass(frozen=True)
class Convention:
    """A condition that a paper assumes but does not state with every statement.

    Parameters
    ----------
    words : str
        The condition, such as "delta <= 1/2".
    why : str
        Reason why authors and readers assume the condition.
    """

    words: str
    why: str


@dataclass(frozen=True)
class Erratum:
    """The mistakes of a paper in the words of a person, for the authors of the paper.

    Parameters
    ----------
    text : str
        Markdown. A line ``<!-- rows: paper.lemma3, paper.eq4 -->`` below the heading of an entry
        names the rows of the ledger that the entry explains.
    programs : str
        Python code of the counterexamples to which the text refers. It may be empty.
    """

    text: str = ""
    programs: str = ""

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows that the entries explain."""
        lists = (found["ids"].split(",") for found in _COVERED.finditer(self.text))
        return tuple(id.strip() for ids in lists for id in ids)

    def linked(self, page: str) -> str:
        """Return the text with a line of links to the rows on a page below each heading."""

        def links(found: re.Match[str]) -> str:
            ids = (id.strip() for id in found["ids"].split(","))
            return "In the ledger: " + ", ".join(f"[{id}]({page}#{id})" for id in ids)

        return _COVERED.sub(links, self.text)


@dataclass(frozen=True)
class Paper:
    """A paper: its title, its conventions, and its statements.

    Parameters
    ----------
    name : str
        Name of the folder of its ledger files.
    title : str
        Title with the authors.
    conventions : tuple of Convention
        Conditions of the paper. A failure outside of these conditions does not refute a statement.
    statements : tuple of Statement
        Statements in the order of the paper.
    algorithms : tuple of str
        Files and folders with the paper's algorithms, relative to the project.
    mutants : Mutants
        What the mutants of the statements and algorithms showed.
    erratum : Erratum
        The mistakes of the paper in the words of a person.
    """

    name: str
    title: str = ""
    conventions: tuple[Convention, ...] = ()
    statements: tuple[Statement, ...] = ()
    algorithms: tuple[str, ...] = ()
    mutants: Mutants = field(default_factory=Mutants)
    erratum: Erratum = field(default_factory=Erratum, metadata={"later": True})

    @property
    def rows(self) -> dict[str, Statement]:
        """The statements by id."""
        return {statement.id: statement for statement in self.statements}

    def convention(self, words: str) -> Convention | None:
        """Return the convention with the given words; None if there is no such convention."""
        return next((known for known in self.conventions if known.words == words), None)


def algorithm_paths(paper: Paper, root: Path) -> list[Path]:
    """Return the files and folders with the algorithms of a paper, in the project `root`.

    Raises
    ------
    StoreError
        If a file or folder does not exist.
    """
    for part in paper.algorithms:
        if not (root / part).exists():
            raise StoreError(
                f"algorithms of {paper.name}/{TABLE} must be files and folders of {root}, got "
                f"{part!r}"
            )
    return [root / part for part in paper.algorithms]


def paper_of(path: Path) -> str:
    """Return the name of the paper to which a ledger file belongs: the name of the folder.

    Examples
    --------
    >>> paper_of(Path("audits/geometric_median/ledger_privacy.py"))
    'geometric_median'
    """
    return path.absolute().parent.name


def ledger_files(path: Path) -> list[Path]:
    """Return all ledger files of the paper to which a ledger file belongs, including this file."""
    return sorted(path.parent.glob("ledger_*.py"))


def paper_at(path: Path) -> Paper:
    """Return the paper of a ledger file.

    Without a table, the paper has no statements.

    Raises
    ------
    StoreError
        If the table cannot be read. The message gives the file and the line.
    """
    folder = path.parent
    table = folder / TABLE
    paper = read_paper(table) if table.is_file() else Paper(paper_of(path))
    erratum = Erratum(_text(folder / ERRATUM), _text(folder / PROGRAMS))
    return replace(paper, mutants=read_mutants(folder / MUTANTS), erratum=erratum)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from error


def read_paper(path: Path) -> Paper:
    """Read a file of statements.

    Raises
    ------
    StoreError
        If the file cannot be read. The message gives the file and the line, for example of a
        repeated id or an unknown field.
    """
    try:
        stat = path.stat()
        return _parse(path, stat.st_mtime_ns, stat.st_size)
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from error


@functools.lru_cache(maxsize=64)
def _parse(path: Path, mtime: int, size: int) -> Paper:
    """Parse each version of a file only once, because every check of a paper needs its row."""
    lines = path.read_text(encoding="utf-8").splitlines()
    title = next((line[2:].strip() for line in lines if line.startswith("# ")), "")
    conventions: tuple[Convention, ...] = ()
    statements: dict[str, Statement] = {}
    for number, heading, body in _sections(lines):
        if heading == "## Conventions":
            conventions = tuple(_conventions(path, number, body))
            continue
        found = HEADING.fullmatch(heading)
        if found is None:
            raise StoreError(
                f'{path}:{number} must be "## Conventions" or "## paper.name: Number, Section", '
                f"got {heading!r}"
            )
        id, place = found["id"], found["place"] or ""
        if id in statements:
            raise StoreError(f"{path}:{number} must have a new id, got {id} again")
        statements[id] = _statement(path, number, id, place, body)
    if not statements:
        raise StoreError(
            f"{path} must hold at least one statement. Add headings such as ## paper.name: Number"
        )
    for statement in statements.values():
        if unknown := [id for id in statement.premises if id not in statements]:
            raise StoreError(
                f"{path}: {statement.id} must rest only on statements of the file, got {unknown[0]}"
            )
        other = statements.get(statement.same_as)
        if statement.same_as and (other is None or other.same_as):
            raise StoreError(
                f"{path}: {statement.id} must be the same as an original statement, got "
                f"{statement.same_as}, which "
                + ("is not a statement" if other is None else f"is the same as {other.same_as}")
            )
    _refuse_circles(path, statements)
    name = path.absolute().parent.name
    head = itertools.takewhile(lambda line: not line.startswith("## "), lines)
    algorithms = dict(_bullets(head)).get("algorithms", "")
    return Paper(
        name,
        title or name.replace("_", " "),
        conventions,
        tuple(statements.values()),
        tuple(part.strip() for part in algorithms.split(",") if part.strip()),
    )


def _sections(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line number, the heading and the body of each section."""
    starts = [number for number, line in enumerate(lines) if line.startswith("## ")]
    for start, end in itertools.pairwise([*starts, len(lines)]):
        yield start + 1, lines[start].strip(), lines[start + 1 : end]


def _conventions(path: Path, number: int, body: Sequence[str]) -> Iterator[Convention]:
    for words, why in _bullets(body):
        if not why:
            starts = (
                at for at, line in enumerate(body, 1) if words.startswith(line[2:].strip(" :"))
            )
            line = number + next((at for at in starts if body[at - 1].startswith("- ")), 0)
            named = words.rstrip(".: ")
            raise StoreError(f"{path}:{line} must give a reason. Write - {named}: why")
        yield Convention(words, why)


def _bullets(body: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts before and after the first colon of each item of a list."""
    items: list[str] = []
    for line in body:
        if line.startswith("- "):
            items.append(line[2:].strip())
        elif items and line.startswith("  ") and line.strip():
            items[-1] += f" {line.strip()}"
    for item in items:
        words, _, rest = item.partition(": ")
        yield words.strip(), rest.strip()


def _statement(path: Path, number: int, id: str, place: str, body: list[str]) -> Statement:
    text, latex, quote = [], [], []
    inside = False
    for line in body:
        stripped = line.strip()
        if inside or stripped.startswith("$$"):
            opens = stripped.startswith("$$") and not inside
            latex.append(stripped.strip("$"))
            inside = not stripped.endswith("$$") or (opens and stripped == "$$")
        elif stripped == ">" or stripped.startswith("> "):  # not a line that begins with >=
            quote.append(stripped[1:].strip())
        elif stripped and not line.startswith(("- ", "  ")):
            text.append(stripped)
    fields = dict(_bullets(body))
    if unknown := [name for name in fields if name not in _FIELDS]:
        known = ", ".join(_FIELDS)
        raise StoreError(
            f"{path}:{number} has an unknown field {unknown[0]!r} of {id}. Known fields are {known}"
        )
    if not text:
        raise StoreError(f"{path}:{number} must give the text of {id}, got none")
    rests_on = fields.get("rests on", "")
    return Statement(
        id,
        path.absolute().parent.name,
        fields.get("kind", "statement"),
        " ".join(text),
        fields.get("hides", ""),
        place,
        " ".join(filter(None, latex)),
        " ".join(quote),
        tuple(premise.strip() for premise in rests_on.split(",") if premise.strip()),
        fields.get("same as", ""),
    )


def _refuse_circles(path: Path, statements: dict[str, Statement]) -> None:
    """Refuse a statement that rests on itself, directly or indirectly."""
    done: set[str] = set()

    def visit(id: str, above: tuple[str, ...]) -> None:
        if id in above:
            raise StoreError(f"{path}: {' rests on '.join([*above[above.index(id) :], id])}")
        if id not in done:
            for premise in statements[id].premises:
                visit(premise, (*above, id))
            done.add(id)

    for id in statements:
        visit(id, ())
