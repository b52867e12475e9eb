"""Tests that the site lists every public name.

The code of the site must run and print the output that is shown.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

import dpaudit
from dpaudit.run import plugin
from dpaudit.run.cli import cli

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = ("_build", "papers", "findings")  # pages that were not written by hand


def beside(name):
    """Import a module of docs/, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


snippets, check_site, measure = beside("snippets"), beside("check_site"), beside("measure")
PAGES = [
    path for path in sorted(DOCS.rglob("*.md")) if path.relative_to(DOCS).parts[0] not in BUILT
]
WITH_CODE = [
    path
    for path in PAGES
    if any(
        block.language == "python" or block.word("run") is not None
        for block in snippets.blocks_of(path.read_text(encoding="utf-8"))
    )
]
FAST = {
    "choose.md",
    "guides/additive-noise.md",
    "guides/floating-point.md",
    "guides/instrument.md",
    "index.md",
}
"""Pages that `make test` runs. Their code takes one or two seconds."""
NIGHTLY = {
    "guides/causes.md",
    "guides/databases.md",
    "guides/frames.md",
    "guides/interactive.md",
    "guides/side-channels.md",
    "guides/sparse-vector.md",
    "guides/synthetic-data.md",
}
"""Pages whose code takes more than ten seconds, but for those that many read first. CI runs all
others."""


def named(path):
    return path.relative_to(DOCS).as_posix()


def marks_of(path):
    if named(path) in FAST:
        return ()
    return pytest.mark.nightly if named(path) in NIGHTLY else pytest.mark.slow


# --- code --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=marks_of(p)) for p in WITH_CODE],
    ids=named,
)
def test_code_runs_and_prints_what_is_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block, printed in snippets.Page(path).run():
        shown = f"{named(path)}:{block.line} shows\n{block.text}\nand this was printed\n{printed}"
        assert snippets.agrees(block.text, printed), shown


def test_fast_and_nightly_pages_are_pages():
    assert {named(path) for path in WITH_CODE} > FAST | NIGHTLY
    assert not FAST & NIGHTLY


def test_all_pages_of_guides_have_code():
    guides = {path for path in PAGES if path.parent.name == "guides" and path.stem != "index"}
    assert len(guides) >= 12
    assert guides <= set(WITH_CODE)


def test_output_that_differs_is_noticed():
    assert snippets.agrees("a ... c\n", "a b c")
    assert snippets.agrees("a\n...\n", "a\nb\n")
    assert not snippets.agrees("a ... c\n", "a b")
    assert not snippets.agrees("a\n", "a\nb")
    text = "# Page\n\n```python\nprint(1)\n```\n\n```text output\n2\n```\n"
    blocks = list(snippets.blocks_of(text))
    assert [block.language for block in blocks] == ["python", "text"]
    assert not snippets.agrees(blocks[1].text, "1\n")


# --- reference ---------------------------------------------------------------------------------

REFERENCE = "".join(
    path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference").glob("*.md"))
)
DOCUMENTED = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (\S+)", REFERENCE, flags=re.MULTILINE))


def face():
    """Return the public names, and the public names that are packages."""
    stub = ast.parse((ROOT / "dpaudit" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    rooms = {alias.name for node in imports if node.module is None for alias in node.names}
    return {alias.name for node in imports for alias in node.names}, rooms


def test_reference_has_the_whole_public_face():
    names, rooms = face()
    modules = {"oracles", "strategies"}
    assert len(names - rooms) > 40
    missing = {n for n in names - rooms - modules if f"dpaudit.{n}" not in DOCUMENTED}
    assert not missing
    assert all(any(f".{module}." in name for name in DOCUMENTED) for module in modules)


@pytest.mark.parametrize(
    ("room", "inside"),
    [
        ("neighbors", {"PATTERNS", "RECIPES", "SPACES", "Point", "checked", "NeighborPair"}),
        ("adapters", set()),
        ("stats.oracles", set()),
    ],
)
def test_reference_has_what_rooms_offer(room, inside):
    module = importlib.import_module(f"dpaudit.{room}")
    helpers = {"design_points", "each", "from_recipe", "in_words", "no_valid_pair"}
    helpers |= {"pairs_from_words", "parse_value", "plain", "space_from_words"}
    last = {name.rpartition(".")[2] for name in DOCUMENTED}
    assert set(module.__all__) - inside - helpers <= last


def test_the_page_of_the_api_names_every_parameter_in_its_order():
    page = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text api\n(.*?)```", page, flags=re.DOTALL)
    calls = [line for block in blocks for line in block.splitlines()]
    assert len(calls) > 20
    for call in calls:
        name, _, rest = call.partition("(")
        found = dpaudit
        for part in name.split("."):
            found = getattr(found, part)
        parameters = list(inspect.signature(found).parameters)
        assert rest.rstrip(")").split(", ") == parameters, call


def test_documented_names_exist():
    for name in DOCUMENTED:
        module, *rest = name.split(".")
        found = importlib.import_module(module)
        for part in rest:
            if not hasattr(found, part):
                found = importlib.import_module(f"{found.__name__}.{part}")
            else:
                found = getattr(found, part)


def sections():
    """Return the options that the page of commands lists, by command."""
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    parts = re.split(r"^## dpaudit ([\w-]+)$", page, flags=re.MULTILINE)
    return {
        name: {
            flag
            for cell in re.findall(r"^\| (`-.*?) \|", text, flags=re.MULTILINE)
            for flag in re.findall(r"`(--?[a-z-]+)", cell)
        }
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


# Only ci.md names options of a branch that is not merged yet, such as `dpaudit run --junit`.
@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_option_is_documented_and_no_other(name):
    listed = sections()
    assert name in listed
    options = {
        flag
        for parameter in cli.commands[name].params
        if parameter.param_type_name == "option"
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }
    assert listed[name] == options


def test_no_other_command_is_documented():
    assert set(sections()) == set(cli.commands)


def test_every_option_of_pytest_is_documented_and_no_other():
    page = (DOCS / "reference" / "pytest.md").read_text(encoding="utf-8")
    first = re.findall(r"^\| (`--dpaudit[^|]*)", page, flags=re.MULTILINE)
    listed = set(re.findall(r"`(--dpaudit[a-z-]*)", " ".join(first)))
    found, keys = set(), set()

    class Group:
        def addoption(self, *names, **more):
            found.update(names)

    class Parser:
        def getgroup(self, *names):
            return Group()

        def addini(self, name, *more, **others):
            keys.add(name)

    plugin.pytest_addoption(Parser())
    assert listed == found
    assert set(re.findall(r"^\| `(dpaudit_\w+)`", page, flags=re.MULTILINE)) == keys


# --- errors ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def texts():
    """Return every text of the package, with a gap for each inserted value."""
    found = []
    for path in sorted((ROOT / "dpaudit").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "\0" for p in node.values]
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def phrases(page):
    """Return the phrases that the first column of the tables of a page quotes."""
    return re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE)


@pytest.mark.slow
def test_quoted_messages_are_those_of_the_source(texts):
    errors = (DOCS / "errors.md").read_text(encoding="utf-8")
    choose = (DOCS / "choose.md").read_text(encoding="utf-8").partition("(no-power)=")[2]
    quoted = [*phrases(errors), *phrases(choose)]
    assert len(quoted) > 70
    for phrase in quoted:
        for part in re.split(r"\.\.\.| \d+ ", phrase):
            assert any(part.strip() in text for text in texts), phrase


# --- the built site ----------------------------------------------------------------------------


def test_a_page_that_asks_another_host_or_leads_nowhere_is_noticed(tmp_path):
    (tmp_path / "fine.html").write_text('<h1 id="top"></h1><a href="https://x.org">x</a>')
    assert not list(check_site.faults(tmp_path))
    (tmp_path / "bad.html").write_text(
        '<script src="https://cdn.org/a.js"></script><a href="gone.html">g</a>'
        '<a href="fine.html#nowhere">n</a><a href="fine.html#top">t</a>'
    )
    (tmp_path / "bad.css").write_text("@font-face { src: url('//fonts.org/a.woff2') }")
    found = " ".join(check_site.faults(tmp_path))
    for fault in ("cdn.org", "gone.html", "fine.html#nowhere", "fonts.org"):
        assert fault in found
    assert "fine.html#top" not in found


@pytest.mark.slow
def test_site_builds_without_a_warning_and_asks_nobody(tmp_path):
    pytest.importorskip("pydata_sphinx_theme", reason="needs the extra docs")
    import subprocess

    build = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-n",
        "-b",
        "html",
        str(DOCS),
        str(tmp_path),
    ]
    ran = subprocess.run(build, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not list(check_site.faults(tmp_path))
    assert (tmp_path / "papers" / "index.html").exists()
    assert (tmp_path / "reference-run" / "ledger.html").exists()


# --- measurements -----------------------------------------------------------------------------


PAGE = """# A page

```sh measured
echo old
```

```text
before
```

Measured on commit 0123abcd, by hand.

More words.

```sh measured
printf '| a |\\n|---|\\n| 1 |\\n'
```

Measured on a commit that nobody knows.
"""


def test_measurements_are_written_into_their_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    first, second = measure.measurements([page])
    assert (first.commit, second.commit) == ("0123abcd", "that")
    assert not first.is_current
    assert [first.run(), second.run()] == [True, True]
    text = re.sub(r"^Measured on .* in \d+ seconds on .*$", "STAMP", page.read_text(), flags=re.M)
    assert text == (
        "# A page\n\n```sh measured\necho old\n```\n\n```text\nold\n```\n\nSTAMP\n\nMore words.\n\n"
        "```sh measured\nprintf '| a |\\n|---|\\n| 1 |\\n'\n```\n\n| a |\n|---|\n| 1 |\n\nSTAMP\n"
    )


def test_a_failed_measurement_leaves_its_page_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("echo old", "echo half; exit 3"), encoding="utf-8")
    before = page.read_text(encoding="utf-8")
    assert not next(measure.measurements([page])).run()
    assert page.read_text(encoding="utf-8") == before


def test_a_measurement_is_current_if_the_code_is_as_on_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "ROOT", tmp_path)
    (tmp_path / "dpaudit").mkdir()
    code = tmp_path / "dpaudit" / "code.py"
    code.write_text("1", encoding="utf-8")
    identity = ("-c", "user.name=x", "-c", "user.email=x")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "x")):
        assert measure._git(*command)[0] == 0
    commit = measure._git("rev-parse", "HEAD")[1].strip()
    one = measure.Measurement(tmp_path / "page.md", "true", commit)
    (tmp_path / "words.md").write_text("2", encoding="utf-8")
    assert one.is_current
    code.write_text("2", encoding="utf-8")
    assert not one.is_current


def test_the_output_of_changing_code_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    states = iter([("a", ""), ("b", "")])
    monkeypatch.setattr(measure, "state", lambda: next(states))
    assert not next(measure.measurements([page])).run()
    assert page.read_text(encoding="utf-8") == PAGE


def test_every_measurement_of_the_pages_is_found_and_has_a_command() -> None:
    pages = sorted((DOCS / "measured").glob("*.md"))
    found = list(measure.measurements(pages))
    assert len(found) == sum(page.read_text("utf-8").count("```sh measured") for page in pages)
    assert len({(one.page, one.command) for one in found}) == len(found)
    for one in found:
        module = one.command.removeprefix("python -m ").split()[0]
        assert importlib.util.find_spec(module), one.command
