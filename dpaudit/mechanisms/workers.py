"""Where chunks are drawn: processes of this machine, any executor, or a cluster of Dask.

What a chunk holds is a pure function of its seed and labels. So whoever draws it, and however often
it is drawn because a worker died, the result of an audit is the same to the last bit.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError, MechanismTimeout

_AHEAD = 3
"""Chunks under way for each worker: none waits, and memory stays flat."""

_DEATHS = 3
"""Deaths of workers while one chunk is waited for, after which it is given up."""

_KEPT = 32

_BROKEN = (
    "the executor is broken, because one of its workers died; with workers= dead ones are replaced"
)


class Shipped(NamedTuple):
    """Something that workers have, or can get: its digest, and where it is."""

    digest: str
    place: Any


class Workers:
    """Draws chunks elsewhere, and returns them in order.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Who works; it is not closed here.
    count : int
        How many work at once, about.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor, self.count = executor, count
        self._shipped: dict[int, tuple[Any, Shipped]] = {}

    def ship(self, what: Any, words: str) -> Shipped:
        """Send something to the workers, once; `words` name it where it cannot be sent."""
        known = self._shipped.get(id(what))
        if known is None:
            try:
                content = _pickled(what)
            except Exception as error:  # what cannot be pickled raises whatever it likes
                raise MechanismError(
                    f"{words} cannot be sent to other processes ({type(error).__name__}: {error}); "
                    "define it in a module, and open files, locks and connections inside it; or "
                    "leave workers= out"
                ) from error
            sent = Shipped(hashlib.sha256(content).hexdigest(), self._place(content))
            if len(self._shipped) >= _KEPT:
                self._shipped.pop(next(iter(self._shipped)))
            known = self._shipped[id(what)] = (what, sent)  # held, so that its id stays its own
        return known[1]

    def _place(self, content: bytes) -> Any:
        """Put something where workers find it."""
        return content

    def map(
        self,
        function: Callable[..., Any],
        shipped: tuple[Shipped, ...],
        tasks: Iterable[tuple[Any, ...]],
        *,
        deadline: float | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(*objects, *task)`` for each task, in order.

        Parameters
        ----------
        function : callable
            Of a module, so that workers know it by name.
        shipped : tuple of Shipped
            Its first arguments.
        tasks : iterable of tuple
            Its others.
        deadline : float, optional
            On the clock of ``time.perf_counter``.

        Raises
        ------
        MechanismError
            Where workers die again and again, or cannot be reached.
        MechanismTimeout
            Beyond the deadline.
        """
        under_way: deque[tuple[tuple[Any, ...], Any]] = deque()
        ahead, held = iter(tasks), list(shipped)
        try:
            while True:
                for task in ahead:
                    under_way.append((task, self._submit(function, held, task)))
                    if len(under_way) >= _AHEAD * self.count:
                        break
                if not under_way:
                    return
                result = self._wait(function, held, under_way, deadline)
                under_way.popleft()
                yield result
        finally:
            for _, future in under_way:
                future.cancel()

    def _submit(self, function: Any, shipped: list[Shipped], task: tuple[Any, ...]) -> Any:
        try:
            return self.executor.submit(_work, function, tuple(shipped), task)
        except BrokenProcessPool as error:  # also told before anything was done
            if self._mended(error):
                return self.executor.submit(_work, function, tuple(shipped), task)
            raise MechanismError(_BROKEN) from error

    def _wait(
        self,
        function: Any,
        shipped: list[Shipped],
        under_way: deque[tuple[tuple[Any, ...], Any]],
        deadline: float | None,
    ) -> Any:
        """Return the first result; where a worker died, have all that is under way done again."""
        for _ in range(_DEATHS):
            left = None if deadline is None else max(deadline - time.perf_counter(), 0.0)
            try:
                return under_way[0][1].result(timeout=left)
            except TimeoutError as error:
                if left is None:  # of the mechanism's own
                    raise
                raise MechanismTimeout("the audit took more time than it was given") from error
            except (BrokenProcessPool, CancelledError) as error:
                if not self._mended(error):
                    raise MechanismError(_BROKEN) from error
                shipped[:] = map(self._shipped_again, shipped)
                tasks = [task for task, _ in under_way]
                under_way.clear()
                for task in tasks:
                    under_way.append((task, self._submit(function, shipped, task)))
        raise MechanismError(
            f"workers died {_DEATHS} times while one chunk was waited for: the mechanism may need "
            "more memory than there is, or end its process"
        )

    def _mended(self, error: BaseException) -> bool:
        """Whether there are workers again."""
        del error
        return False

    def _shipped_again(self, sent: Shipped) -> Shipped:
        """Return what was sent, where it is after a worker died."""
        return sent

    def close(self) -> None:
        """Let go of what was begun here."""


class Processes(Workers):
    """Processes of this machine; those that die are replaced.

    Parameters
    ----------
    count : int
        How many, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dpaudit-"))
        super().__init__(_pool(count), count)

    def _place(self, content: bytes) -> str:
        # Through a file, so that each worker reads it once, and not with every chunk.
        path = self._folder / hashlib.sha256(content).hexdigest()
        path.write_bytes(content)
        return str(path)

    def _mended(self, error: BaseException) -> bool:
        del error
        self.executor.shutdown(wait=False)
        self.executor = _pool(self.count)
        return True

    def close(self) -> None:
        """End the processes."""
        self.executor.shutdown(wait=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def check_scheduler(address: str) -> None:
    """Raise :class:`ArgumentError` where no Dask scheduler answers at an address."""
    if address == "local":
        _distributed()
    else:
        Cluster(address).close()


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ArgumentError(
            "dask needs the package distributed, which is not installed here: "
            "pip install distributed"
        ) from error


class Cluster(Workers):
    """The workers of a Dask scheduler, which replaces those that die.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://10.0.0.5:8786``; "local" starts one on this machine.
    timeout : float, optional
        Seconds to wait for an answer.
    """

    def __init__(self, address: str, *, timeout: float = 10.0) -> None:
        distributed = _distributed()
        self._timeout = timeout
        self._local: Any = None
        try:
            if address == "local":
                self._local = distributed.LocalCluster(threads_per_worker=1, dashboard_address=None)
                self._client: Any = distributed.Client(self._local, timeout=timeout)
            else:
                self._client = distributed.Client(address, timeout=timeout)
        except (OSError, TimeoutError, ValueError) as error:
            raise ArgumentError(
                f"dask must be the address of a scheduler that answers, or local; {address!r} "
                f"did not, {timeout:g} s given ({type(error).__name__}: {error})"
            ) from error
        super().__init__(self._client.get_executor(pure=False), max(self._cores(), 1))

    def _cores(self) -> int:
        return int(sum(self._client.nthreads().values()))

    def _place(self, content: bytes) -> Any:
        # Under a key of its own: what was lost with its worker is not found under the old one.
        return self._client.scatter(content, broadcast=True, hash=False)

    def _mended(self, error: BaseException) -> bool:
        """Whether a worker is there, after the tasks of one that died were given up."""
        try:
            self._client.wait_for_workers(1, timeout=self._timeout)
        except (TimeoutError, OSError):
            return False
        return isinstance(error, CancelledError)

    def _shipped_again(self, sent: Shipped) -> Shipped:
        """Send again what may have been on the worker alone that died."""
        for known, (what, was) in self._shipped.items():
            if was.digest == sent.digest:
                again = Shipped(sent.digest, self._place(_pickled(what)))
                self._shipped[known] = (what, again)
                return again
        return sent

    def _submit(self, function: Any, shipped: list[Shipped], task: tuple[Any, ...]) -> Any:
        # Dask puts the content in the place of what was scattered only among plain arguments.
        places = [one.place for one in shipped]
        digests = [one.digest for one in shipped]
        return self._client.submit(_work_at, function, digests, places, task, pure=False, retries=3)

    def close(self) -> None:
        """Close the connection, and end what was started here."""
        self._client.close()
        if self._local is not None:
            self._local.close()


@contextmanager
def working(
    workers: int | Workers | None, executor: Executor | None = None
) -> Iterator[Workers | None]:
    """Yield who draws, None for this process alone; what was begun here is ended.

    Raises
    ------
    ValueError, TypeError
        For both at once, or what is neither.
    """
    if workers is not None and executor is not None:
        raise ArgumentError("give workers or executor, got both")
    if isinstance(workers, Workers):
        yield workers
    elif executor is not None:
        if not callable(getattr(executor, "submit", None)):
            raise TypeError(f"executor must be one of concurrent.futures, got {executor!r}")
        yield Workers(executor, int(getattr(executor, "_max_workers", None) or 1))
    elif workers is None or _validate.integer(1, workers=workers) == 1:
        yield None
    else:
        processes = Processes(workers)
        try:
            yield processes
        finally:
            processes.close()


def _pool(count: int) -> Executor:
    from loky import ProcessPoolExecutor

    pool: Executor = ProcessPoolExecutor(max_workers=count, timeout=None)
    return pool


def _pickled(what: Any) -> bytes:
    """Return something as bytes; a function of a script or of an audit file with its code.

    Workers cannot import such a file, or would find another version of it.
    """
    function = what
    while isinstance(function, functools.partial):
        function = function.func
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is None or _is_installed(module):
        return bytes(cloudpickle.dumps(what))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(what))
    except Exception:  # something else in that file cannot travel: workers may import it after all
        cloudpickle.unregister_pickle_by_value(module)
        return bytes(cloudpickle.dumps(what))
    finally:
        if module.__name__ in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    parts = ("site-packages", "dist-packages", f"{os.sep}dpaudit{os.sep}")
    return file is None or any(part in file for part in parts)


# --- on the workers ---

_HERE: OrderedDict[str, Any] = OrderedDict()


def _work(function: Callable[..., Any], shipped: tuple[Shipped, ...], task: tuple[Any, ...]) -> Any:
    return function(*(_object(one) for one in shipped), *task)


def _work_at(
    function: Callable[..., Any], digests: list[str], places: list[Any], task: tuple[Any, ...]
) -> Any:
    return _work(function, tuple(map(Shipped, digests, places)), task)


def _object(shipped: Shipped) -> Any:
    """Return what was shipped; it is read once."""
    if shipped.digest not in _HERE:
        place = shipped.place
        content = Path(place).read_bytes() if isinstance(place, str) else place
        _HERE[shipped.digest] = cloudpickle.loads(content)
        while len(_HERE) > _KEPT:
            _HERE.popitem(last=False)
    _HERE.move_to_end(shipped.digest)
    return _HERE[shipped.digest]
