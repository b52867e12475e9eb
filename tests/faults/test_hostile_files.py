"""Tests that reading a hostile file runs no code, changes nothing else, and always ends."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from markdown_it import MarkdownIt

from dpaudit import NeighborPair, PureDP, Settings, StoreError, audit, audit_outputs
from dpaudit._files import file_stem, inside, read_array, read_arrays
from dpaudit._json import loads
from dpaudit.ledger import Paper
from dpaudit.ledger.erratum import draft, html, mathml, pdf
from dpaudit.ledger.paper import Statement
from dpaudit.ledger.rows import Harm, LedgerVerdict
from dpaudit.report import sarif, write_report
from dpaudit.results import Verdict
from dpaudit.run.direct import load_target
from dpaudit.run.export import export_test
from dpaudit.run.provenance import changed_sources
from dpaudit.run.replay import check_inside
from dpaudit.store import hold, load_record, load_run, save_record, save_run
from dpaudit.store.files import write_sealed
from tests.faults.hostile import document_of
from tests.report import hand_made

PAIR = hand_made.PAIR
RESULT = hand_made.result(origin={"path": "audits/audit_x.py", "item": "audit_one", "kind": "file"})
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")


def stored_run(out: Path, **changes: Any) -> Path:
    """Store a run of one audit whose `run` section an attacker changed."""
    save_record(out, RESULT)
    path = save_run(out, hand_made.run(), [RESULT])
    document = document_of(path)
    write_sealed(path, {**document, "run": {**document["run"], **changes}})
    return path


# --- paths ---


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/etc/passwd", "a/../../x", "a//b", "a\0b"]
)
def test_a_path_that_leaves_its_directory_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="must name a regular file inside"):
        inside(tmp_path, name)


def test_what_is_inside_is_found_and_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert inside(tmp_path, "link").read_text() == "x"
    assert inside(tmp_path, "new", "file.json") == tmp_path / "new" / "file.json"


def test_links_out_loops_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "loop").symlink_to("loop")
    (tmp_path / "in" / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "in" / "pipe")
    for name in ("folder/x.json", "loop", "zero", "pipe", "folder"):
        with pytest.raises(StoreError, match="must name a regular file inside"):
            inside(tmp_path / "in", name)


@pytest.mark.parametrize(
    "name", ["x/../../../../target", "", "..", "a" * 500, "e\nvil", "CON/\\:*?"]
)
def test_any_name_is_one_safe_part_of_a_path(name: str) -> None:
    stem = file_stem(name)
    assert stem == Path(stem).name
    assert stem.isascii()
    assert 0 < len(stem) < 140
    assert stem != file_stem(f"{name} ")


def test_a_paper_writes_its_erratum_inside_the_directory_only(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    (tmp_path / "p").mkdir()
    for name in ("x/../../../p/target", "", ".."):
        row = hand_made.row(LedgerVerdict.REFUTED)
        row = replace(row, stated=replace(row.stated, paper=name))
        write_report(out, hand_made.run(facts={"statement": (Paper(name),)}), [row])
    assert list((tmp_path / "p").iterdir()) == []
    assert {path.parent for path in tmp_path.rglob("*.md")} == {out}
    assert {path.name for path in tmp_path.rglob("*.html")} >= {"index.html", "ledger.html"}


def test_a_linked_folder_is_not_followed_and_nothing_in_it_is_renamed(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    (home / "id_rsa").write_text("secret")
    stored_run(out)
    os.rename(out / "audits", tmp_path / "gone")
    (out / "audits").symlink_to(home)
    run, results, _ = load_run(out)
    assert results == []
    assert "must name a regular file inside" in run.problems[0]
    assert [path.name for path in home.iterdir()] == ["id_rsa"]
    with pytest.raises(StoreError, match="must name a regular file inside"):
        save_record(out, RESULT)


@pytest.mark.parametrize("name", ["", ".", "..", "../results.json", "../audits"])
def test_an_id_that_is_no_file_of_the_folder_moves_nothing(tmp_path: Path, name: str) -> None:
    path = stored_run(tmp_path)
    rows = [{"id": name, "stored": True}]
    write_sealed(path, {**document_of(path), "audits": rows})
    before = sorted(map(str, tmp_path.rglob("*")))
    run, results, _ = load_run(tmp_path)
    assert results == []
    assert len(run.problems) == 1
    assert sorted(map(str, tmp_path.rglob("*"))) == before


@needs_pipes
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
@pytest.mark.parametrize("name", ["results.json", "audits/{}.json", "audits/{}.npz", ".lock"])
def test_pipes_and_devices_are_neither_waited_for_nor_read(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    stored_run(tmp_path)
    path = tmp_path / name.format("audit_x.audit_one")
    path.unlink(missing_ok=True)
    make(path)
    if name == ".lock":
        with pytest.raises(StoreError, match="must name a regular file"):
            hold(tmp_path, "dpaudit run")
    elif name == "results.json":
        with pytest.raises(StoreError, match="regular file"):
            load_run(tmp_path)
    else:
        run, results, _ = load_run(tmp_path)
        assert "regular file" in run.problems[0]
        assert [result.pair for result in results] == [None] * name.endswith(".npz")


@needs_pipes
def test_sources_are_hashed_inside_the_project_only(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "out").symlink_to("/etc/hostname")
    names = ["/dev/zero", "pipe", "out", "../x.py", "/etc/hostname", "sub", "a\0b", ""]
    assert changed_sources({"sources": dict.fromkeys(names, "0" * 12)}) == sorted(names)


# --- code ---


def test_stored_text_never_becomes_code_of_an_exported_test(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    evil = 'x"""\n\'\'\'\nimport os; os.system("touch hacked")  # coding: rot13\n\x0c\r\x85'
    function = {
        "kind": "function", "draws": 100, "failure_prob": 1e-6, "method": "fixed",
        "float_attack": False, "mu": None, "rho": None, "epsilon": 1.0, "delta": None,
    }  # fmt: skip
    file = {"kind": "file", "profile": "quick", "failure_prob": 1e-6, "sequential": False}
    claim = {**hand_made.claim(), "words": evil}
    line, shapes = "x\"\"\" + ''' {0} {pair} \\", []
    for index, words in enumerate(("m.py:f", f"{line}.py:{line}", f"{line}:{line}", "m:f")):
        for origin in ({**function, "target": words}, {**file, "path": words, "item": evil}):
            result = hand_made.result(
                verdict=Verdict.REFUTED, origin=origin, claim=claim, mechanism=evil, id=words
            )
            path = save_record(tmp_path, result)
            test = tmp_path / f"test_{index}.py"
            test.unlink(missing_ok=True)
            export_test(path, test)
            tree = ast.parse(test.read_bytes())
            for node in ast.walk(tree):  # only text may differ
                if isinstance(node, ast.Constant):
                    node.value = ""
                if isinstance(node, ast.FunctionDef):
                    node.name = ""
            is_path = "target" in origin and words.rpartition(":")[0].endswith(".py")
            shapes.append((origin["kind"], is_path, ast.dump(tree)))
    assert len(set(shapes)) == len({shape[:2] for shape in shapes}) == 3


def test_an_exported_test_needs_to_know_how_the_audit_was_made(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    result = hand_made.result(verdict=Verdict.REFUTED, origin={"kind": "function"})
    with pytest.raises(StoreError, match="does not say how it was made: origin lacks 'target'"):
        export_test(save_record(tmp_path, result), tmp_path / "test_x.py")


@pytest.mark.parametrize(
    "function", ["np.linalg.norm", "norm", "os.system", "np.add", "np.linalg", "rng.normal", "Pool"]
)
def test_a_replay_calls_no_package_through_a_module_of_the_project(
    tmp_path: Path, monkeypatch: Any, function: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hostile_m.py").write_text(
        "import os\nimport numpy as np\nfrom numpy.linalg import norm\n"
        "from multiprocessing.pool import Pool\nrng = np.random.default_rng(0)\n"
        "from functools import partial\n\ndef own(x): return x\n\nbound = partial(own, 1)\n"
    )
    with pytest.raises(click.UsageError, match="outside of this directory"):
        load_target(f"hostile_m.py:{function}", tmp_path)
    assert load_target(f"hostile_m.py:{function}") is not None  # as with --trust
    assert callable(load_target("hostile_m.py:own", tmp_path))
    assert callable(load_target("hostile_m.py:bound", tmp_path))


def test_a_replay_reads_no_data_outside_of_the_project(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = hand_made.result(origin={"kind": "function", "like": "/dev/zero.npy"})
    with pytest.raises(click.UsageError, match="outside of this directory"):
        check_inside(result)


# --- sizes ---


def bomb(declared: int = 2**31 - 1) -> bytes:
    """Return a small .npz file that declares a large array."""
    file = io.BytesIO()
    np.savez_compressed(file, left=np.zeros(10), right=np.zeros(10), facts=np.array("{}"))
    content = bytearray(file.getvalue())
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", declared)
    return bytes(content)


def lying_header() -> bytes:
    """Return a .npy file whose header declares 80 TB."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    )
    return file.getvalue() + bytes(80)


def test_arrays_are_refused_by_what_they_declare(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"at most 536,870,912 bytes in total, got 2,147,4"):
        read_arrays(bomb())
    path = tmp_path / "x.npy"
    path.write_bytes(lying_header())
    with pytest.raises(ValueError, match="must declare an array that fits into the file"):
        read_array(path)


def test_a_pair_that_inflates_is_lost_and_costs_no_result(tmp_path: Path) -> None:
    path = save_record(tmp_path, RESULT)
    content = bomb()
    path.with_suffix(".npz").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    write_sealed(path, {**document_of(path), "pair_sha256": digest})
    record, problems = load_record(path)
    assert record.pair is None
    assert "got 2,147" in problems[0]


@pytest.mark.parametrize("content", [lying_header(), b"", b"\x93NUMPY\x01\x00", bytes(100)])
def test_outputs_whose_header_lies_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "left.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="left must be a file of an array"):
        audit_outputs(path, np.zeros(100), PureDP(1.0), seed=0)


def noisy(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


def test_kept_calls_that_inflate_are_refused(tmp_path: Path) -> None:
    def again() -> None:
        audit(
            noisy,
            PureDP(1.0),
            PAIR,
            draws=100,
            seed=0,
            mutants=None,
            settings=Settings(cache_dir=tmp_path),
        )

    again()
    kept = next(tmp_path.rglob("*.npz"))
    for content in (bomb(), lying_header(), b""):
        kept.write_bytes(content)
        with pytest.raises(StoreError, match="does not hold a complete call of a mechanism"):
            again()


# --- JSON ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested"),
        ("[" * 65 + "]" * 65, "nested at most 64"),
        ('{"x": 1e999}', "too large"),
        ('{"x": NaN}', "numbers must be finite, got NaN"),
        ('{"x": ' + "7" * 400 + "}", "at most 100 digits"),
        ('{"x": "\\ud800"}', "surrogates"),
        ('{"\\udfff": 1}', "surrogates"),
        (b"\xff\xfe", "Expecting value"),
    ],
)
def test_json_beyond_its_limits_is_refused(text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        loads(text)


def test_json_within_its_limits_is_read() -> None:
    assert loads("[" * 64 + "]" * 64)
    assert loads('{"x": "\\ud83d\\ude00", "y": 1e308}') == {"x": "\U0001f600", "y": 1e308}


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(StoreError, match="must hold at most 67,108,864 bytes"):
        load_record(path)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("verdict", [], "verdict: the type must be Verdict"),
        ("epsilon", [], "epsilon: the type must be Estimate"),
        ("claim", {}, "claim: the data have no field delta, epsilon"),
        ("failure_prob", 2.0, r"failure_prob: expected a number in \[0, 1\]"),
        ("draws", {"explore": -1}, "draws: explore: expected a number"),
        ("origin", {"sources": ["x"]}, "origin: sources: the type must be dict"),
        ("origin", {"path": 5}, "origin: path: the type must be str, got 5"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, field: str, value: Any, words: str) -> None:
    path = save_record(tmp_path, RESULT)
    write_sealed(path, {**document_of(path), field: value})
    with pytest.raises(StoreError, match=f"is not a complete audit: {words}"):
        load_record(path)


# --- markup ---


def test_formulas_keep_no_links_and_no_styles() -> None:
    latex = r"\href{javascript:alert(1)}{x} \style{background:url(//evil)}{y} \class{a}{z}"
    found = str(mathml(latex))
    assert found.startswith("<math")
    for word in ("href", "style=", "class", "javascript", "evil"):
        assert word not in found


def test_stored_text_is_no_markup_in_an_erratum() -> None:
    evil = "<img src=x> [a](http://evil) ![b](//evil) `c` **d** __e__ &lt; $f$\n# g\n- h\n```\ni"
    stated = Statement("p.one", "p", "lemma", evil, place=evil, latex="``` </math> $$", quote=evil)
    row = hand_made.row(LedgerVerdict.REFUTED, stated=stated, note=evil, consequence=evil)
    row = replace(row, harm=Harm.PRIVACY)
    text = draft(Paper("p", evil), [row])
    tokens = MarkdownIt("commonmark").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in [*tokens, *inline]}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "code_inline"}
    assert kinds.isdisjoint({"bullet_list_open", "ordered_list_open"})
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    assert headings == ["h1", "h2"]
    assert [token.info for token in tokens if token.type == "fence"] == ["math"]
    shown = "".join(child.content for child in inline if child.type == "text")
    assert " ".join(evil.split()) in shown
    page = str(html(text))
    assert not re.search(r"<(img|a|ul|ol|script)\b", page)


def test_a_written_erratum_runs_nothing_and_reads_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    evil = "<script>alert(1)</script>\n\n![x](secret.png) [y](javascript:alert(1))\n\n"
    evil += '```{=typst}\n#read("secret.png")\n```\n\n$\\href{javascript:alert(1)}{x}$ #panic()'
    page = str(html(evil))
    assert not re.search(r"<(script|img)\b|href=\"?javascript", page)
    pytest.importorskip("typst", reason="needs dpaudit[pdf]")
    printed = pdf(evil)
    assert printed is not None
    assert printed.startswith(b"%PDF")


def test_stored_text_is_no_link_and_no_placeholder_in_sarif(tmp_path: Path) -> None:
    evil = "[click](http://evil) {0} \\[x"
    result = hand_made.result(
        verdict=Verdict.REFUTED,
        reason=evil,
        origin={"path": "x/../../../etc/passwd", "item": "root"},
    )
    (found,) = json.loads(sarif(hand_made.run(), [result]))["runs"][0]["results"]
    assert "\\[click\\](http://evil) {{0}} \\\\\\[x" in found["message"]["text"]
    assert "physicalLocation" not in found["locations"][0]


def test_pairs_from_strangers_import_no_library(tmp_path: Path) -> None:
    facts = {"form": "frame", "library": "pyspark", "columns": {}, "dtypes": {}}
    from dpaudit.data import Packed, unpacked

    with pytest.raises(ValueError, match="library must be one of pandas"):
        unpacked(Packed({}, facts))
    huge = {"form": "sequence", "kind": "list", "dtypes": ["<U500000000"]}
    arrays = {"": np.array(["a"]), "counts": np.array([1])}
    with pytest.raises(ValueError, match="the items of all users must fit"):
        unpacked(Packed(arrays, huge))
    assert NeighborPair([[1.0], [2.0, 3.0]], [[1.0], [2.0, 4.0]]) is not None
