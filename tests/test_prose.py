"""Tests of the rules of `docs/prose.py`.

Faults are found, and quotations, code and tables are skipped.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def prose():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "docs" / "prose.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["prose"]


def faults(prose, text, kind="page"):
    return list(prose.faults(prose.Sentence(kind, ROOT / "x.md", 1, text)))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("NOT REFUTED is a kind of silence.", "'silence'"),
        ("The audit looks at the output.", "'looks at'"),
        ("The bug was mended.", "'mended'"),
        ("A result is no truth value.", "'is no truth value'"),
        ("Of draws at fair coins nothing is known.", "'at fair coins'"),
        ("Of a mechanism nothing is known.", "begins with 'Of'"),
        ("What is left is certified.", "begins with 'What is"),
        ("Nor is the pair stored.", "begins with 'Nor'"),
        ("Those that survive are listed.", "begins with 'Those that'"),
        (" ".join(["word"] * 31) + ".", "31 words"),
    ],
)
def test_a_fault_is_found_with_its_fix(prose, text, fault):
    assert any(found.startswith(fault) for found in faults(prose, text))


def test_a_sentence_does_not_end_inside_code_quotes_or_brackets(prose):
    text = "Write `a. B` first. The end (see A. Here) is 'x'. A \"quote. Here\" too. Then stop."
    assert list(prose.split(text)) == [
        "Write `a. B` first.", "The end (see A. Here) is 'x'.", 'A "quote. Here" too.',
        "Then stop.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Of 29 bugs, 28 are refuted.",
        "Of course the pair is stored.",
        "What does a verdict mean?",
        "The word `silence` in code is not checked.",
        'Nor does a quoted "silence" count, but the first word does.',
        " ".join(["word"] * 30) + ".",
    ],
)
def test_good_sentences_pass(prose, text):
    expected = ["begins with 'Nor': put the subject first"] * text.startswith("Nor")
    assert faults(prose, text) == expected


def test_a_message_may_have_forty_words(prose):
    assert not faults(prose, " ".join(["word"] * 40), "message")
    assert faults(prose, " ".join(["word"] * 41), "message")


MODULE = '''
"""The module."""

@statement("p.one", expected="holds")
def row(ledger):
    """The paper says silence.

    The row says silence.
    """

def plain(x):
    """Return the first line.

    Parameters
    ----------
    x : int
        Parameter of silence.

    Returns
    -------
    dict of str
        Value of silence.

    ====  =====  ======
    name  value  result
    ====  =====  ======

    >>> silence = 1
    """
    # A comment of
    # silence.
    raise ValueError(f"x must be an int, got {x!r}")
'''


def test_the_sentences_of_a_module_are_all_but_quotations_code_and_tables(prose, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    assert {(one.kind, one.text) for one in prose.of_module(path)} == {
        ("docstring", "The module."),
        ("docstring", "The row says silence."),
        ("docstring", "Return the first line."),
        ("docstring", "Parameter of silence."),
        ("docstring", "Value of silence."),
        ("comment", "A comment of silence."),
        ("message", "x must be an int, got <x>"),
    }


def test_the_sentences_of_a_page_are_all_but_code_and_cells_are_of_a_kind(prose, tmp_path):
    path = tmp_path / "page.md"
    path.write_text("# A title\n\nOne. Two\nlines.\n\n```sh\nsilence\n```\n\n| a |\n|---|\n| b |\n")
    found = [(one.kind, one.text) for one in prose.of_page(path)]
    pages = [("page", text) for text in ("A title", "One.", "Two lines.")]
    assert found == [*pages, ("cell", "a"), ("cell", "b")]


def test_the_sample_is_that_of_its_seed_and_of_whole_sentences(prose, monkeypatch, capsys):
    every = [
        prose.Sentence("page", ROOT / "README.md", n, f"Sentence number {n} has words.")
        for n in range(200)
    ]
    every += [prose.Sentence("page", ROOT / "README.md", 201, "a fragment of four words")]
    monkeypatch.setattr(prose, "sentences", lambda paths: iter(every))
    samples = []
    for seed in ("0123abcd", "0123abcd", "ffff0000"):
        monkeypatch.setattr(sys, "argv", ["prose.py", "sample", seed])
        assert prose.main() == 0
        samples.append(capsys.readouterr().out)
    assert samples[0] == samples[1] != samples[2]
    assert len(samples[0].splitlines()) == prose.SAMPLE["page"]
    assert "fragment" not in "".join(samples)


def test_a_fault_gives_exit_code_1(prose, monkeypatch, capsys):
    for text, code in (("The audit is silence.", 1), ("The audit ends.", 0)):
        sentence = prose.Sentence("page", ROOT / "README.md", 3, text)
        monkeypatch.setattr(prose, "sentences", lambda paths, one=sentence: iter([one]))
        monkeypatch.setattr(sys, "argv", ["prose.py", "check"])
        assert prose.main() == code
    out = capsys.readouterr().out
    assert "README.md:3: 'silence': write no violation found" in out
