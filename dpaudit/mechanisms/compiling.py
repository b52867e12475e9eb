"""Watches JAX compile, to say so where a mechanism is compiled again at every call."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from dpaudit.errors import SlowAuditWarning

_EVENT = "backend_compile"
_MANY = 12
"""Calls that compiled, from which it is said: fewer are the few sizes that there are."""


class _Counter:
    """How often JAX compiled in this process, and for how many seconds."""

    def __init__(self) -> None:
        self.times, self.seconds = 0, 0.0
        self.listens = False

    def listen(self) -> None:
        """Begin to count, once JAX is there."""
        if self.listens or "jax" not in sys.modules:
            return
        monitoring = getattr(sys.modules["jax"], "monitoring", None)
        register = getattr(monitoring, "register_event_duration_secs_listener", None)
        if register is not None:
            register(self._note)
            self.listens = True

    def _note(self, event: str, duration: float, **more: Any) -> None:
        if _EVENT in event:
            self.times += 1
            self.seconds += duration


_COUNTER = _Counter()


class Compilations:
    """Compilations during the calls of one mechanism."""

    def __init__(self) -> None:
        self.calls = self.compiled = 0
        self.seconds = 0.0
        self._said = False

    def begin(self) -> tuple[int, float]:
        """Return what there was before a call."""
        _COUNTER.listen()
        return _COUNTER.times, _COUNTER.seconds

    def end(self, name: str, before: tuple[int, float]) -> None:
        """Count a call; warn once where most of many compiled."""
        times, seconds = before
        self.calls += 1
        self.compiled += _COUNTER.times > times
        self.seconds += _COUNTER.seconds - seconds
        if not self._said and self.compiled >= max(_MANY, self.calls / 2):
            self._said = True
            warnings.warn(
                f"{name} was compiled anew in {self.compiled} of {self.calls} calls, which took "
                f"{self.seconds:.1f} s: what it compiles depends on the size of a call. "
                'one_draw(f, randomness="jax", vmap=True) draws by few sizes, each compiled once',
                SlowAuditWarning,
                stacklevel=2,
            )
