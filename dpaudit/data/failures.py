"""Draws that are no values: an exception is an outcome, told apart by its type.

Among numbers such a draw is an empty array of a shape that nothing else has, because shapes are
outcomes already; among texts it is a text in angle brackets.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FIRST = 10**9  # no output has so many columns
_NAMES: dict[int, str] = {}


@dataclass(frozen=True)
class Failure:
    """What stands for a draw that raised an exception.

    Parameters
    ----------
    name : str
        Type of the exception.
    """

    name: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return what stands for an exception."""
        return cls(type(error).__name__)

    @property
    def words(self) -> str:
        """What reports call it."""
        return f"raised {self.name}"

    def as_row(self) -> NDArray[np.float64]:
        """Return it as an empty array, for draws of numbers."""
        code = _FIRST + zlib.crc32(self.name.encode()) % _FIRST
        _NAMES[code] = self.words
        return np.empty((0, code))


def words_of_shape(shape: tuple[int, ...]) -> str:
    """Return the words of the shape of a draw: of an exception, its type.

    Examples
    --------
    >>> words_of_shape((3, 2)), words_of_shape(Failure("KeyError").as_row().shape)
    ('(3, 2)', 'raised KeyError')
    """
    if len(shape) == 2 and shape[0] == 0 and shape[1] >= _FIRST:
        return _NAMES.get(shape[1], "raised an exception")
    return str(shape)
