"""Tests of texts as characters.

Hashes are compared with plain slices, for all widths of the array.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.events import encoding as module
from dpaudit.events.encoding import PLAIN_LABELS, Encoder, Labels, Texts
from dpaudit.events.features import all_features

words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9))


@pytest.mark.slow
@given(words.filter(len), st.integers(1, 10))
def test_hashes_tell_ends_apart_as_slices_do(texts: list[str], count: int) -> None:
    seen = Texts.of(np.array(texts))
    assert seen.lengths.tolist() == [len(text) for text in texts]
    for hashes, slices in (
        (seen.first(), texts),
        (seen.first(count), [text[:count] for text in texts]),
        (seen.last(count), [text[-count:] for text in texts]),
    ):
        assert len(set(hashes.tolist())) == len(set(slices))
        assert len(set(zip(hashes.tolist(), slices, strict=True))) == len(set(slices))


@given(words.filter(len))
def test_hashes_do_not_depend_on_the_other_texts(texts: list[str]) -> None:
    together = Texts.of(np.array([*texts, "x" * 40]))
    for at, text in enumerate(texts):
        alone = Texts.of(np.array([text]))
        assert together.first()[at] == alone.first()[0]
        assert together.last(3)[at] == alone.last(3)[0]


@pytest.mark.parametrize("dtype", ["<U4", ">U4", "S4"])
def test_bytes_and_either_byte_order_are_the_same_characters(dtype: str) -> None:
    seen = Texts.of(np.array(["abcd", "b", ""], dtype=dtype))
    assert seen.codes.tolist() == [[97, 98, 99, 100], [98, 0, 0, 0], [0, 0, 0, 0]]
    assert seen.lengths.tolist() == [4, 1, 0]


def test_of_very_many_labels_those_that_repeat_are_kept() -> None:
    texts = Texts.of(np.array([f"user{i}" for i in range(5000)] + ["secret"] * 2))
    labels = Labels.learn(texts.first(), lambda row: texts.words(row, 0, 9))
    assert labels.names == ("secret",)
    assert labels(texts.first())[[0, -1]].tolist() == [-1.0, 0.0]


def _random_words(rng: np.random.Generator, size: int) -> list[str]:
    return ["".join(row) for row in rng.choice(list("abcdefgh"), size=(size, 7))]


def _features(left: list[str], right: list[str]) -> dict[str, list[float]]:
    a, b = np.array(left), np.array(right)
    encoder = Encoder.learn(a, b, sides=(a, b))
    encoded = encoder(np.array([left[0], right[0], "z"]))
    return {f.name: f(encoded).tolist() for f in all_features(encoder, encoder(a), encoder(b))}


@pytest.mark.parametrize(
    ("left", "right", "name", "values"),
    [
        ("{0}xq", "{0}kz", "suffix 2 of output", [1.0, 0.0, -1.0]),
        ("xq{0}", "kz{0}", "prefix 2 of output", [1.0, 0.0, -1.0]),
        ("{0}", "{0}!", "length of output", [7.0, 8.0, 1.0]),
        ("{0[0]}{0[1]}%%{0}", "{0[0]}{0[1]}{0}&&", "number of '%' in output", [2.0, 0.0, 0.0]),
    ],
)
def test_what_tells_the_sides_apart_is_read_off_texts(
    left: str, right: str, name: str, values: list[float]
) -> None:
    rng = np.random.default_rng(0)
    sides = [[form.format(word) for word in _random_words(rng, 300)] for form in (left, right)]
    assert _features(*sides)[name] == values


def test_texts_that_show_nothing_or_are_few_have_no_other_columns() -> None:
    rng = np.random.default_rng(0)
    assert set(_features(_random_words(rng, 400), _random_words(rng, 400))) == {"output"}
    few = [f"{i}" for i in range(PLAIN_LABELS)]
    assert set(_features(few[:30] * 9, [w + "!" for w in few[:30]] * 9)) == {"output"}


def test_words_of_the_labels_are_those_of_the_texts() -> None:
    rng = np.random.default_rng(1)
    left, right = (np.array([w + end for w in _random_words(rng, 300)]) for end in ("xq", "kz"))
    encoder = Encoder.learn(left, right, sides=(left, right))
    column = next(c for c in encoder.columns if c.name == "suffix 2 of output")
    assert column.labels == ("kz", "xq")
    assert encoder.own.tolist() == [0]


def test_the_hash_of_a_long_text_is_the_sum_that_it_says() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 0x110000, size=(3, 2 * module._AT_ONCE + 5)).astype(np.uint32)
    odd = [int(one) for one in module._multipliers(codes.shape[1])]
    wanted = [sum(int(c) * o for c, o in zip(row, odd, strict=True)) % 2**64 for row in codes]
    assert module._hash(codes).tolist() == wanted
    assert module._hash(np.pad(codes, ((0, 0), (0, 7)))).tolist() == wanted  # for all widths


def test_texts_of_many_widths_do_not_fill_the_memory() -> None:
    for width in range(1000, 1100):
        module._multipliers(width)
    assert module._multipliers.cache_info().currsize <= 4
