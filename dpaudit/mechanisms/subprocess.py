"""Mechanisms of other environments, such as another Python or an old release of a package.

A process of the other Python starts at the first call and answers calls until the process is
closed. The process runs `_serve.py`, which imports nothing of dpaudit and needs only numpy. Data
and draws travel as arrays and JSON. Pickles are not used, because other versions could not read
them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.data import Failure, Packed, form_of, is_frame
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms import _serve
from dpaudit.mechanisms.outcomes import Array, Then, applied, as_array
from dpaudit.mechanisms.programs import Program
from dpaudit.mechanisms.protocols import seed_of
from dpaudit.mechanisms.workers import file_hash

_STYLES = ("vectorised", "rng", "integer", "legacy", "none")


class Subprocess:
    """A mechanism that runs in another Python interpreter.

    Parameters
    ----------
    python : str or path
        Interpreter of the environment, such as ``venv/bin/python``.
    target : str
        ``module:function``, or ``file.py:function``.
    style : {"vectorised", "rng", "integer", "legacy", "none"}, optional
        "vectorised" (the default) is for ``f(data, size, rng=rng)``. The other values are for
        functions that return one draw, as for `randomness` of :func:`one_draw`.
    by : str, optional
        Column that identifies users, if data are frames. The process receives these frames as
        frames of pandas.

    Raises
    ------
    MechanismError
        If the process cannot be started or cannot import the function, or if a call fails.

    Examples
    --------
    >>> import sys
    >>> Subprocess(sys.executable, "random:random", style="none")
    Subprocess(random:random)
    """

    def __init__(
        self,
        python: str | os.PathLike[str],
        target: str,
        *,
        style: str = "vectorised",
        by: str | None = None,
    ) -> None:
        self.python = str(_validate.path(python=python))
        if not all(_validate.text(target=target).rpartition(":")):
            raise ArgumentError(f"target must be module:function, got {target!r}")
        self.target = target
        self.by = None if by is None else _validate.text(by=by)
        self.style = _validate.choice(_STYLES, style=style)
        self.dpaudit_unseeded = self.style == "none"
        module, _, function = target.rpartition(":")
        self.__name__ = f"{os.path.basename(module)}:{function}"
        self._source = file_hash(module)
        self._program: Program | None = None

    def __repr__(self) -> str:
        return f"Subprocess({self.target})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_program": None}

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        draws = self.draws_one_by_one(data, size, rng=rng)
        return draws if isinstance(draws, np.ndarray) else as_array(draws)

    def draws_one_by_one(
        self,
        data: Any,
        size: int,
        *,
        rng: np.random.Generator,
        then: Then | None = None,
        catches: bool = False,
    ) -> Array | list[Any]:
        """Return `size` independent draws as the function returns them."""
        if catches and self.style == "vectorised":
            raise ArgumentError(
                'errors must be "raise" unless the function returns one draw, because it is '
                "unknown which draws of a call failed. Pass style="
            )
        form = form_of(data, by=self.by or ("" if is_frame(data) else None))
        packed = form.packed(data)
        if packed is None:
            raise MechanismError(
                f"{self.target} runs in another process, to which {form.words(data)} cannot be "
                "sent. Pass arrays, lists of arrays, frames, or dicts of these types"
            )
        answer = self._ask(
            {
                "size": size,
                "seed": seed_of(rng, 2**63),
                "data": packed.facts,
                "catches": catches,
            },
            packed.arrays,
        )
        draws = self._checked(answer, size)
        return draws if then is None else applied(then, draws, catches=catches)

    def close(self) -> None:
        """End the process of the other interpreter."""
        if self._program is not None:
            self._program.end()
            self._program = None

    def _checked(self, answer: Packed, size: int) -> Array | list[Any]:
        if "error" in answer.facts:
            raise MechanismError(f"{self.target} raised {answer.facts['error']}")
        if "array" in answer.arrays:
            return answer.arrays["array"]
        draws = [
            Failure(draw["raised"]) if kind == "failure" else _numeric(draw)
            for kind, draw in answer.facts["draws"]
        ]
        if len(draws) != size:
            raise MechanismError(f"{self.target} must return size={size} draws, got {len(draws)}")
        return draws

    def _ask(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Packed:
        program = self._started()
        try:
            _serve.write(program.stdin, facts, arrays)
            return _read(program.stdout)
        except (OSError, EOFError, ValueError) as error:
            raise MechanismError(
                f"the process of {self.target} ended with {program.status() or 'exit status 0'}"
                f"{program.error_words()}"
            ) from error
        except BaseException:  # interrupted, so the next call must not read the answer of this call
            self.close()
            raise

    def _started(self) -> Program:
        if self._program is not None and self._program.is_running:
            return self._program
        module = self.target.rpartition(":")[0]
        if file_hash(module) != self._source:
            raise MechanismError(
                f"{module} must be the same file as at the start of the audit, got another "
                "version. Give each worker the same version of the file"
            )
        self._program = program = Program(
            [self.python, _serve.__file__, self.target, self.style],
            advice="Pass the interpreter of the environment, such as venv/bin/python",
        )
        try:
            ready = _read(program.stdout)
        except (OSError, EOFError, ValueError) as error:
            raise MechanismError(
                f"{self.python} did not start {self.target}: "
                f"{program.status() or 'exit status 0'}{program.error_words()}"
            ) from error
        if "error" in ready.facts:
            self.close()
            raise MechanismError(f"{self.python} cannot run {self.target}: {ready.facts['error']}")
        return program


def _numeric(draw: Any) -> Any:
    """Return a list of numbers as an array, and anything else unchanged."""
    if not isinstance(draw, list):
        return draw
    try:
        array = np.array(draw)
    except ValueError:
        return draw
    return array if array.dtype.kind in "biuf" else draw


def _read(stream: Any) -> Packed:
    facts, arrays = _serve.read(stream)
    return Packed(arrays, facts)
