"""Mechanisms that are programs in any language.

A program runs once for each call, or it is a server that answers requests. The page
``docs/reference/server-protocol.md`` describes the requests and the answers. Programs are processes
of :class:`dpaudit.mechanisms.programs.Program`, so no process outlives its mechanism.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import _json, _validate
from dpaudit.data import Failure, counted
from dpaudit.errors import ArgumentError, MechanismError, MechanismTimeout
from dpaudit.mechanisms.outcomes import Array, Then, applied, as_array, unbound
from dpaudit.mechanisms.programs import Program, TooLong
from dpaudit.mechanisms.protocols import seed_of
from dpaudit.mechanisms.written import BINARY, KINDS, plain, written

SEEDS = 2**53
"""Seeds are below this number, so that every language reads them exactly as JSON numbers."""

_DATA, _DRAWS, _SEED = "{data}", "{draws}", "{seed}"
_MOST = 2**28
"""Largest number of bytes of a request and of an answer."""

_PLACES = re.compile(r"\{(?:data|draws|seed)\}")
_LONGEST, _LONGEST_NAME = 500, 60
_ADVICE = "Pass the program and its arguments as separate texts, such as ['./release', '--fast']"


class Command:
    r"""A mechanism that is a program in any language.

    The program reads a dataset and writes releases, one JSON value on each line. In the arguments,
    ``{seed}``, ``{draws}`` and ``{data}`` are replaced. No shell reads the arguments.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments. ``{seed}`` becomes a whole number below 2**53 that determines
        the releases. ``{draws}`` becomes the number of releases of the call. Without ``{draws}``,
        each process makes one release. ``{data}`` becomes the path of a file with the dataset.
        Without ``{data}``, the program reads the dataset from its standard input.
    input : {"json", "csv", "arrow", "parquet"}, optional
        How the dataset is written. "json" (the default) has one line for each user, or for each row
        of a frame. A table has one row for each item, and its column ``user`` holds the number of
        the user. Frames keep their columns. Arrow and Parquet need pyarrow and ``{data}``.
    output : {"json", "text"}, optional
        "json" (the default) means that each line is a JSON value: a number, a text, a list, an
        object, a boolean or null. "text" means that each line is a text.
    mode : {"once", "server"}, optional
        "once" (the default) starts a process for each release, or for each call if the arguments
        contain ``{draws}``. "server" starts one process, which answers requests.
    timeout : float, optional
        Seconds in which a process must end, or a server must answer. Default: 60.
    seeded : bool, optional
        Whether the seed determines the releases. The default is True for a server, and otherwise
        whether the arguments contain ``{seed}``. If False, `dpaudit replay` compares only verdicts.

    Raises
    ------
    MechanismError
        If the program cannot be started, fails, does not answer in time, or does not write the
        expected releases. If the mechanism is wrapped in ``Outcomes(command, errors="outcome")``,
        an exit status other than 0 and an error that a server reports are outcomes.

    Examples
    --------
    >>> import sys
    >>> program = "import sys; print(len(sys.stdin.readlines()))"
    >>> count = Command([sys.executable, "-c", program])
    >>> count(np.zeros(3), 2, rng=np.random.default_rng(1)).tolist()
    [3, 3]
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        input: str = "json",
        output: str = "json",
        mode: str = "once",
        timeout: float = 60.0,
        seeded: bool | None = None,
    ) -> None:
        given = _validate.items(
            "a list of texts, such as ['./release', '--fast']", arguments=arguments
        )
        self.arguments = tuple(_argument(a, is_first=not at) for at, a in enumerate(given))
        self.input = _validate.choice(KINDS, input=input)
        self.output = _validate.choice(("json", "text"), output=output)
        self.mode = _validate.choice(("once", "server"), mode=mode)
        self.timeout = _validate.positive(timeout=timeout)
        names = {name for text in self.arguments for name in _PLACES.findall(text)}
        if self.mode == "server":
            self._check_server(names)
        elif self.input in BINARY and _DATA not in names:
            raise ArgumentError(
                f'arguments must contain {{data}} for input="{self.input}", got '
                f"{_validate.describe(list(self.arguments))}"
            )
        takes_seed = self.mode == "server" or _SEED in names
        self.seeded = takes_seed if seeded is None else _validate.flag(seeded=seeded)
        if self.seeded and not takes_seed:
            raise ArgumentError(
                "seeded must be False or None unless the arguments contain {seed}, got True"
            )
        self.dpaudit_unseeded = not self.seeded
        self.files = {name: _hash(name) for name in self.arguments if os.path.isfile(name)}
        """Hashes of the files among the arguments, which workers compare with their own files."""
        shown = [Path(one).name if one in self.files else one for one in self.arguments]
        name = " ".join(shlex.join(shown).split())
        is_long = len(name) > _LONGEST_NAME
        self.__name__ = f"{name[: _LONGEST_NAME - 3]}..." if is_long else name
        self._takes_data, self._takes_draws = _DATA in names, _DRAWS in names
        self._server: Program | None = None
        self._is_checked, self._has_warned = True, False

    def _check_server(self, names: set[str]) -> None:
        if names:
            raise ArgumentError(
                f'arguments must not contain {min(names)} for mode="server", because requests '
                "hold the data, the number of draws and the seed, got "
                f"{_validate.describe(list(self.arguments))}"
            )
        if self.output != "json":
            raise ArgumentError(
                f'output must be json for mode="server", got {_validate.describe(self.output)}. '
                "A text is a JSON value, too"
            )

    def __repr__(self) -> str:
        return f"Command({list(self.arguments)!r}, mode={self.mode!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_server": None, "_is_checked": False}

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""
        draws = self.draws_one_by_one(data, size, rng=rng)
        return unbound(draws, as_array(draws))

    def draws_one_by_one(
        self,
        data: Any,
        size: int,
        *,
        rng: np.random.Generator,
        then: Then | None = None,
        catches: bool = False,
    ) -> list[Any]:
        """Return `size` independent draws as the program writes them."""
        draw = self._served if self.mode == "server" else self._run
        is_single = catches or (self.mode == "once" and not self._takes_draws)
        sizes = [1] * size if is_single else [size]
        with self._sent(data) as (content, path):
            draws: list[Any] = []
            for count in sizes:
                draws += draw(content, path, count, seed_of(rng, SEEDS), catches)
        return applied(then, draws, catches=catches)

    def finish(self) -> str:
        """Close the input of the server, and return its exit status in words; "" for success.

        Raises
        ------
        MechanismTimeout
            If the server does not end in time.
        """
        try:
            if self._server is None:
                return ""
            self._server.stdin.close()
            return self._status(self._server)
        finally:
            self.close()

    def close(self) -> None:
        """Kill the server, if one runs."""
        if self._server is not None:
            self._server.end()
            self._server = None

    # --- the dataset ---

    @contextlib.contextmanager
    def _sent(self, data: Any) -> Iterator[tuple[bytes, str]]:
        """Yield the dataset as bytes for a pipe, and the path of its file or ""."""
        is_server = self.mode == "server"
        if not (self._takes_data or (is_server and self.input != "json")):
            value = json.dumps(plain(data)).encode() if is_server else written(data, self.input)
            if len(value) > _MOST:
                raise MechanismError(
                    f"data must have at most {_MOST:,} bytes as {self.input}, got {len(value):,}. "
                    "Let the program read a file: write {data} among the arguments, or use a "
                    'server with input="csv"'
                )
            yield value, ""
            return
        with tempfile.TemporaryDirectory(prefix="dpaudit-command-") as folder:
            file = Path(folder) / f"data.{self.input}"
            file.write_bytes(written(data, self.input))
            file.chmod(0o400)  # a draw must not change the data of the next draw
            yield (json.dumps(str(file)).encode() if is_server else b""), str(file)

    # --- a process for each call ---

    def _run(self, content: bytes, path: str, size: int, seed: int, catches: bool) -> list[Any]:
        """Return the releases of one process."""
        values = {_DATA: path, _DRAWS: str(size), _SEED: str(seed)}
        program = self._start([_PLACES.sub(lambda at: values[at[0]], a) for a in self.arguments])
        try:
            answer = self._ask(program, content, lines=False)
            status = self._status(program)
            if status and not catches:
                raise MechanismError(f"{self.__name__} ended with {status}{program.error_words()}")
            self._warn_of(program)
        finally:
            program.end()
        return [Failure(status)] * size if status else self._releases(answer, size)

    def _releases(self, answer: bytes, size: int) -> list[Any]:
        try:
            lines = answer.decode().removesuffix("\n").split("\n") if answer else []
        except UnicodeDecodeError as error:
            raise MechanismError(f"{self.__name__} must write UTF-8: {error}") from None
        if len(lines) != size:
            raise MechanismError(
                f"{self.__name__} must write {counted(size, 'line')}, one for each release, got "
                f"{len(lines)}{': ' + _validate.describe(lines[0]) if lines else ''}"
            )
        if self.output == "text":
            return [line.removesuffix("\r") for line in lines]
        return [self._parsed(line, f"line {at}") for at, line in enumerate(lines, 1)]

    def _parsed(self, line: str | bytes, what: str) -> Any:
        try:
            return _json.loads(line)
        except ValueError as error:
            words = line if isinstance(line, str) else line.decode(errors="replace")
            raise MechanismError(
                f"{what} of {self.__name__} must be a JSON value, got {_validate.describe(words)} "
                f'({error}). Write null for no answer. Pass output="text" if a line is a text'
            ) from None

    # --- a server ---

    def _served(self, content: bytes, path: str, size: int, seed: int, catches: bool) -> list[Any]:
        """Return the releases of one request."""
        try:
            answer = self.request(
                b'{"data": %s, "draws": %d, "seed": %d}\n' % (content, size, seed)
            )
        except _Ended as error:
            if catches:
                return [Failure(error.status)] * size
            raise
        if isinstance(answer, str):
            if catches:
                name = answer.partition(":")[0].strip()[:_LONGEST_NAME]
                return [Failure(name or "an error")] * size
            raise MechanismError(f"{self.__name__} answered with an error: {answer[:_LONGEST]}")
        if len(answer) != size:
            raise MechanismError(
                f"{self.__name__} must answer with {counted(size, 'draw')}, got {len(answer)}"
            )
        return answer

    def request(self, line: bytes) -> list[Any] | str:
        """Send one line to the server, and return the draws or the text of an error.

        Raises
        ------
        MechanismError
            If the server ends, does not answer in time, or does not follow the protocol. The server
            is then ended, and the next request starts another one.
        """
        program = self._server
        if program is None or not program.is_ours:
            program = self._server = self._start(list(self.arguments))
        try:
            if (unread := program.unread()) is not None:
                words = _validate.describe(unread.decode(errors="replace"))
                got = f"got {words}" if unread else f"but ended with {self._end_of(program)}"
                raise MechanismError(
                    f"{self.__name__} must keep running and write nothing before a request, "
                    f"{got}{program.error_words()}"
                )
            answer = self._ask(program, line, lines=True)
            self._warn_of(program)
            value = self._parsed(answer.removesuffix(b"\n"), "the answer")
            match value:
                case {"draws": list(draws), **rest} if not rest:
                    return draws
                case {"error": str(error), **rest} if not rest:
                    return error
            raise MechanismError(
                f'the answer of {self.__name__} must be {{"draws": [...]}} or {{"error": "..."}}, '
                f"got {_validate.describe(value)}"
            )
        except BaseException:  # the next request must not read the answer of this request
            self.close()
            raise

    # --- processes ---

    def _start(self, command: list[str]) -> Program:
        if not hasattr(os, "killpg"):
            raise MechanismError("a Command needs a system with process groups, such as Linux")
        if not self._is_checked:
            for name, before in self.files.items():
                if _hash(name) != before:
                    raise MechanismError(
                        f"{name} must be the same file as at the start of the audit, got another "
                        "version. Give each worker the same version of the file"
                    )
            self._is_checked = True
        return Program(command, advice=_ADVICE)

    def _ask(self, program: Program, content: bytes, *, lines: bool) -> bytes:
        try:
            return program.ask(content, lines=lines, seconds=self.timeout, most=_MOST)
        except TimeoutError:
            raise self._late(program) from None
        except TooLong:
            raise MechanismError(
                f"{self.__name__} must write at most {_MOST:,} bytes for a call, got more"
            ) from None
        except EOFError:
            status = self._end_of(program)
            words = f"{self.__name__} ended with {status} before it answered"
            raise _Ended(f"{words}{program.error_words()}", status) from None

    def _status(self, program: Program) -> str:
        try:
            return program.status(self.timeout)
        except TimeoutError:
            raise self._late(program) from None

    def _end_of(self, program: Program) -> str:
        return self._status(program) or "exit status 0"

    def _late(self, program: Program) -> MechanismTimeout:
        return MechanismTimeout(
            f"{self.__name__} must answer and end within timeout={self.timeout:g} s, but did not. "
            "A server must flush its output after each answer. Pass a larger timeout= if the "
            f"program is slow{program.error_words()}"
        )

    def _warn_of(self, program: Program) -> None:
        """Show once what a program writes to its standard error although it succeeds."""
        if not self._has_warned and (text := program.errors()):
            self._has_warned = True
            warnings.warn(
                f"{self.__name__} wrote to its standard error, which is shown once: {text}",
                stacklevel=2,
            )


class _Ended(MechanismError):
    """A server ended instead of answering."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def _argument(value: Any, *, is_first: bool) -> str:
    """Return an argument of a program as a text."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise TypeError(
            f"arguments must hold texts, got {_validate.describe(value)} of type "
            f"{type(value).__name__}"
        )
    if "\0" in text or (is_first and not text.strip()):
        raise ArgumentError(
            "arguments must hold texts without NUL, the first of which names a program, got "
            f"{_validate.describe(text)}"
        )
    return _validate.text(arguments=text, empty=True)


def _hash(name: str) -> str | None:
    """Return the hash of a file; None for an unreadable file."""
    try:
        with open(name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
