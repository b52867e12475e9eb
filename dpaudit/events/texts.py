"""What is read off a text beside the text itself: its length, its ends, what it contains.

Texts are told apart by 64-bit hashes of their characters. A hash is a sum over positions of
character times a fixed odd number, so that it depends neither on the width of the array nor on the
other texts in it; two texts that share one merely share their place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.screening import SCREENED, atoms_excess, share_gap

Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]

ENDS = (1, 2, 3, 4, 6, 8)
"""Lengths of the prefixes and suffixes that are looked at."""

MAX_LABELS = 2**16
FEW_LABELS = 1024
"""So many labels are always kept, however few draws they were seen in."""

PLAIN_LABELS = 64
"""Different texts up to which nothing but themselves is looked at."""

_BEST_ENDS = 2  # prefixes, and suffixes, that are read
_PARTS = (1, 2, 3, 4)  # lengths of the parts that a text may contain
_PART_CELLS = 2**18  # characters that are searched for telling parts
_TELLING = 6.0  # standard errors by which the share of texts with a part must differ
_MAX_PARTS = 3
_AT_ONCE = 1024  # characters of each text that are hashed together


@dataclass(frozen=True)
class Texts:
    """Texts as characters: codes ``[size, width]``, zero behind the end, and lengths."""

    codes: NDArray[np.uint32]
    lengths: NDArray[np.intp]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Texts:
        """Take an array of str or bytes apart; bytes may be any, latin-1 tells all apart."""
        native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
        size, wide = len(native), native.dtype.kind == "U"
        width = native.dtype.itemsize // (4 if wide else 1)
        if width == 0:
            return cls(np.zeros((size, 1), np.uint32), np.zeros(size, np.intp))
        view = native.view(np.uint32 if wide else np.uint8).reshape(size, width)
        codes = view.astype(np.uint32, copy=False)
        lengths = width - (codes[:, ::-1] != 0).argmax(axis=1)
        return cls(codes, np.where(codes.any(axis=1), lengths, 0).astype(np.intp))

    def first(self, count: int | None = None) -> Hashes:
        """Hash the first characters of each text, or all."""
        return _hash(self.codes if count is None else self.codes[:, :count])

    def last(self, count: int) -> Hashes:
        """Hash the last characters of each text, or all of a shorter one."""
        at = np.maximum(self.lengths - count, 0)[:, None] + np.arange(count)
        inside = at < self.lengths[:, None]
        taken = np.take_along_axis(self.codes, np.minimum(at, self.codes.shape[1] - 1), axis=1)
        return _hash(np.where(inside, taken, np.uint32(0)))

    def parts(self, count: int) -> tuple[Hashes, NDArray[np.bool_]]:
        """Hash all runs of `count` characters, ``[size, places]``, and tell which lie inside."""
        places = self.codes.shape[1] - count + 1
        if places < 1:
            return np.zeros((len(self.codes), 1), np.uint64), np.zeros((len(self.codes), 1), bool)
        windows = np.lib.stride_tricks.sliding_window_view(self.codes, count, axis=1)
        return _hash(windows), np.arange(places) + count <= self.lengths[:, None]

    def words(self, row: int, start: int, count: int) -> str:
        """Return some characters of one text."""
        end = min(start + count, int(self.lengths[row]))
        return "".join(map(chr, self.codes[row, max(start, 0) : end].tolist()))


@functools.lru_cache(maxsize=4)  # long texts of many widths would fill the memory
def _multipliers(width: int) -> Hashes:
    """Odd numbers, one for each position (splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, width + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def _hash(codes: NDArray[np.uint32]) -> Hashes:
    """Sum of code times multiplier over the last axis, modulo 2^64."""
    total = np.zeros(codes.shape[:-1], dtype=np.uint64)
    odd = _multipliers(codes.shape[-1])
    for start in range(0, len(odd), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        total += codes[..., some].astype(np.uint64) @ odd[some]
    return total


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels that were seen, by their hashes: the code of a text is its place among them.

    Parameters
    ----------
    names : tuple of str
        Sorted; the label of each code.
    hashes : ndarray, shape (k,)
        Sorted.
    codes : ndarray, shape (k,)
        Code of each hash.
    """

    names: tuple[str, ...]
    hashes: Hashes = field(repr=False)
    codes: Floats = field(repr=False)

    @classmethod
    def learn(cls, hashes: Hashes, name: Callable[[int], str]) -> Labels:
        """Keep the labels seen, or of very many those that repeat; `name` says one row's."""
        kept, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        if len(kept) > max(FEW_LABELS, len(hashes) // 2):
            repeated = counts > 1
            kept, first, counts = kept[repeated], first[repeated], counts[repeated]
        if len(kept) > MAX_LABELS:
            common = np.sort(np.argsort(-counts, kind="stable")[:MAX_LABELS])
            kept, first = kept[common], first[common]
        names = [name(int(row)) for row in first]
        order = sorted(range(len(names)), key=names.__getitem__)
        codes = np.empty(len(names))
        codes[order] = np.arange(len(names))
        return cls(tuple(names[i] for i in order), kept, codes)

    def __call__(self, hashes: Hashes) -> Floats:
        """Return the code of each text; -1 for any other."""
        if len(self.hashes) == 0:
            return np.full(len(hashes), -1.0)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.codes[at], -1.0)


View = tuple[str, tuple[str, ...] | None, Callable[[Texts], Floats]]
"""Name, labels if these are categories, and how it is read."""


def whole(texts: Texts) -> tuple[tuple[str, ...], Callable[[Texts], Floats]]:
    """Return the labels of whole texts, and how to read their codes."""
    labels = Labels.learn(texts.first(), lambda row: texts.words(row, 0, texts.codes.shape[1]))
    return labels.names, lambda t: labels(t.first())


def views(name: str, texts: Texts, left: Texts, right: Texts) -> Iterator[View]:
    """Yield what is read off texts beside themselves and tells the sides apart.

    Parameters
    ----------
    name : str
        Of the column.
    texts : Texts
        Of both sides, to learn labels from.
    left, right : Texts
        Of either side, to choose what is worth reading.
    """
    if len(np.unique(texts.first())) <= PLAIN_LABELS:
        return  # a table over so few texts says all that can be read off them
    if atoms_excess(left.lengths, right.lengths) > 0:
        yield f"length of {name}", None, lambda t: t.lengths.astype(np.float64)
    for at_end, word in ((False, "prefix"), (True, "suffix")):
        excess = {
            count: atoms_excess(_end(left, at_end, count), _end(right, at_end, count))
            for count in ENDS
            if count < int(texts.lengths.max())
        }
        for count in sorted(excess, key=lambda count: -excess[count])[:_BEST_ENDS]:
            if excess[count] > 0:
                labels = _end_labels(texts, at_end, count)
                yield f"{word} {count} of {name}", labels.names, _end_code(at_end, count, labels)
    for part, hashed in _telling_parts(left, right):
        yield f"number of {part!r} in {name}", None, functools.partial(_occurrences, part=hashed)


def _end(texts: Texts, at_end: bool, count: int) -> Hashes:
    return texts.last(count) if at_end else texts.first(count)


def _end_labels(texts: Texts, at_end: bool, count: int) -> Labels:
    def name(row: int) -> str:
        return texts.words(row, int(texts.lengths[row]) - count if at_end else 0, count)

    return Labels.learn(_end(texts, at_end, count), name)


def _end_code(at_end: bool, count: int, labels: Labels) -> Callable[[Texts], Floats]:
    return lambda texts: labels(_end(texts, at_end, count))


def _occurrences(texts: Texts, part: tuple[int, int]) -> Floats:
    count, hashed = part
    hashes, inside = texts.parts(count)
    hits = (hashes == np.uint64(hashed)) & inside
    return np.asarray(hits.sum(axis=1), dtype=np.float64)


def _telling_parts(left: Texts, right: Texts) -> list[tuple[str, tuple[int, int]]]:
    """Find runs of characters that texts of one side contain oftener, the most telling first."""
    found: list[tuple[float, int, str, tuple[int, int]]] = []
    for count in _PARTS:
        few, seen = [], []
        for side in (left, right):
            rows = max(min(len(side.codes), SCREENED, _PART_CELLS // side.codes.shape[1]), 1)
            few.append(Texts(side.codes[:rows], side.lengths[:rows]))
            hashes, inside = few[-1].parts(count)
            # Each text counts once for each part, however often it holds it.
            hashes = np.sort(np.where(inside, hashes, np.uint64(0)), axis=1)
            fresh = np.ones(hashes.shape, dtype=bool)
            fresh[:, 1:] = hashes[:, 1:] != hashes[:, :-1]
            seen.append(hashes[fresh & (hashes != 0)])
        parts, inverse = np.unique(np.concatenate(seen), return_inverse=True)
        a, b = (np.bincount(at, minlength=len(parts)) for at in np.split(inverse, [len(seen[0])]))
        gaps = np.abs(share_gap(a, b, *(len(x.codes) for x in few)))
        for best in np.argsort(-gaps, kind="stable")[:_MAX_PARTS].tolist():
            if gaps[best] > _TELLING:
                hashed = int(parts[best])
                found.append((-gaps[best], -count, _spelt(few, count, hashed), (count, hashed)))
    return [(part, hashed) for _, _, part, hashed in sorted(found)[:_MAX_PARTS]]


def _spelt(sides: list[Texts], count: int, hashed: int) -> str:
    """Return the characters of a part that some text holds."""
    for texts in sides:
        hashes, inside = texts.parts(count)
        rows, places = np.nonzero((hashes == np.uint64(hashed)) & inside)
        if len(rows):
            return texts.words(int(rows[0]), int(places[0]), count)
    return ""
