"""Workers that draw chunks.

Workers are processes of this machine, or any executor. The content of a chunk is a pure function of
its seed and labels. So the result of an audit is the same to the last bit, whichever worker draws a
chunk. The result is also the same if a chunk is drawn again because a worker died.

A worker may be unable to import the file of an audit, or may hold another version of it. Therefore
functions and classes of the user's own files are sent together with their code. If an object can be
sent only by name, and the worker's file differs, the object is refused.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import os
import shutil
import sys
import sysconfig
import tempfile
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import cloudpickle

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError, MechanismTimeout, WorkersLost

# --- sending objects to workers: by value, or by a name whose source file is compared -----------


_PACKAGE = "dpaudit"
_INSTALLED = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")),
)
_ORIGINAL = functools.lru_cache(lambda: None)


def packed(what: Any) -> bytes:
    """Return an object as bytes, with the hashes of the source files that it may need.

    Raises
    ------
    Exception
        If the object cannot be pickled. Any type of exception is possible.
    """
    own = _own_modules()
    mine = [module for module in own.values() if not _is_dpaudit(module.__name__)]
    try:
        content = _dumps(what, mine)
    except Exception:  # something in these files cannot be sent; workers may be able to import it
        try:
            content = _dumps(what, [m for m in mine if m.__name__ == _module_of(what)])
        except Exception:
            content = _dumps(what, [])
    hashes = {name: known for name, module in own.items() if (known := _hash_of(module))}
    return bytes(cloudpickle.dumps((hashes, content)))


def unpacked(content: bytes) -> Any:
    """Return the object that was packed.

    Raises
    ------
    MechanismError
        If this process cannot import a module, or has another version of the module's file.
    """
    hashes, inner = cloudpickle.loads(content)
    _refuse_other_versions(hashes)
    try:
        what = cloudpickle.loads(inner)
    except ImportError as error:
        raise MechanismError(
            f"a worker cannot import what the mechanism refers to ({error}). Install it there, or "
            "define it in the file of the mechanism"
        ) from error
    _refuse_other_versions(hashes)
    return what


def _refuse_other_versions(hashes: dict[str, str]) -> None:
    for name, known in hashes.items():
        module = sys.modules.get(name)
        if module is not None and _hash_of(module) not in (None, known):
            raise MechanismError(
                f"a worker holds another version of {name} ({module.__file__}). Restart the "
                "workers with the files of this process"
            )


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that also sends cached functions by value, and the names of files with code.

    cloudpickle 3.1.3 and newer leave out the names of files. Mutants are found by these names.
    """

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, CodeType):
            make, arguments = self.dispatch_table[CodeType](obj)[:2]
            return _code, (obj.co_filename, make, arguments)
        if isinstance(obj, type(_ORIGINAL)) and obj.__module__ in _by_value():
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        return super().reducer_override(obj)


def _code(filename: str, make: Callable[..., CodeType], arguments: tuple[Any, ...]) -> CodeType:
    return make(*arguments).replace(co_filename=filename)


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def travels_by_value(module: str) -> bool:
    """Return whether functions of a module are being pickled with their code."""
    return module in _by_value()


def _by_value() -> set[str]:
    return set(cloudpickle.list_registry_pickle_by_value())


def _dumps(what: Any, modules: list[ModuleType]) -> bytes:
    """Pickle an object.

    Everything that belongs to the given modules is pickled by value.
    """
    file, before = io.BytesIO(), _by_value()
    added = [module for module in modules if module.__name__ not in before]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        _Pickler(file).dump(what)
        return file.getvalue()
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _module_of(what: Any) -> str | None:
    while isinstance(what, functools.partial):
        what = what.func
    return getattr(what, "__module__", None)


def _own_modules() -> dict[str, ModuleType]:
    """Return the loaded modules of this project and of dpaudit, keyed by name."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and getattr(module, "__name__", None) == name
        and isinstance(file := getattr(module, "__file__", None), str)
        and file.endswith(".py")
        and (_is_dpaudit(name) or not any(part in file for part in _INSTALLED))
    }


def _is_dpaudit(name: str) -> bool:
    return name.partition(".")[0] == _PACKAGE


def _hash_of(module: ModuleType) -> str | None:
    return _known_hash(module.__file__) if getattr(module, "__file__", None) else None


def file_hash(file: str) -> str | None:
    """Return the hash of a Python file; None for other files and for unreadable files."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file.endswith(".py") else None
    except OSError:
        return None


_known_hash = functools.cache(file_hash)  # the file may change after its import


_AHEAD = 3
"""Number of chunks in progress for each worker: no worker waits, and memory stays constant."""

_DEATHS = 3
"""Number of deaths of workers, while one chunk is waited for, after which the audit gives up."""

MAX_WORKERS = 1024
"""Largest number of processes."""

_KEPT = 32

_WATCH_EVERY = 1.0
"""Seconds between two checks of a worker that its parent is alive."""

_GRACE = 10.0
"""Seconds beyond twice the call limit after which a worker that does not answer is killed."""

_BROKEN = (
    "the executor is broken, because one of its workers died. Use Settings(workers=...), which "
    "replaces dead workers"
)


class Shipped(NamedTuple):
    """An object that workers have or can get.

    The fields are the digest and the location of the object.
    """

    digest: str
    place: Any


class Workers:
    """Sender of chunks to an executor, which returns the results in order.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Executor that draws. The class does not close this executor.
    count : int
        Approximate number of tasks that run at once.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor, self.count = executor, count
        self._shipped: dict[int, tuple[Any, Shipped]] = {}

    def ship(self, what: Any, words: str) -> Shipped:
        """Send an object to the workers once.

        `words` describe the object in the error message.
        """
        known = self._shipped.get(id(what))
        if known is None:
            try:
                content = packed(what)
            except Exception as error:  # pickling may raise any type of exception
                raise MechanismError(
                    f"{words} cannot be sent to other processes ({type(error).__name__}: {error}). "
                    "Define it in a module, and open files, locks and connections inside it, or "
                    "set workers=None"
                ) from error
            sent = Shipped(hashlib.sha256(content).hexdigest(), self._deliver(content))
            if len(self._shipped) >= _KEPT:
                self._shipped.pop(next(iter(self._shipped)))
            known = self._shipped[id(what)] = (what, sent)  # kept, so that its id is not reused
        return known[1]

    def _deliver(self, content: bytes) -> Any:
        """Put an object where the workers can find it."""
        return content

    def map(
        self,
        function: Callable[..., Any],
        shipped: tuple[Shipped, ...],
        tasks: Iterable[tuple[Any, ...]],
        *,
        deadline: float | None = None,
        call_limit: float | None = None,
    ) -> Iterator[Any]:
        """Yield ``function(*objects, *task)`` for each task, in order.

        Parameters
        ----------
        function : callable
            A function of a module that workers can import by name.
        shipped : tuple of Shipped
            First arguments of the function, which every task shares.
        tasks : iterable of tuple
            Other arguments of the function, one tuple for each task.
        deadline : float, optional
            Time on the clock of ``time.perf_counter`` at which the audit's time limit ends.
        call_limit : float, optional
            Maximum number of seconds for the call in one task.

        Raises
        ------
        MechanismError
            If workers die repeatedly.
        MechanismTimeout
            If a worker does not answer in time. The worker is killed if that is possible.
        WorkersLost
            If no worker is left.
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
                result = self._wait(function, held, under_way, deadline, call_limit)
                under_way.popleft()
                yield result
        finally:
            for _, future in under_way:
                future.cancel()

    def _submit(self, function: Any, shipped: list[Shipped], task: tuple[Any, ...]) -> Any:
        try:
            return self.executor.submit(run_task, function, tuple(shipped), task)
        except BrokenProcessPool as error:  # this error is also raised before any work was done
            self._replace_workers(error)
            return self.executor.submit(run_task, function, tuple(shipped), task)

    def _wait(
        self,
        function: Any,
        shipped: list[Shipped],
        under_way: deque[tuple[tuple[Any, ...], Any]],
        deadline: float | None,
        call_limit: float | None,
    ) -> Any:
        """Return the first result.

        If a worker died, submit all unfinished tasks again.
        """
        for _ in range(_DEATHS):
            # The first task is in progress, because executors begin tasks in order.
            limits = [] if deadline is None else [deadline - time.perf_counter()]
            limits += [] if call_limit is None else [2 * call_limit + _GRACE]
            left = max(min(limits), 0.0) if limits else None
            try:
                return self._result(under_way[0][1], left)
            except TimeoutError as error:
                if left is None or under_way[0][1].done():  # the mechanism itself raised this error
                    raise
                self._stop_workers()
                words = "the audit took more time than it was given"
                if deadline is None or time.perf_counter() < deadline:
                    words = f"one call took more than call_limit = {call_limit:g} s"
                raise MechanismTimeout(f"{words}; its worker was stopped") from error
            except (BrokenProcessPool, CancelledError) as error:
                self._replace_workers(error)
                shipped[:] = map(self._shipped_again, shipped)
                tasks = [task for task, _ in under_way]
                under_way.clear()
                for task in tasks:
                    under_way.append((task, self._submit(function, shipped, task)))
        raise MechanismError(
            f"workers died {_DEATHS} times during one chunk. Check whether the mechanism "
            "needs too much memory or ends its process"
        )

    def _result(self, future: Any, timeout: float | None) -> Any:
        return future.result(timeout=timeout)

    def _replace_workers(self, error: BaseException) -> None:
        """Replace workers after a worker died, or raise an error."""
        raise MechanismError(_BROKEN) from error

    def _stop_workers(self) -> None:
        """End calls that take too long, if that is possible."""

    def _shipped_again(self, sent: Shipped) -> Shipped:
        """Return the location of an object after a worker died."""
        return sent

    def close(self) -> None:
        """Release everything that this object started."""


class Processes(Workers):
    """Processes of this machine, with replacement of dead processes.

    Parameters
    ----------
    count : int
        Number of processes, at least 1.
    """

    def __init__(self, count: int) -> None:
        _validate.integer(1, MAX_WORKERS, count=count)
        self._folder = Path(tempfile.mkdtemp(prefix="dpaudit-workers-"))
        super().__init__(self._pool(count), count)

    def _pool(self, count: int) -> Executor:
        from loky import ProcessPoolExecutor

        ours = os.getpid(), str(self._folder)
        pool: Executor = ProcessPoolExecutor(
            max_workers=count, timeout=None, initializer=_end_with_parent, initargs=ours
        )
        return pool

    def _deliver(self, content: bytes) -> str:
        # With a file, each worker reads the content once, and not with every chunk.
        path = self._folder / hashlib.sha256(content).hexdigest()
        path.write_bytes(content)
        return str(path)

    def _replace_workers(self, error: BaseException) -> None:
        self._stop_workers()

    def _stop_workers(self) -> None:
        self.executor.shutdown(wait=False, kill_workers=True)  # type: ignore[call-arg]
        self.executor = self._pool(self.count)

    def close(self) -> None:
        """End the processes."""
        self.executor.shutdown(wait=True, kill_workers=True)  # type: ignore[call-arg]
        shutil.rmtree(self._folder, ignore_errors=True)


def checked_workers(workers: int | Workers | None, executor: Executor | None) -> None:
    """Refuse arguments with both workers and an executor, and values that are neither.

    Raises
    ------
    ValueError, TypeError
        If the arguments are refused.
    """
    if workers is not None and executor is not None:
        raise ArgumentError("one of workers and executor must be None, got both")
    if workers is not None and not isinstance(workers, Workers):
        _validate.integer(1, MAX_WORKERS, workers=workers)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be an executor of concurrent.futures, got {executor!r}")


@contextmanager
def working(
    workers: int | Workers | None, executor: Executor | None = None
) -> Iterator[Workers | None]:
    """Yield the workers that draw, or None for this process; end workers that this call started."""
    checked_workers(workers, executor)
    if isinstance(workers, Workers):
        yield workers
    elif executor is not None:
        yield Workers(executor, int(getattr(executor, "_max_workers", None) or 1))
    elif workers is None or workers == 1:
        yield None
    else:
        processes = Processes(workers)
        try:
            yield processes
        finally:
            processes.close()


# --- on the workers ---

_HERE: OrderedDict[str, Any] = OrderedDict()


def _end_with_parent(parent: int, folder: str) -> None:
    """End this process and remove its folder soon after its parent died, even during a call."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_EVERY)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, name="dpaudit-parent", daemon=True).start()


def run_task(
    function: Callable[..., Any], shipped: tuple[Shipped, ...], task: tuple[Any, ...]
) -> Any:
    """Return the value of a function on shipped objects and a task."""
    for digest, place in shipped:  # each worker reads each object once
        if digest not in _HERE:
            _HERE[digest] = unpacked(Path(place).read_bytes() if isinstance(place, str) else place)
        _HERE.move_to_end(digest)
    while len(_HERE) > _KEPT:
        _HERE.popitem(last=False)
    return function(*(_HERE[digest] for digest, _ in shipped), *task)


# --- chunks drawn by the workers of a Dask scheduler -------------------------------------------


def check_scheduler(address: str) -> None:
    """Raise :class:`ArgumentError` if no Dask scheduler answers at an address."""
    if address == "local":
        _distributed()
    else:
        Cluster(address).close()


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ArgumentError(
            "dask needs the package distributed, which is not installed here. "
            "Run pip install distributed"
        ) from error


class Cluster(Workers):
    """The workers of a Dask scheduler, which replaces dead workers.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.5:8786``. The address "local" starts a
        scheduler on this machine.
    timeout : float, optional
        Seconds to wait for an answer.
    """

    def __init__(self, address: str, *, timeout: float = 10.0) -> None:
        _validate.text(address=address)
        timeout = _validate.positive(timeout=timeout)
        distributed = _distributed()
        self._timeout, self._address = timeout, address
        self._local: Any = None
        try:
            if address == "local":
                # Any free port is used, because several processes of a run may each have their own
                # cluster.
                self._local = distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0")
            self._client: Any = distributed.Client(self._local or address, timeout=timeout)
        except (OSError, TimeoutError, ValueError) as error:
            raise ArgumentError(
                'dask must be "local" or the address of a scheduler that answers, got '
                f"{address!r}, which did not answer in {timeout:g} s ({type(error).__name__}: "
                f"{error})"
            ) from error
        cores = int(sum(self._client.nthreads().values()))
        super().__init__(self._client.get_executor(pure=False), max(cores, 1))

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Report in one sentence that the scheduler is gone, for any error of the client."""
        try:
            yield
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            if self._answers():
                raise
            raise WorkersLost(
                f"the Dask scheduler at {self._address} no longer answers "
                f"({type(error).__name__}). Start it again, and resume a run with --resume"
            ) from error

    def _answers(self) -> bool:
        """Return whether the scheduler and at least one worker answer."""
        try:
            self._client.wait_for_workers(1, timeout=self._timeout)
        except Exception:  # the client raises many types of exceptions, including its own types
            return False
        return bool(self._client.status == "running")

    def _deliver(self, content: bytes) -> Any:
        # A new key is needed, because content that was lost with a worker is not found under the
        # old key.
        with self._connected():
            return self._client.scatter(content, broadcast=True, hash=False)

    def _result(self, future: Any, timeout: float | None) -> Any:
        with self._connected():
            return super()._result(future, timeout)

    def _replace_workers(self, error: BaseException) -> None:
        """Wait for a worker, after the tasks of a dead worker were abandoned."""
        if not self._answers():
            with self._connected():
                raise error

    def _shipped_again(self, sent: Shipped) -> Shipped:
        """Send an object again, because perhaps only the dead worker held the object."""
        for known, (what, was) in self._shipped.items():
            if was.digest == sent.digest:
                again = Shipped(sent.digest, self._deliver(packed(what)))
                self._shipped[known] = (what, again)
                return again
        return sent

    def _submit(self, function: Any, shipped: list[Shipped], task: tuple[Any, ...]) -> Any:
        # Dask replaces scattered references by their content only in plain arguments.
        places = [one.place for one in shipped]
        digests = [one.digest for one in shipped]
        with self._connected():
            return self._client.submit(
                _work_at, function, digests, places, task, pure=False, retries=3
            )

    def close(self) -> None:
        """Close the connection, and end the cluster if this object started it."""
        self._client.close()
        if self._local is not None:
            self._local.close()


def _work_at(
    function: Callable[..., Any], digests: list[str], places: list[Any], task: tuple[Any, ...]
) -> Any:
    return run_task(function, tuple(map(Shipped, digests, places)), task)
