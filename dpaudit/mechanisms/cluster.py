"""Chunks drawn by the workers of a Dask scheduler."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from dpaudit import _validate
from dpaudit.errors import ArgumentError, WorkersLost
from dpaudit.mechanisms.shipping import packed
from dpaudit.mechanisms.workers import Shipped, Workers, run_task


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
        _validate.text(address=address)
        timeout = _validate.positive(timeout=timeout)
        distributed = _distributed()
        self._timeout, self._address = timeout, address
        self._local: Any = None
        try:
            if address == "local":
                # Any free port: several processes of a run may have a cluster each.
                self._local = distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0")
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

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Say in one sentence that the scheduler is gone, whatever the client raises then."""
        try:
            yield
        except (OSError, TimeoutError, CancelledError, RuntimeError) as error:
            if self._answers():
                raise
            raise WorkersLost(
                f"the Dask scheduler at {self._address} does not answer any more "
                f"({type(error).__name__}); start it again; a run goes on with --resume"
            ) from error

    def _answers(self) -> bool:
        """Whether the scheduler and one worker are there."""
        try:
            self._client.wait_for_workers(1, timeout=self._timeout)
        except Exception:  # the client raises one of many types, its own ones among them
            return False
        return bool(self._client.status == "running")

    def _place(self, content: bytes) -> Any:
        # Under a key of its own: what was lost with its worker is not found under the old one.
        with self._connected():
            return self._client.scatter(content, broadcast=True, hash=False)

    def _result(self, future: Any, timeout: float | None) -> Any:
        with self._connected():
            return super()._result(future, timeout)

    def _replace_workers(self, error: BaseException) -> None:
        """Wait for a worker, after the tasks of one that died were given up."""
        if not self._answers():
            with self._connected():
                raise error

    def _shipped_again(self, sent: Shipped) -> Shipped:
        """Send again what may have been on the worker alone that died."""
        for known, (what, was) in self._shipped.items():
            if was.digest == sent.digest:
                again = Shipped(sent.digest, self._place(packed(what)))
                self._shipped[known] = (what, again)
                return again
        return sent

    def _submit(self, function: Any, shipped: list[Shipped], task: tuple[Any, ...]) -> Any:
        # Dask puts the content in the place of what was scattered only among plain arguments.
        places = [one.place for one in shipped]
        digests = [one.digest for one in shipped]
        with self._connected():
            return self._client.submit(
                _work_at, function, digests, places, task, pure=False, retries=3
            )

    def close(self) -> None:
        """Close the connection, and end what was started here."""
        self._client.close()
        if self._local is not None:
            self._local.close()


def _work_at(
    function: Callable[..., Any], digests: list[str], places: list[Any], task: tuple[Any, ...]
) -> Any:
    return run_task(function, tuple(map(Shipped, digests, places)), task)
