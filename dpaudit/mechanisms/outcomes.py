"""Conversion of outputs to arrays.

Outputs may be dicts, frames, lists, None or exceptions. Every conversion is a fixed function of a
single draw and is declared before any draw is made. So the conversion is post-processing, and
everything certified for the arrays holds for the original outputs.

Rows are an array ``[size]`` of objects, and each object is an array of float64. Draws of one shape
are not changed. If draws of another shape occur as well, all draws become rows.

A single call may hold only None, only exceptions, or only the texts of a mechanism that also
returns numbers. The conversion of a draw must not depend on the other draws of the same call.
Otherwise the draws of one call would depend on each other. Therefore the calls that check the
contract fix the kind of the draws, and later draws are converted to this kind.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import Failure, digest, handed, is_frame, object_array, words_of_shape
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.protocols import is_seeded, keys_differ, mechanism_name

# --- rows: draws whose shapes differ between draws or between the two datasets -----------------


Array = NDArray[Any]


class Unbound(np.ndarray[Any, Any]):
    """Draws made of lists.

    The common shape of lists may be accidental, but the shape of an array is intended. If a
    mechanism returns an array, the shape of its draws is intended, and all other shapes are
    refused.
    """


def as_rows(outputs: Any) -> Array | None:
    """Return arrays, lists or numbers as rows; None if an element has another type.

    Examples
    --------
    >>> [row.tolist() for row in as_rows([[1, 2], [3], []])]
    [[1.0, 2.0], [3.0], []]
    >>> as_rows([[1, 2], "text"]) is None
    True
    """
    rows = []
    for output in outputs:
        try:
            row = np.array(output)
        except ValueError:  # the draw itself is ragged
            return None
        if row.dtype.kind not in "biuf":
            return None
        rows.append(row.astype(np.float64))
    return object_array(rows)


def as_made(outputs: Array) -> Any:
    """Return stored draws in their original form; rows become a list of arrays."""
    return list(outputs) if outputs.dtype == object else outputs


def to_rows(draws: Array) -> Array:
    """Return draws as rows, even if all draws have the same shape."""
    return draws if draws.dtype == object else object_array(list(draws.astype(np.float64)))


def joined(parts: Sequence[Array]) -> Array:
    """Concatenate draws to one array, or to rows if their shapes differ.

    Examples
    --------
    >>> joined([np.zeros((2, 3)), np.ones((1, 3))]).shape
    (3, 3)
    >>> [row.shape for row in joined([np.zeros((1, 3)), np.ones((1, 4))])]
    [(3,), (4,)]
    """
    first = parts[0]
    if all(p.dtype != object and p.shape[1:] == first.shape[1:] for p in parts):
        return np.concatenate(parts)
    return np.concatenate([to_rows(part) for part in parts])


def kind_of(draws: Array | np.dtype[Any] | None) -> str:
    """Return the kind of draws, or of a dtype, as a word; rows of objects count as numbers.

    Examples
    --------
    >>> kind_of(np.array([1.0, 2.0])), kind_of(np.array(["yes", "no"]))
    ('number', 'text')
    """
    dtype = draws.dtype if isinstance(draws, np.ndarray) else draws
    if dtype is None or dtype.hasobject:
        return "number"
    if dtype.names:
        fields = (
            f"{name}: {words_of(kind_of(dtype[name].base), dtype[name].shape)}"
            for name in dtype.names
        )
        return f"record ({', '.join(fields)})"
    return "number" if dtype.kind in "biuf" else "text"


def words_of_draws(draws: Array) -> str:
    """Describe the kind and the shape of each draw.

    Examples
    --------
    >>> words_of_draws(np.zeros((9, 3))), words_of_draws(np.array(["a", "b"]))
    ('arrays of numbers of shape (3,)', 'one text each')
    """
    return words_of(kind_of(draws), None if draws.dtype == object else draws.shape[1:], " each")


def words_of(kind: str, shape: tuple[int, ...] | None, each: str = "") -> str:
    """Return the kind and the shape of a draw in words; a shape of None varies between draws."""
    if shape == ():
        return f"one {kind}{each}"
    if shape is None:
        return f"arrays of {kind}s of varying shape"
    return f"arrays of {kind}s of shape {shape}"


Then = Callable[[Any], Any]

ERRORS = ("raise", "outcome")
NONE = "<None>"
OTHER_KEYS = "other keys"
"""Column with the number of undeclared keys of a draw; the values of these keys are not used."""

_LARGEST = np.finfo(np.float64).max
_TRIALS, _TRIAL = 8, 64
_OURS = (MechanismError, KeyboardInterrupt, SystemExit)


class LateFailure(MechanismError):
    """A call failed on data on which no trial call had failed."""


class Outcomes:
    """Mechanism that converts the outputs of another mechanism to arrays.

    Outputs may be dicts, texts or lists. Exceptions may count as outputs.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng)`` that returns a sequence of `size` draws. A draw is a number, a
        text, an array of any shape, a list, a dict, a frame or None. Results of :func:`one_draw`
        and :class:`Subprocess` are allowed, too.
    keys : sequence, optional
        Keys of draws, if draws are dicts, Series or frames. The absence of a key is an outcome, and
        the presence of an undeclared key is an outcome. Without `keys`, all draws must have the
        same keys.
    errors : {"raise", "outcome"}, optional
        With "outcome", exceptions and infinite numbers are outcomes. If a call of many draws fails,
        it is unknown which draws failed. So if trial calls fail, each draw is made by a separate
        call. The default is "raise".
    then : callable, optional
        Function applied to each draw, for example the predictions of a model on fixed points.
    apart : bool, optional
        Whether each draw is made by a separate call on all data.

    Raises
    ------
    LateFailure
        If `errors` is "outcome", and a call fails on data on which no trial call failed, or trial
        calls fail on only one dataset. Both sides must be called in the same way, because a failed
        call loses all its draws. After such an error, :func:`dpaudit.audit` begins again with
        `apart` and with the other half of `failure_prob`.

    Examples
    --------
    >>> def counts(data, size, *, rng):
    ...     noisy = rng.geometric(0.5, size=size)
    ...     return [{"a": int(n)} if n > 1 else {} for n in noisy]
    >>> rng = np.random.default_rng(1)
    >>> Outcomes(counts, keys=["a"])(np.zeros(1), 3, rng=rng).dtype.names
    ('a', 'has a', 'other keys')
    """

    def __init__(
        self,
        mechanism: Callable[..., Any],
        *,
        keys: Sequence[Hashable] | None = None,
        errors: str = "raise",
        then: Then | None = None,
        apart: bool = False,
    ) -> None:
        self.mechanism = _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)
        self.keys = None
        if keys is not None:
            self.keys = _validate.items("a list of the keys that draws may have", keys=keys)
            if len({str(key) for key in self.keys}) < len(self.keys):
                raise ArgumentError(f"keys must hold each key once, got {self.keys!r}")
        self.errors = _validate.choice(ERRORS, errors=errors)
        self.then = None if then is None else _validate.function("a function", then=then)
        self.apart = _validate.flag(apart=apart)
        self._fails: dict[bytes, bool] = {}
        self.__name__ = mechanism_name(mechanism)
        self.dpaudit_unseeded = not is_seeded(mechanism)

    def of(self, mechanism: Callable[..., Any], *, apart: bool | None = None) -> Outcomes:
        """Return another mechanism whose draws are treated in the same way."""
        apart = self.apart if apart is None else apart
        return Outcomes(mechanism, keys=self.keys, errors=self.errors, then=self.then, apart=apart)

    @property
    def may_fail_late(self) -> bool:
        """Whether a call may raise :class:`LateFailure`."""
        one_by_one = one_by_one_of(self.mechanism)[0] is not None
        return self.errors == "outcome" and not self.apart and not one_by_one

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws as an array; each dict becomes a record."""
        catches = self.errors == "outcome"
        one_by_one, bound = one_by_one_of(self.mechanism)
        if one_by_one is not None:
            draws = one_by_one(data, size, rng=rng, then=self.then, catches=catches, **bound)
        elif catches and (self.apart or self._fails_on(data)):
            draws = [attempt(lambda: self._one(data, rng)) for _ in range(size)]
        elif not catches:
            draws = self._then(self.mechanism(data, size, rng=rng), size)
        else:
            try:
                draws = self._then(self.mechanism(data, size, rng=rng), size)
            except _OURS:
                raise
            except Exception as error:
                words = f"{self.__name__} raised {type(error).__name__}: {error}"
                raise LateFailure(words) from error
        return unbound(draws, as_array(draws, self.keys, catches=catches))

    def _fails_on(self, data: Any) -> bool:
        """Return whether a trial call fails.

        The answer is fixed for given data.
        """
        seen = digest(data)
        if seen not in self._fails:
            rng = np.random.default_rng(list(seen))
            tried = (
                attempt(lambda: self.mechanism(handed(data), _TRIAL, rng=rng)) for _ in "12345678"
            )
            self._fails[seen] = any(isinstance(one, Failure) for one in tried)
        if len(set(self._fails.values())) > 1:
            raise LateFailure(
                f"{self.__name__} raises exceptions on some data but not on others. Pass "
                "apart=True, so that each draw is made by a separate call on all data"
            )
        return self._fails[seen]

    def _one(self, data: Any, rng: np.random.Generator) -> Any:
        (draw,) = self._then(self.mechanism(data, 1, rng=rng), 1)
        return draw

    def _then(self, draws: Any, size: int) -> Sequence[Any]:
        columns = of_columns(draws, size)
        draws = draws if columns is None else columns
        if draws is None or not hasattr(draws, "__len__") or len(draws) != size:
            raise MechanismError(
                f"{self.__name__} must return a sequence of size={size} draws, got "
                f"{type(draws).__name__}"
                + (f" of {len(draws)}" if hasattr(draws, "__len__") else "")
            )
        if self.then is None:
            known: Sequence[Any] = draws
            return known
        return [self.then(draw) for draw in draws]


def attempt(draw: Callable[[], Any]) -> Any:
    """Return a draw, or a `Failure` if the draw raised an exception."""
    try:
        return draw()
    except _OURS:
        raise
    except Exception as error:
        return Failure(type(error).__name__)


def applied(then: Then | None, draws: Iterable[Any], *, catches: bool) -> list[Any]:
    """Apply a function to each draw.

    If exceptions are caught, they are outcomes.
    """
    if then is None:
        return list(draws)
    if not catches:
        return [then(draw) for draw in draws]
    return [
        draw if isinstance(draw, Failure) else attempt(functools.partial(then, draw))
        for draw in draws
    ]


def one_by_one_of(mechanism: Any) -> tuple[Callable[..., Any] | None, dict[str, Any]]:
    """Return the method that makes one draw at a time and its bound arguments, or None."""
    bound: dict[str, Any] = {}
    while isinstance(mechanism, functools.partial) and not mechanism.args:
        bound = {**mechanism.keywords, **bound}
        mechanism = mechanism.func
    return getattr(mechanism, "draws_one_by_one", None), bound


def as_array(
    draws: Sequence[Any], keys: tuple[Hashable, ...] | None = None, *, catches: bool = False
) -> Array:
    """Return draws of any kind as an array or as rows.

    Numbers stay numbers, and None becomes NaN among numbers. Arrays whose shapes differ become
    rows. In rows, None is a row with a single NaN. Texts stay texts. Dicts, Series and frames
    become records. An absent key has the value NaN and a flag. If some draws are numbers and others
    are texts, a record has one field for numbers and one field for texts. The conversion of a draw
    must not depend on the other draws of the same call. Otherwise the draws of one call would
    depend on each other.

    Parameters
    ----------
    draws : sequence
        Sequence of at least one draw.
    keys : tuple, optional
        Declared keys, if draws are dicts.
    catches : bool
        Whether infinite numbers are outcomes, as exceptions are. The largest finite numbers replace
        infinite numbers.

    Raises
    ------
    MechanismError
        If draws have other types. Also if dicts have different keys and no keys are declared.
    """
    if isinstance(draws, np.ndarray) and draws.dtype != object:
        return _finite(draws) if catches else draws
    held = [draw for draw in draws if draw is not None and not isinstance(draw, Failure)]
    if keys is not None or any(
        isinstance(d, Mapping) or is_frame(d) or _is_series(d) for d in held
    ):
        return _records(draws, keys, catches)
    if any(isinstance(draw, str) for draw in held):
        # An empty list may occur among lists of texts. Lists of texts are already joined to one
        # text here.
        draws = [
            "" if isinstance(d, list | tuple | np.ndarray) and np.shape(d) == (0,) else d
            for d in draws
        ]
        texts = np.array(
            [_text(d) if isinstance(d, str | Failure) or _is_nothing(d) else "" for d in draws]
        )
        if all(d is None or isinstance(d, str | Failure) for d in draws):
            return texts
        numbers = [math.nan if text else d for text, d in zip(texts, draws, strict=True)]
        return value_or_text(_numbers(numbers), texts)
    if all(_is_list_of_texts(draw) for draw in held) and any(held):
        return np.array(
            [_text(d) if d is None or isinstance(d, Failure) else "\x1f".join(d) for d in draws]
        )
    return _numeric(draws, catches)


def unbound(draws: Any, array: Array) -> Array:
    """Return the array of the draws, marked as `Unbound` if the draws are lists of any length."""
    by_chance = isinstance(draws, list | tuple) and any(isinstance(d, list | tuple) for d in draws)
    return array.view(Unbound) if by_chance and array.dtype != object else array


def value_or_text(values: Array, texts: Array) -> Array:
    """Return records of a number and a text, in which the unused field is empty."""
    return _columns({"value": values, "text": texts})


def _is_nothing(draw: Any) -> bool:
    return draw is None or (isinstance(draw, float | np.floating) and math.isnan(draw))


def _numeric(draws: Sequence[Any], catches: bool) -> Array:
    plain = [math.nan if draw is None else draw for draw in draws]
    failed = any(isinstance(draw, Failure) for draw in plain)
    if not failed:
        try:
            array = np.array(plain)
        except ValueError:  # shapes differ
            array = np.empty(0, dtype=object)
        if array.dtype.kind == "U" and any(
            isinstance(d, list | tuple) and not _is_list_of_texts(d) for d in plain
        ):
            array = np.empty(0, dtype=object)  # numpy would turn the numbers into texts
        if array.dtype != object and array.size:  # other calls may mix empty lists with others
            return _finite(array) if catches else array
    rows = as_rows([draw.as_row() if isinstance(draw, Failure) else draw for draw in plain])
    if rows is None:
        kinds = ", ".join(sorted({_words_of_kind(draw) for draw in draws}))
        raise MechanismError(
            "draws must be numbers, texts, arrays, lists of numbers, dicts, frames or None, got "
            f"{kinds}. Pass then=function to convert each draw, for example to a model's "
            "predictions, or to the numbers of a list with NaN in the place of other items"
        )
    return object_array([_finite(row) for row in rows]) if catches else rows


def _words_of_kind(draw: Any) -> str:
    """Return the type of a draw; for a list, also the types of its items."""
    name = type(draw).__name__
    if not isinstance(draw, list | tuple) or not draw:
        return name
    items = sorted({type(item).__name__ for item in draw})
    return f"{name} of {' and '.join(items)}"


def _records(draws: Sequence[Any], keys: tuple[Hashable, ...] | None, catches: bool) -> Array:
    """Return dicts as records.

    Each key has a value and a flag that says whether it is present.
    """
    dicts = [{} if d is None or isinstance(d, Failure) else _as_dict(d) for d in draws]
    columns: dict[str, Array] = {}
    if keys is None:
        found = list(dict.fromkeys(key for one in dicts for key in one))
        differing = [one for one in dicts if set(one) != set(found)]
        if differing:
            one, other = (tuple(str(key) for key in held) for held in (found, differing[0]))
            raise MechanismError(f"draws are dicts whose keys differ{keys_differ(one, other)}")
        for key in found:
            columns[str(key)] = _values([one[key] for one in dicts], catches)
    else:
        for key in keys:
            columns[str(key)] = _values([one.get(key) for one in dicts], catches)
            columns[f"has {key}"] = np.array([key in one for one in dicts])
        known = set(keys)
        columns[OTHER_KEYS] = np.array([sum(k not in known for k in one) for one in dicts])
    if catches:
        names = [draw.words if isinstance(draw, Failure) else "" for draw in draws]
        columns["error"] = np.array(names, dtype="U64")
    return _columns(columns)


def _values(values: list[Any], catches: bool) -> Array:
    """Return the values of one key; a missing value is NaN or an empty text."""
    held = [value for value in values if value is not None]
    if held and all(isinstance(value, str) for value in held):
        return np.array(["" if value is None else value for value in values], dtype="U64")
    shapes = {np.shape(value) for value in held} or {()}
    if len(shapes) > 1:
        raise MechanismError(f"the values of a key must have equal shapes, got {sorted(shapes)}")
    missing = np.full(shapes.pop(), math.nan)
    numbers = _numbers([missing if value is None else value for value in values])
    return _finite(numbers) if catches else numbers


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise MechanismError(f"values of draws must be numbers or texts, got {kinds}") from error


def _columns(columns: Mapping[str, Array]) -> Array:
    """Return columns as records, one record for each row."""
    if not columns:
        raise MechanismError(
            "draws must be dicts with at least one key, got empty ones. Declare the keys that "
            "draws may have: Outcomes(f, keys=[...])"
        )
    dtype = [(name, values.dtype, values.shape[1:]) for name, values in columns.items()]
    records = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
    for name, values in columns.items():
        records[name] = values
    return records


def failures_in(draws: Array) -> Counter[str]:
    """Return the number of draws that stand for exceptions, by the type of the exception."""
    words: list[str] = []
    if draws.dtype == object:
        words = [words_of_shape(row.shape) for row in draws if row.size == 0]
    elif draws.dtype.names and "error" in draws.dtype.names:
        words = [str(text) for text in draws["error"]]
    elif draws.dtype.kind == "U":
        words = [str(text)[1:-1] for text in draws[np.strings.startswith(draws, "<raised ")]]
    prefix = "raised "
    return Counter(w.removeprefix(prefix) for w in words if w.startswith(prefix))


def of_columns(outputs: Any, size: int) -> Array | None:
    """Return `size` draws that were returned as a dict of arrays or a frame; otherwise None."""
    if isinstance(outputs, Mapping):
        columns = {str(key): np.asarray(values) for key, values in outputs.items()}
    elif is_frame(outputs):
        columns = {str(name): np.asarray(outputs[name]) for name in outputs.columns}
    else:
        return None
    if any(
        c.ndim == 0 or len(c) != size or c.dtype.kind not in "biufUSO" for c in columns.values()
    ):
        return None
    texts = {
        name: values.astype(str) if values.dtype == object else values
        for name, values in columns.items()
    }
    return _columns(texts) if texts else None


def _as_dict(draw: Any) -> dict[Hashable, Any]:
    """Convert a draw that is a mapping, a Series or a frame to a dict.

    The cells of a frame are identified by the index of their rows. If the index only numbers the
    rows, the first column of texts identifies the rows. If a frame has only one other column, the
    row label alone is the key.
    """
    if isinstance(draw, Mapping):
        return dict(draw)
    if is_frame(draw):
        return _of_frame(draw)
    if _is_series(draw):
        return dict(draw.to_dict())
    raise MechanismError(
        f"draws must all be dicts, Series or frames if one of them is, got {type(draw).__name__}"
    )


def _of_frame(frame: Any) -> dict[Hashable, Any]:
    names = [str(name) for name in frame.columns]
    columns = {name: list(frame[name]) for name in frame.columns}
    labels: list[Any] = list(range(len(frame)))
    index = getattr(frame, "index", None)
    if index is not None and type(index).__name__ != "RangeIndex":
        labels = list(index)
    else:
        by = next((n for n, cells in columns.items() if cells and isinstance(cells[0], str)), None)
        if by is not None and len(names) > 1:
            labels = columns.pop(by)
    if len(columns) == 1:
        (cells,) = columns.values()
        return dict(zip(labels, cells, strict=True))
    return {
        (label, name): cell
        for name, cells in columns.items()
        for label, cell in zip(labels, cells, strict=True)
    }


def _is_series(draw: Any) -> bool:
    return hasattr(draw, "to_dict") and hasattr(draw, "index") and not hasattr(draw, "columns")


def _is_list_of_texts(draw: Any) -> bool:
    return isinstance(draw, list | tuple) and all(isinstance(one, str) for one in draw)


def _text(draw: Any) -> str:
    if _is_nothing(draw):
        return NONE
    return f"<{draw.words}>" if isinstance(draw, Failure) else str(draw)


def _finite(array: Array) -> Array:
    """Replace infinite numbers by the largest finite numbers, and keep NaN."""
    if array.dtype.names:
        made = array.copy()
        for name in array.dtype.names:
            made[name] = _finite(array[name])
        return made
    if array.dtype.kind != "f":
        return array
    return np.asarray(np.clip(array, -_LARGEST, _LARGEST))


# --- the kind of a mechanism's draws, which is one for all calls --------------------------------


Shape = tuple[int, ...] | None

_MIXED = value_or_text(np.zeros(1), np.array([""])).dtype


class Kinds:
    """The kind of one mechanism's draws, and the shape of the draws on each side of a pair.

    Parameters
    ----------
    name : str
        Name of the mechanism, for messages.
    finite : bool
        Whether draws are outcomes; the shapes of outcomes may differ between the sides.

    Attributes
    ----------
    width : int
        Number of cells of one draw.
    is_probing : bool
        Whether calls only check the contract. During these calls, the kind may still change.
    is_bound : bool
        Whether the shape of draws is intended. The shape of an array is intended, and a common
        shape of lists may be accidental.
    """

    def __init__(self, name: str, *, finite: bool) -> None:
        self.name, self.width = name, 1
        self.is_probing, self.is_bound = False, True
        self._finite = finite
        self._dtype: np.dtype[Any] | None = None
        self._elsewhere: np.dtype[Any] | None = None  # dtype on another pair
        self._shapes: dict[str, Shape] = {}  # shape on each side; None for rows
        self._only_missing = self._only_scalars = True

    def turn(self) -> None:
        """Switch to another pair, whose draws may have another shape."""
        if self._dtype is not None and kind_of(self._dtype) != "number":
            self._elsewhere = self._dtype
        self._dtype, self._shapes = None, {}
        self._only_missing = self._only_scalars = True

    @property
    def has_fields(self) -> bool:
        """Whether draws are records."""
        return self._dtype is not None and self._dtype.names is not None

    def admit(self, array: Array, side: str, *, bound: bool) -> Array:
        """Check draws against earlier draws.

        The sides need the same kind; each side needs one shape, unless its draws become rows. If an
        array is `bound`, its shape is intended. A common shape of lists may be accidental.
        """
        self.is_bound &= bound
        array = self._brought_in(array)
        kind, known_kind = kind_of(array), kind_of(self._dtype)
        shape = None if array.dtype == object else array.shape[1:]
        known = self._shapes.setdefault(side if self._finite else "", shape)
        missing = _is_missing(array)
        ragged = kind == "number" and self._finite
        ragged &= None in (known, shape) or missing or self._only_missing
        if kind != known_kind or (known != shape and bound and not ragged):
            raise MechanismError(
                f"{self.name} must return draws of one shape and kind, got "
                f"{words_of(kind, shape, ' each')} on the {side} dataset after "
                f"{words_of(known_kind, known, ' each')}"
                + keys_differ(self._dtype.names if self._dtype else None, array.dtype.names)
            )
        self._only_missing &= missing
        if self.is_probing:
            self._only_scalars &= _texts_in(array) is not None
        if known != shape:
            self._shapes[side] = None
            array = to_rows(array)
        fields = [array.dtype[name].shape for name in array.dtype.names or ()] or [()]
        cells = math.prod(array.shape[1:]) * sum(map(math.prod, fields))
        if array.dtype == object:
            cells = max((row.size for row in array), default=1)
        self.width = max(self.width, cells, 1)
        return array

    def note(self, other: Kinds) -> None:
        """Adopt what a worker recorded about other draws of the same pair."""
        self.width = max(self.width, other.width)
        self.is_bound &= other.is_bound
        self._only_missing &= other._only_missing
        for side, shape in other._shapes.items():
            if self._shapes.setdefault(side, shape) != shape:
                self._shapes[side] = None

    def _brought_in(self, array: Array) -> Array:
        """Convert draws to the kind of earlier draws; if impossible, return them unchanged."""
        if self._dtype is None:
            fit = None if self._elsewhere is None else fitted(array, self._elsewhere)
            array = array if fit is None else fit
            self._dtype, self.width = array.dtype, 1
            return array
        if kind_of(array) == kind_of(self._dtype):
            return array
        fit = fitted(array, self._dtype)
        if fit is None and self.is_probing:
            wider = self._wider(array)
            fit = None if wider is None else fitted(array, wider)
            if fit is not None:
                self._dtype, self._shapes = wider, {}
        return array if fit is None else fit

    def _wider(self, array: Array) -> np.dtype[Any] | None:
        """Return the common kind of these draws and earlier draws, or None if there is none."""
        assert self._dtype is not None
        kinds = {kind_of(array), kind_of(self._dtype)}
        if kinds == {"number", "text"} and self._only_missing:
            return array.dtype
        if self._only_scalars and kinds <= {"number", "text", kind_of(_MIXED)}:
            return _MIXED
        names = self._dtype.names
        if names is None or names != array.dtype.names:
            return None
        fields = [(name, _wider_field(self._dtype[name], array.dtype[name])) for name in names]
        return np.dtype(fields)


def fitted(draws: Array, like: np.dtype[Any]) -> Array | None:
    """Return draws in the dtype of other calls, or None if the conversion is impossible.

    Examples
    --------
    >>> fitted(np.array([np.nan, np.nan]), np.dtype("U3")).tolist()  # a call of two None
    ['<None>', '<None>']
    >>> fitted(np.array([1.0, np.nan]), np.dtype("U3")) is None
    True
    """
    kind = kind_of(like)
    if kind_of(draws) == kind:
        return draws
    if kind in ("text", kind_of(_MIXED)):
        values, texts = _values_in(draws), _texts_in(draws)
        if texts is None or (kind == "text" and not np.isnan(values).all()):
            return None
        return texts if kind == "text" else value_or_text(values, texts)
    if like.names is None or like.names != draws.dtype.names:
        return None
    columns = {name: _fitted_field(draws[name], like[name]) for name in like.names}
    if any(column is None for column in columns.values()):
        return None
    made = np.zeros(
        len(draws), dtype=[(n, c.dtype, c.shape[1:]) for n, c in columns.items() if c is not None]
    )
    for name, column in columns.items():
        made[name] = column
    return made


def _values_in(draws: Array) -> Array:
    """Return each draw as a number; NaN stands for a draw that is not a number."""
    if draws.dtype.names == _MIXED.names:
        return np.asarray(draws["value"])
    if draws.dtype.kind in "US" or draws.dtype.names:
        return np.full(len(draws), math.nan)
    return np.array([float(row) if row.shape == () else math.nan for row in to_rows(draws)])


def _texts_in(draws: Array) -> Array | None:
    """Return each draw as a text or ""; return None if a draw is neither a number nor a text."""
    if draws.dtype.kind == "S":
        return np.asarray(np.strings.decode(draws, "latin-1"))
    if draws.dtype.kind == "U" or draws.dtype.names == _MIXED.names:
        return draws if draws.dtype.names is None else draws["text"]
    texts = [] if draws.dtype.names else [_text_of(row) for row in to_rows(draws)]
    return None if None in texts or draws.dtype.names else np.array(texts)


def _text_of(row: Array) -> str | None:
    if row.shape == ():
        return NONE if np.isnan(row) else ""
    words = words_of_shape(row.shape)
    if words.startswith("raised "):
        return f"<{words}>"
    return "" if row.shape == (0,) else None  # an empty list may be a list of texts


def _fitted_field(column: Array, like: np.dtype[Any]) -> Array | None:
    """Return a column of records in the dtype of other calls; an empty column gets empty values."""
    if kind_of(column) == kind_of(like.base) and column.shape[1:] == like.shape:
        return column
    if column.shape[1:] != () or not _is_missing(column):
        return None
    if like.base.kind == "U":
        return np.full((len(column), *like.shape), "", dtype=like.base)
    return np.full((len(column), *like.shape), math.nan)


def _wider_field(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """Return the wider dtype of a field.

    A dtype of plain numbers may have come from None.
    """
    return other if one.base.kind != "U" and one.shape == () else one


def _is_missing(draws: Array) -> bool:
    """Return whether all draws are None, NaN, or exceptions among numbers."""
    if draws.dtype == object:
        return all(
            math.isnan(row) if row.shape == () else words_of_shape(row.shape).startswith("raised ")
            for row in draws
        )
    if draws.dtype.kind != "f" or draws.ndim != 1:
        return False
    return bool(np.isnan(draws[:1]).all() and np.isnan(draws).all())  # the first test is fast
